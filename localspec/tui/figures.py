"""The figures of the status line, from the steps of one answer."""

from collections import deque
from dataclasses import dataclass, field

from localspec.engine.rates import elapsed, ratio, share
from localspec.engine.step import NO_DRAFTER, Step, Totals

WINDOW_SECONDS = 2.0
_LEAST_SECONDS = 0.0001
"""In less than that no model writes a token: there is nothing to measure yet."""


@dataclass(slots=True)
class Figures:
    """Sums over one answer, and its speed over the last steps. Times are seconds of one clock."""

    totals: Totals = field(default_factory=Totals)
    _begun: float | None = None
    _ended: float | None = None
    _marks: deque[tuple[float, int, float]] = field(default_factory=deque)
    """(end of a step, its tokens, the seconds that the step itself took), from just before the window on."""

    def begin(self, at: float) -> None:
        """The prompt has been read: decoding begins."""
        self._begun = self._ended = at
        self._marks.clear()
        self._marks.append((at, 0, 0.0))

    def add(self, step: Step, at: float) -> None:
        """One more step, which ended at `at`."""
        self.totals.add(step)
        if step.width == 0:
            return
        seconds = elapsed((step.verify_ms + step.draft_ms + step.host_ms) / 1000, 0.0)
        if self._begun is None:
            self.begin(at - seconds)
        # A clock that was put back stands still until it is where it was.
        at = self._ended = max(at, self._marks[-1][0])
        self._marks.append((at, len(step.tokens), seconds))
        # The mark before the window stays: a step longer than the window has a speed too.
        while len(self._marks) > 2 and self._marks[1][0] <= at - WINDOW_SECONDS:
            self._marks.popleft()

    @property
    def tokens_per_step(self) -> float | None:
        """Tokens per target pass; None before the first."""
        return self.totals.tokens_per_step

    @property
    def recent_speed(self) -> float | None:
        """Tokens per second over the last two seconds; None while there is nothing to measure."""
        if not self._marks:
            return None
        later = list(self._marks)[1:]
        tokens, own = sum(tokens for _, tokens, _ in later), sum(seconds for _, _, seconds in later)
        return per_second(tokens, elapsed(self._marks[-1][0], self._marks[0][0]), own)

    @property
    def mean_speed(self) -> float | None:
        """Tokens per second over the whole answer, reading the prompt left out; None where not measured."""
        if self._begun is None or self._ended is None:
            return None
        return per_second(self.totals.tokens, elapsed(self._ended, self._begun), self.totals.decode_seconds)

    def shares(self) -> list[tuple[str, float]]:
        """For each drafter that drafted, the share of the answer (0 to 1) that it got accepted; largest first."""
        drafters = self.totals.by_drafter.items()
        found = [
            (name, share(sums.accepted, self.totals.tokens, of_nothing=0.0))
            for name, sums in drafters
            if name != NO_DRAFTER
        ]
        return sorted(found, key=lambda share: -share[1])


def per_second(tokens: int, clock: float, own: float) -> float | None:
    """Tokens per second; None while there is nothing to measure.

    `clock`: seconds on the wall; `own`: those that the steps say they took. Steps that were held up arrive in a burst, and
    none took less than it took.
    """
    seconds = max(clock, elapsed(own, 0.0))
    return ratio(tokens, seconds) if tokens and seconds >= _LEAST_SECONDS else None


def in_words(figures: Figures, *, running: bool) -> list[str]:
    """The figures that there are: tokens per step, tokens/s, who drafted."""
    words = []
    if (per_step := figures.tokens_per_step) is not None:
        words.append(f"{per_step:.2f} tokens/step")
    speed = figures.recent_speed if running else figures.mean_speed
    if speed is not None:
        words.append(f"{speed:,.{0 if speed >= 100 else 1}f} tokens/s")
    if figures.totals.steps:
        shares = figures.shares()
        words.append(", ".join(f"{name} {100 * share:.0f} %" for name, share in shares) or "plain")
    return words
