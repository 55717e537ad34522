"""The acceptance table: how often drafts would have been right on answers of the target, and what that is worth here.

Shares are of the tokens of all answers together. Tokens per step, and shares of steps and proposals, are unweighted means
over the answers, so that a long one does not count more. Speedups are modelled: replays of the answers in which every pass
takes what the measured cost curve says, and nothing else takes time.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from localspec.engine import policy
from localspec.engine.chain import Chain
from localspec.engine.costs import MEASURED_WIDTHS, CostCurve, Costs
from localspec.engine.drafters.place import PlaceLookup, Span
from localspec.engine.fixed import Fixed
from localspec.engine.measuring import DRAFT_WIDTHS
from localspec.engine.options import DEFAULT_LENGTHS
from localspec.engine.step import Totals
from localspec.measure.acceptance_answers import Answers, Followed
from localspec.measure.baselines import PromptLookup
from localspec.measure.profiles import Profile
from localspec.measure.replay import Answered, Session, device_ms, run_loop
from localspec.measure.theory import tokens_per_step

LENGTHS = (4, 8)
"""The draft lengths of the table."""
LONGEST_NGRAM, COPIED = 3, 10
"""Prompt lookup as it is usually deployed: the last 3 tokens, else 2, else 1, and a copy of up to 10."""
LOOKUP, AUTO = "lookup", "auto"
_PAIR = 2


@dataclass(frozen=True, slots=True)
class Reading:
    """What localspec's own lookup knows of a text besides its tokens."""

    piece: Callable[[int], bytes]
    """The bytes of a token."""
    documents: Callable[[Sequence[int]], Sequence[Span]]
    """Which tokens of a prompt are texts that the answer may copy or edit."""

    @classmethod
    def of_no_documents(cls) -> "Reading":
        """Where nothing is known but the tokens."""
        return cls(lambda _token: b"", lambda _tokens: ())


def draft_arm(length: int) -> str:
    """The name of drafting always so many tokens with the draft model."""
    return f"draft:{length}"


@dataclass(frozen=True, slots=True)
class Counted:
    """Of how many tokens something is true, or how true it is of them in sum."""

    count: float
    tokens: int

    @property
    def share(self) -> float:
        """Of the tokens, at least one."""
        return self.count / self.tokens


@dataclass(frozen=True, slots=True)
class Run:
    """One answer written again with drafts."""

    tokens: int
    steps: int
    ms: float
    """What the passes of both models take by the cost curve."""
    proposals: int = 0
    """Steps with a draft."""
    hits: int = 0
    """Those of them whose first drafted token was right."""

    @property
    def tokens_per_step(self) -> float:
        """Over all target passes."""
        return self.tokens / self.steps


@dataclass(frozen=True, slots=True)
class AnswerFigures:
    """What there is to say of one prompt. None where it needs a draft model and there is none."""

    id: str
    category: str
    tokens: int
    greedy: Counted | None
    """Positions of the greedy answer where the draft's argmax is the target's token."""
    sampled: Counted | None
    """The sum of min(p, q) over the same positions."""
    copied: Counted
    """Positions where the last two tokens' most recent earlier copy goes on with the right token."""
    sampled_text: Counted | None
    """The sum of min(p, q) over the positions of an answer sampled at temperature 1."""
    accepted_at: tuple[Counted, ...]
    """By position in a draft of the largest of LENGTHS: steps in which that token was accepted."""
    runs: dict[str, Run]
    """By arm: `draft_arm` of each of LENGTHS, LOOKUP and AUTO."""
    plain_ms: float
    """The answer by plain decoding, by the cost curve."""


@dataclass(frozen=True, slots=True)
class Share:
    """Over all tokens of a task, and its least and largest value over the answers."""

    mean: float
    least: float
    largest: float

    @classmethod
    def of(cls, counted: Sequence[Counted | None]) -> "Share | None":
        """None where one of them is."""
        known = [one for one in counted if one is not None]
        if len(known) < len(counted):
            return None
        shares = [one.share for one in known]
        return cls(sum(one.count for one in known) / sum(one.tokens for one in known), min(shares), max(shares))


@dataclass(frozen=True, slots=True)
class TaskFigures:
    """The table's line for the answers of one task, at least one."""

    answers: tuple[AnswerFigures, ...]

    @property
    def tokens(self) -> int:
        """Of all answers."""
        return sum(answer.tokens for answer in self.answers)

    @property
    def greedy(self) -> Share | None:
        """Share of positions where the draft's argmax is the target's token."""
        return Share.of([answer.greedy for answer in self.answers])

    @property
    def sampled(self) -> Share | None:
        """Mean of the sum of min(p, q) over the positions of the greedy answers."""
        return Share.of([answer.sampled for answer in self.answers])

    @property
    def copied(self) -> Share:
        """Share of positions that 2-gram lookup gets right."""
        share = Share.of([answer.copied for answer in self.answers])
        assert share is not None
        return share

    @property
    def sampled_text(self) -> Share | None:
        """Mean of the sum of min(p, q) over the positions of the sampled answers."""
        return Share.of([answer.sampled_text for answer in self.answers])

    @property
    def accepted_at(self) -> tuple[float, ...]:
        """By position in a draft of the largest of LENGTHS: share of steps that accepted it; empty without a draft model, and
        where no answer is as long as a draft."""
        columns = zip(*(answer.accepted_at for answer in self.answers), strict=True)
        sums = [(sum(one.count for one in column), sum(one.tokens for one in column)) for column in columns]
        return tuple(count / tokens for count, tokens in sums if tokens)

    def formula(self, length: int) -> float | None:
        """Tokens per step if every drafted token were accepted with the greedy share, whatever came before."""
        return tokens_per_step(self.greedy.mean, length) if self.greedy else None

    def tokens_per_step(self, arm: str) -> float | None:
        """Mean over the answers; None where the arm needs a draft model and there is none."""
        return _mean(answer.runs[arm].tokens_per_step for answer in self.answers if arm in answer.runs)

    @property
    def steps_with_proposal(self) -> float | None:
        """Of prompt lookup, the mean over the answers."""
        runs = [answer.runs[LOOKUP] for answer in self.answers]
        return _mean(run.proposals / run.steps for run in runs)

    @property
    def proposals_with_hit(self) -> float | None:
        """Of prompt lookup, the mean over the answers in which anything was proposed; None without one."""
        runs = [answer.runs[LOOKUP] for answer in self.answers]
        return _mean(run.hits / run.proposals for run in runs if run.proposals)

    def modelled_speedup(self, arm: str) -> float | None:
        """All answers by plain decoding against the same with drafts, by the cost curve."""
        if any(arm not in answer.runs for answer in self.answers):
            return None
        return sum(answer.plain_ms for answer in self.answers) / sum(answer.runs[arm].ms for answer in self.answers)


def _mean(values: Iterable[float]) -> float | None:
    found = list(values)
    return sum(found) / len(found) if found else None


def figures_of(answers: Sequence[Answers], device: Profile, reading: Reading | None = None) -> list[AnswerFigures]:
    """Every answer, in this order: `auto` learns from one to the next. `device`: what passes cost. `reading`: how `auto` sees
    the documents of a prompt."""
    replays_of = _PairReplays if any(one.greedy for one in answers) else _LookupReplays
    replays = replays_of(device, reading or Reading.of_no_documents())
    return [_figures(one, device, replays) for one in answers]


def by_task(figures: Iterable[AnswerFigures]) -> dict[str, TaskFigures]:
    """By category, in the order of the prompts."""
    found: dict[str, list[AnswerFigures]] = {}
    for one in figures:
        found.setdefault(one.category, []).append(one)
    return {category: TaskFigures(tuple(answers)) for category, answers in found.items()}


def _figures(answers: Answers, device: Profile, replays: "_LookupReplays") -> AnswerFigures:
    agrees = answers.greedy.recording.agrees if answers.greedy else None
    return AnswerFigures(
        id=answers.id,
        category=answers.category,
        tokens=answers.answer.size,
        greedy=None if agrees is None else Counted(float(agrees.sum()), agrees.size),
        sampled=_overlap(answers.greedy),
        copied=pairs_copied(answers.prompt.tolist(), answers.answer.tolist()),
        sampled_text=_overlap(answers.sampled),
        accepted_at=() if agrees is None else accepted_by_position(agrees, max(LENGTHS)),
        runs=replays.runs(answers),
        plain_ms=answers.answer.size * device.target_ms(1),
    )


def _overlap(followed: Followed | None) -> Counted | None:
    return Counted(float(followed.overlap.sum()), followed.overlap.size) if followed else None


class _LookupReplays:
    """Answers written again without a draft model: `auto` can only copy then."""

    def __init__(self, device: Profile, reading: Reading) -> None:
        self._device, self._documents = device, reading.documents
        self._lookup = PlaceLookup(reading.piece)
        curve = CostCurve.measured({width: device.target_ms(width) for width in device.widths})
        self._alone = policy.Session(Chain(Costs(curve), self._lookup, None))

    def runs(self, answers: Answers) -> dict[str, Run]:
        """By arm."""
        return {LOOKUP: lookup_run(answers, self._device), AUTO: _run(self._auto(answers))}

    def _auto(self, answers: Answers) -> Totals:
        """localspec's own policy, with all it learns from answer to answer."""
        prompt = answers.prompt.tolist()
        self._lookup.rewind(0)
        self._lookup.observe(prompt)
        self._lookup.begin(self._documents(prompt))
        return run_loop(answers, self._device, _auto(self._alone), (self._lookup,))


class _PairReplays(_LookupReplays):
    """Answers written again with both drafters."""

    def __init__(self, device: Profile, reading: Reading) -> None:
        super().__init__(device, reading)
        self._fixed, self._learning = Session(device), Session(device, PlaceLookup(reading.piece))

    def runs(self, answers: Answers) -> dict[str, Run]:
        """By arm."""
        recording = _followed(answers).recording
        drafted = {
            draft_arm(length): _run(self._fixed.replay(recording, partial(_always, length=length)))
            for length in LENGTHS
        }
        return drafted | super().runs(answers)

    def _auto(self, answers: Answers) -> Totals:
        return self._learning.replay(_followed(answers).recording, _auto, self._documents(answers.prompt.tolist()))


def _followed(answers: Answers) -> Followed:
    if answers.greedy is None:
        raise ValueError(f"the draft model has not read the answer to prompt {answers.id}")
    return answers.greedy


def _always(session: policy.Session, length: int) -> Fixed:
    return Fixed(session.chain.model, length)


def _auto(session: policy.Session) -> policy.Policy:
    return policy.Policy(session, DEFAULT_LENGTHS[AUTO])


def _run(totals: Totals) -> Run:
    return Run(totals.tokens, totals.steps, device_ms(totals))


def pairs_copied(prompt: Sequence[int], answer: Sequence[int]) -> Counted:
    """2-gram lookup: at how many positions of the answer the token behind the most recent earlier copy of the last two
    tokens is the answer's. Where there is no copy it is not."""
    text = [*prompt, *answer]
    behind: dict[tuple[int, ...], int] = {}
    right = 0
    for at in range(_PAIR, len(text)):
        pair, token = tuple(text[at - _PAIR : at]), text[at]
        right += at >= len(prompt) and behind.get(pair) == token
        behind[pair] = token
    return Counted(float(right), len(answer))


def accepted_by_position(agrees: NDArray[np.bool_], length: int) -> tuple[Counted, ...]:
    """For each place in drafts of `length` tokens, in how many steps the token there was accepted, and of how many steps.

    `agrees`: where the draft model is right, (n,). A step counts if its whole draft lies inside the answer: what the draft
    model would have been right about behind the end is not known.
    """
    accepted = [run for run, drafted in _steps(agrees.tolist(), length) if drafted == length]
    return tuple(Counted(float(sum(run > place for run in accepted)), len(accepted)) for place in range(length))


def _steps(agrees: Sequence[bool], length: int) -> Iterator[tuple[int, int]]:
    """Steps with drafts of `length` tokens: how many were accepted, and how many drafted before the answer's end."""
    at = 0
    while at < len(agrees):
        drafted = agrees[at : at + length]
        accepted = drafted.index(False) if False in drafted else len(drafted)
        yield accepted, len(drafted)
        at += accepted + 1


def lookup_run(answered: Answered, device: Profile) -> Run:
    """Prompt lookup as deployed (Saxena 2023): n-grams from 3 down to 1, the most recent earlier copy, up to 10 tokens, cut
    at the end of the text so far. The last token of a step counts only inside the answer."""
    answer: list[int] = answered.answer.tolist()
    rule = PromptLookup(LONGEST_NGRAM, COPIED)
    rule.follow(answered.prompt.tolist())
    at = steps = proposals = hits = 0
    ms = 0.0
    while at < len(answer):
        draft, _survival = rule.propose(COPIED)
        right = [drafted == token for drafted, token in zip(draft, answer[at:], strict=False)]
        accepted = right.index(False) if False in right else len(right)
        written = answer[at : at + accepted + 1]
        rule.follow(written)
        at += len(written)
        steps += 1
        proposals += bool(draft)
        hits += accepted > 0
        ms += device.target_ms(1 + len(draft))
    return Run(len(answer), steps, ms, proposals, hits)


@dataclass(frozen=True, slots=True)
class MeasuredDevice(Profile):
    """This machine, all its times in milliseconds."""

    draft_curve: Profile | None = None
    """Passes of the draft model, as if it were a target."""
    estimated: tuple[int, ...] = ()
    """Widths of target passes that there was no time to measure."""

    def draft_ms(self, width: int) -> float:
        """Time of a pass of the draft model: a straight line between the measured widths."""
        return self.draft_curve.target_ms(width) if self.draft_curve else 0.0


def device_of(costs: Costs) -> MeasuredDevice:
    """As it was measured when the models were loaded; widths that there was no time for are estimated."""

    def points(curve: CostCurve, widths: Sequence[int]) -> tuple[tuple[int, float], ...]:
        return tuple((width, curve.ms(width)) for width in sorted(widths))

    source = "measured when the models were loaded"
    draft = Profile("draft model", source, points(costs.draft, DRAFT_WIDTHS), 0.0, 0.0) if costs.draft else None
    estimated = tuple(sorted(set(MEASURED_WIDTHS) - set(costs.target.table())))
    return MeasuredDevice("this machine", source, points(costs.target, MEASURED_WIDTHS), 0.0, 0.0, draft, estimated)
