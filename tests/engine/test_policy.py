"""The chooser of `auto`: it changes the speed and nothing else, recovers from everything it was told wrong, and says why."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest

import checks
from fakes import VOCABULARY, TableCodec, TableModel, TableSampler, answer, emitted, tables
from localspec.engine.chain import Chain
from localspec.engine.costs import CostCurve, Costs
from localspec.engine.drafters.base import Draft
from localspec.engine.drafters.draft_model import Drafting, DraftModel
from localspec.engine.drafters.lookup import Lookup
from localspec.engine.generate import Request
from localspec.engine.policy import Policy, Session
from localspec.engine.step import Decision, Step

LOGITS = tables(seed=7)
CHEAP = {1: 1.0, 2: 1.05, 5: 1.2, 9: 1.4, 33: 2.5}
"""Milliseconds by width of a device where long passes cost little."""


class Clocked(TableModel):
    """Tables on a virtual clock."""

    def __init__(self, logits: np.ndarray, ms: Callable[[int], float]) -> None:
        super().__init__(logits)
        self._ms = ms

    def decode(self, tokens: Sequence[int], rows: int = 0) -> None:
        super().decode(tokens, rows)
        if rows:
            self.busy_seconds += self._ms(len(tokens)) / 1000


class Pair:
    """A target and a draft model on a virtual clock, with the engine's own drafters and policy."""

    def __init__(
        self,
        draft_logits: np.ndarray,
        *,
        target_ms: Callable[[int], float],
        draft_ms: Callable[[int], float] = lambda width: 0.1,
        believed: dict[int, float] | None = None,
        logits: np.ndarray = LOGITS,
    ) -> None:
        size = logits.shape[-1]
        self.target, self.draft = Clocked(logits, target_ms), DraftModel(Clocked(draft_logits, draft_ms), size)
        self.lookup = Lookup()
        believed = believed or {width: target_ms(width) for width in CHEAP}
        draft_curve = CostCurve.measured({1: draft_ms(1), 8: draft_ms(8)})
        self.session = Session(Chain(Costs(CostCurve.measured(believed), draft_curve), self.lookup, self.draft))
        self.decisions: list[Decision | None] = []

    def answer(
        self,
        sampler: Callable[[], TableSampler],
        request: Request,
        drafting: Drafting = Drafting.COUPLED,
        codec: TableCodec | None = None,
    ) -> list[Step]:
        """One answer by the policy of `auto`."""
        policy = Policy(self.session, 16)
        self.draft.context.truncate(0)  # type: ignore[attr-defined]
        for drafter in (self.draft, self.lookup):
            drafter.rewind(0)
        self.draft.observe([0, 1])
        greedy = sampler().temperature == 0.0
        self.draft.begin(sampler(), drafting, request.seed, greedy)
        self.draft.rewind(0)
        steps = []
        for step in answer(
            self.target,
            sampler(),
            drafters=[self.lookup, self.draft],
            policy=policy,
            request=request,
            codec=codec or TableCodec(),
        ):
            steps.append(step)
            self.decisions.append(policy.decision)
        return steps


def _cheap(width: int) -> float:
    return float(np.interp(width, list(CHEAP), list(CHEAP.values())))


def _warm() -> TableSampler:
    return TableSampler(0.9, 6)


def _greedy() -> TableSampler:
    return TableSampler(0.0)


@pytest.mark.parametrize("sampler", [_warm, _greedy])
def test_the_clock_changes_nothing_but_the_speed(sampler: Callable[[], TableSampler]) -> None:
    """Match mode: whatever the clock says, pauses and impossible times included, the text is that of plain decoding."""
    drafted = 0
    for seed in range(150):
        rng = np.random.default_rng(seed)

        def jitter(width: int, rng: np.random.Generator = rng) -> float:
            return float(_cheap(width) * rng.lognormal(0.0, 1.0) * rng.choice([1, 1, 1, 50, 0.01]))

        pair = Pair(tables(seed=7) + 0.7 * tables(seed=8), target_ms=jitter, believed=CHEAP)
        request = Request(seed, max_tokens=50)
        plain = emitted(answer(TableModel(LOGITS), sampler(), request=request))
        steps = pair.answer(sampler, request)
        drafted += sum(step.drafted for step in steps)
        assert emitted(steps) == plain, f"seed {seed}"
    assert drafted > 1000


def _rejection_joint(samples: int) -> tuple[np.ndarray, np.ndarray]:
    counts = np.zeros((checks.SMALL,) * 3, np.int64)
    # Tables that repeat themselves, so that copies and drafts mix within one draft.
    pair = Pair(checks.DRAFT, target_ms=_cheap, logits=checks.TARGET)
    sampled = 0
    for seed in range(samples):
        # A draft model that is dropped for losing would leave nothing to check.
        pair.session.worth = 1.0
        steps = pair.answer(
            lambda: TableSampler(1.0, 3),
            Request(seed, max_tokens=5),
            Drafting.SAMPLED,
            TableCodec(checks.SMALL, end=None),
        )
        counts[tuple(emitted(steps)[:3])] += 1
        sampled += sum(step.drafted for step in steps if step.drafter == "draft")
    assert sampled > samples / 2
    return counts, samples * checks._expected_joint(3)


def test_rejection_under_the_policy_keeps_the_distribution() -> None:
    """Chi-square on the joint of three tokens, with the policy choosing lengths and mixing sources."""
    counts, expected = _rejection_joint(20_000)
    statistic, bound = checks.chi_square(counts, expected)
    assert statistic < bound


def test_dropping_a_sampled_draft_for_its_tokens_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fault that the policy must not make: looking at what was drawn, and keeping only what pleases."""
    honest = Policy.choose

    def choose(self: Policy, room: int, step: int) -> Draft:
        draft = honest(self, room, step)
        pleases = draft.q is None or all(q is None or q.of(x) > 0.4 for x, q in zip(draft.tokens, draft.q, strict=True))
        return draft if pleases else Draft("none")

    monkeypatch.setattr(Policy, "choose", choose)
    counts, expected = _rejection_joint(8_000)
    statistic, bound = checks.chi_square(counts, expected)
    assert statistic > bound


def _ms_per_token(steps: Sequence[Step]) -> float:
    return sum(step.verify_ms + step.draft_ms for step in steps) / sum(len(step.tokens) for step in steps)


def _settled(pair: Pair, steps: int = 400) -> list[Step]:
    """The steps of a long greedy answer after the first fifty. A long table does not repeat itself."""
    taken = pair.answer(_warm, Request(3, max_tokens=steps), codec=TableCodec(end=None))
    return taken[50:]


def _is_as_fast_as_plain(pair: Pair, plain_ms: float = 1.0) -> None:
    steps = _settled(pair)
    assert _ms_per_token(steps) < 1.05 * plain_ms
    assert any(decision and decision.off_reason for decision in pair.decisions[-50:])


def test_a_draft_that_never_agrees_is_dropped() -> None:
    """It says the opposite of the target, as surely as it can."""
    pair = Pair(-6.0 * LOGITS, target_ms=_cheap)
    pair.session.chain.lookup = None
    _is_as_fast_as_plain(pair)


def test_a_draft_slower_than_the_target_is_not_used() -> None:
    """Even though it is right every time."""
    pair = Pair(LOGITS, target_ms=_cheap, draft_ms=lambda width: 1.5)
    pair.session.chain.lookup = None
    _is_as_fast_as_plain(pair)


def _steep(width: int) -> float:
    return float(width)


def test_a_curve_measured_under_load_is_corrected() -> None:
    """Plain steps looked slow when they were timed, wide ones cheap: in truth every token costs the same."""
    believed = {1: 3.0, 2: 3.1, 5: 3.3, 9: 3.6, 33: 5.0}
    pair = Pair(LOGITS + 0.5 * tables(seed=9), target_ms=_steep, believed=believed)
    _is_as_fast_as_plain(pair)


def test_a_curve_that_changes_while_answering_is_followed() -> None:
    """From a device where wide passes are nearly free to one where every token costs the same."""
    device = {"ms": _cheap}
    pair = Pair(LOGITS + 0.5 * tables(seed=9), target_ms=lambda width: device["ms"](width))
    before = pair.answer(_warm, Request(3, max_tokens=300), codec=TableCodec(end=None))
    assert _ms_per_token(before) < 0.8
    device["ms"] = _steep
    _is_as_fast_as_plain(pair)


def test_a_machine_that_slows_down_as_a_whole_changes_nothing() -> None:
    """Load and heat slow every pass alike: what paid before pays now."""
    device = {"factor": 1.0}
    pair = Pair(
        LOGITS + 0.5 * tables(seed=9),
        target_ms=lambda width: device["factor"] * _cheap(width),
        draft_ms=lambda width: device["factor"] * 0.1,
    )
    before = pair.answer(_warm, Request(3, max_tokens=300), codec=TableCodec(end=None))
    device["factor"] = 4.0
    after = pair.answer(_warm, Request(4, max_tokens=300), codec=TableCodec(end=None))[50:]
    assert _ms_per_token(after) / 4.0 < 1.15 * _ms_per_token(before)


def test_every_decision_can_be_explained() -> None:
    """What a step promised beats plain decoding, or there is a reason for having none."""
    pair = Pair(LOGITS + 0.5 * tables(seed=9), target_ms=_cheap)
    pair.answer(_warm, Request(3, max_tokens=200), codec=TableCodec(end=None))
    assert len(pair.decisions) > 50
    for decision in pair.decisions:
        assert decision is not None
        assert (decision.off_reason is None) == (decision.length > 0)
        assert decision.promised_rate >= decision.plain_rate * 0.8


def test_vocabulary_is_that_of_the_tables() -> None:
    """The tables above are what the fakes say they are."""
    assert LOGITS.shape == (VOCABULARY,) * 3
