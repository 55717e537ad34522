"""The numbers of the speculation view, counted step by step."""

import re
import statistics
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from localspec.engine.rates import elapsed, ratio
from localspec.engine.step import NO_DRAFTER, Step, Totals
from localspec.tui.figures import per_second

NOW_STEPS = 16
"""What is called "now": long enough for a figure that can be read, short enough to follow the text."""
RECENT_STEPS = 96
"""Kept one by one, to be drawn."""
RUNS = ("0", "1", "2", "3", "4", "5-8", "9-16", "17+")
"""Names of the classes of accepted runs."""
_LARGEST_RUNS = (0, 1, 2, 3, 4, 8, 16)
_ENOUGH_PLAIN_STEPS = 8
_MOST_PLAIN_STEPS = 512
_FIRST_STEPS = 4
"""After so many steps without a draft, that is no accident."""
_BEING_TIMED = "timed again"

_PLAIN_WORDS = (
    (r"no room for a draft", "No room for a guess: the answer or the context is nearly full."),
    (_BEING_TIMED, "The model writes alone for a moment, to time it."),
    (
        r"is (\d+)% likely to be repeated",
        "Nothing in the chat so far is likely enough to be repeated: checking a guess costs {} % of writing a token here.",
    ),
    (
        r"no token is likely enough: one more in a pass costs (\d+)%",
        "No guess is likely enough to be right: checking one costs {} % of writing a token here.",
    ),
)
_TURNED_OFF = "Guessing ahead is turned off in the settings."
_NOTHING_FOUND = "There is nothing to repeat yet: guesses are copied from earlier text."
_NOTHING_DRAFTED = "Nothing has been guessed yet."


def in_plain_words(reason: str) -> str:
    """Why nothing is drafted, for somebody who has never heard of drafts; a reason that is not known stays as it is."""
    for pattern, words in _PLAIN_WORDS:
        if found := re.search(pattern, reason):
            return words.format(*found.groups())
    return reason


def run_class(accepted: int) -> int:
    """Which of RUNS so many accepted tokens belong to."""
    return next((index for index, most in enumerate(_LARGEST_RUNS) if accepted <= most), len(_LARGEST_RUNS))


@dataclass(frozen=True, slots=True)
class Counted:
    """What the view keeps of a step. Times in milliseconds."""

    tokens: int
    drafter: str
    drafted: int
    clock_ms: float
    """Since the step before ended."""
    engine_ms: float
    """What the step itself took."""
    plain_ms: float | None
    """What plain decoding would have taken for its tokens; None where the step does not know."""


@dataclass(slots=True)
class Sums:
    """Some steps taken together: the last ones, an answer, a chat."""

    tokens: int = 0
    steps: int = 0
    drafts: int = 0
    """Steps with a draft."""
    drafted: int = 0
    clock_ms: float = 0.0
    engine_ms: float = 0.0
    plain_ms: float = 0.0
    """What plain decoding would have taken, apart from the tokens of which that is unknown."""
    unknown: int = 0
    """Those tokens."""

    @classmethod
    def of(cls, steps: Iterable[Counted]) -> "Sums":
        """These steps."""
        sums = cls()
        for step in steps:
            sums.add(step)
        return sums

    def add(self, step: Counted) -> None:
        """One more step."""
        self.tokens += step.tokens
        self.steps += 1
        self.drafts += step.drafted > 0
        self.drafted += step.drafted
        self.clock_ms += step.clock_ms
        self.engine_ms += step.engine_ms
        if step.plain_ms is None:
            self.unknown += step.tokens
        else:
            self.plain_ms += step.plain_ms

    @property
    def tokens_per_step(self) -> float | None:
        """None before the first step."""
        return ratio(self.tokens, self.steps)

    @property
    def tokens_per_second(self) -> float | None:
        """By the clock on the wall; None while there is nothing to measure."""
        return per_second(self.tokens, self.clock_ms / 1000, self.engine_ms / 1000)

    @property
    def draft_length(self) -> float | None:
        """Drafted tokens of a step that has a draft, on average; None without one."""
        return ratio(self.drafted, self.drafts)

    def speedup(self, plain_ms: float | None) -> float | None:
        """Times as fast as plain decoding. `plain_ms`: what it takes for a token, for steps that do not know it themselves.

        None while plain decoding has not been measured.
        """
        if not self.tokens or self.engine_ms <= 0 or (self.unknown and plain_ms is None):
            return None
        return ratio(self.plain_ms + self.unknown * (plain_ms or 0.0), self.engine_ms)


@dataclass(slots=True)
class Tally:
    """All that the view shows. Counting a step is cheap; what has to be worked out is worked out when it is asked for."""

    setting: str = "auto"
    """Which drafter the person has chosen: "auto", "draft", "lookup" or "none"."""
    answer: Sums = field(default_factory=Sums)
    chat: Sums = field(default_factory=Sums)
    totals: Totals = field(default_factory=Totals)
    """Of this answer, by drafter."""
    runs: list[int] = field(default_factory=lambda: [0] * len(RUNS))
    """Drafts of this answer by the number of their tokens that were accepted; see RUNS."""
    recent: deque[Counted] = field(default_factory=lambda: deque(maxlen=RECENT_STEPS))
    """The last steps of this answer."""
    running: bool = False
    _reason: str | None = None
    _last_at: float | None = None
    _plain_steps: deque[float] = field(default_factory=lambda: deque(maxlen=_MOST_PLAIN_STEPS))
    """Milliseconds of the undrafted steps of this chat."""

    def begin(self) -> None:
        """A new answer."""
        self.answer, self.totals = Sums(), Totals()
        self.runs = [0] * len(RUNS)
        self.recent.clear()
        self.running = True
        self._reason = self._last_at = None

    def add(self, step: Step, at: float) -> None:
        """One more step, which ended at `at`, in seconds. A step without a pass only tells how the answer ended."""
        if step.width == 0:
            return
        counted = self._count(step, at)
        self.recent.append(counted)
        self.answer.add(counted)
        self.chat.add(counted)
        self.totals.add(step)
        if step.drafted:
            self.runs[run_class(step.accepted)] += 1
        elif step.width == 1 and step.draft_ms == 0:
            self._plain_steps.append(step.verify_ms + step.sample_ms)
        if (
            step.decision
            and step.decision.off_reason
            and not (self._reason and _BEING_TIMED in step.decision.off_reason)
        ):
            self._reason = step.decision.off_reason

    def end(self) -> None:
        """The answer is complete, or was stopped."""
        self.running = False

    def reset(self) -> None:
        """Another chat."""
        self.begin()
        self.end()
        self.chat = Sums()
        self._plain_steps.clear()

    def _count(self, step: Step, at: float) -> Counted:
        engine_ms = elapsed(step.verify_ms + step.draft_ms + step.host_ms, 0.0)
        clock_ms = engine_ms if self._last_at is None else 1000 * elapsed(at, self._last_at)
        self._last_at = at
        plain_ms = None
        if step.decision and step.decision.plain_rate > 0:
            # The rate is that of the passes alone; plain decoding would have had to draw the same tokens.
            plain_ms = ratio(1000 * len(step.tokens), step.decision.plain_rate)
            plain_ms = None if plain_ms is None else elapsed(plain_ms + step.sample_ms, 0.0)
        return Counted(len(step.tokens), step.drafter, step.drafted, clock_ms, engine_ms, plain_ms)

    # What is worked out from that.

    @property
    def now(self) -> Sums:
        """The last steps of this answer."""
        return Sums.of(list(self.recent)[-NOW_STEPS:])

    @property
    def plain_token_ms(self) -> float | None:
        """What a token took where the model decoded plainly in this chat: the median; None without enough of them."""
        return statistics.median(self._plain_steps) if len(self._plain_steps) >= _ENOUGH_PLAIN_STEPS else None

    @property
    def last_draft(self) -> Counted | None:
        """The latest step with a draft, if it is one of the last steps."""
        return next((step for step in list(self.recent)[: -NOW_STEPS - 1 : -1] if step.drafted), None)

    def drafters(self) -> list[tuple[str, int, int]]:
        """Of this answer: each drafter's name, drafted tokens and accepted ones, always in the same order."""
        found = [(name, d.drafted, d.accepted) for name, d in self.totals.by_drafter.items() if name != NO_DRAFTER]
        return sorted((drafter for drafter in found if drafter[1]), reverse=True)

    def why_off(self) -> str | None:
        """Why nothing has been drafted of late (or, when it is complete, in the whole answer), in one sentence.

        None while something is, and in the first few steps.
        """
        if self.setting == NO_DRAFTER:
            return _TURNED_OFF
        if len(self.recent) < _FIRST_STEPS or (self.last_draft if self.running else self.totals.drafted):
            return None
        if self._reason:
            return in_plain_words(self._reason)
        return _NOTHING_FOUND if self.setting == "lookup" else _NOTHING_DRAFTED

    def figures(self) -> dict[str, float | int | str | None]:
        """This answer's part of the chat's sums, to be kept with it; see `load`."""
        sums = self.answer
        plain = self.plain_token_ms
        known = sums.unknown == 0 or plain is not None
        return {
            "tokens": sums.tokens,
            "steps": sums.steps,
            "drafts": sums.drafts,
            "drafted": sums.drafted,
            "accepted": self.totals.accepted,
            "clock_ms": round(sums.clock_ms, 3),
            "engine_ms": round(sums.engine_ms, 3),
            "plain_ms": round(sums.plain_ms + sums.unknown * (plain or 0.0), 3) if known else None,
        }

    def load(self, answers: Iterable[Mapping[str, object] | None]) -> None:
        """A chat that was kept: the figures of its answers. What is missing there counts for nothing."""
        self.reset()
        for figures in answers:
            tokens, plain_ms = _number(figures, "tokens"), _number(figures, "plain_ms")
            self.chat.tokens += int(tokens)
            self.chat.steps += int(_number(figures, "steps"))
            self.chat.drafts += int(_number(figures, "drafts"))
            self.chat.drafted += int(_number(figures, "drafted"))
            self.chat.clock_ms += _number(figures, "clock_ms")
            self.chat.engine_ms += _number(figures, "engine_ms")
            self.chat.plain_ms += plain_ms
            self.chat.unknown += 0 if plain_ms else int(tokens)


def _number(figures: Mapping[str, object] | None, name: str) -> float:
    value = figures.get(name) if figures else None
    return ratio(max(0, value), 1) or 0.0 if isinstance(value, int | float) else 0.0
