"""The checks that stand guard over exactness. Each passes on the code as it is and must fail on a planted fault."""

import itertools
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from fakes import (
    VOCABULARY,
    Adversary,
    Switching,
    TableCodec,
    TableModel,
    TableSampler,
    Unlearning,
    answer,
    emitted,
    tables,
)
from localspec.engine.distribution import Distribution
from localspec.engine.drafters.base import Draft
from localspec.engine.drafters.draft_model import Drafting, DraftModel
from localspec.engine.drafters.lookup import Lookup
from localspec.engine.generate import Request

SMALL = 4
"""Vocabulary of the statistical checks: 64 sequences of three tokens."""
TARGET, DRAFT = tables(21, SMALL, 1.2), tables(22, SMALL, 1.2)
LOGITS = tables(seed=7)


class CheckFailed(AssertionError):  # noqa: N818
    """A check has found a fault."""


def demand(holds: bool, complaint: str) -> None:
    """Fail a check."""
    if not holds:
        raise CheckFailed(complaint)


class FixedLength(Unlearning):
    """A policy of one drafter and one draft length."""

    def __init__(self, drafter: object, length: int) -> None:
        self._drafter, self._length = drafter, length

    def choose(self, room: int, step: int) -> Draft:
        limit = min(room, self._length)
        return self._drafter.propose(limit, step) if limit > 0 else Draft("none")  # type: ignore[attr-defined]


# --- statistics: rejection mode ---------------------------------------------------------------------------------------


def joint_of_three(samples: int, top_k: int = 3, length: int = 2) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Counts of all sequences of three tokens that the loop emits with a sampled draft, and what they should be.

    Both of shape (V, V, V). A draft of two: the third token is a bonus token, a correction or a token of the next step.
    """
    counts = np.zeros((SMALL,) * 3, np.int64)
    target, draft = TableModel(TARGET), TableModel(DRAFT)
    codec = TableCodec(SMALL, end=None)
    for seed in range(samples):
        drafter = DraftModel(draft, SMALL)
        draft.truncate(0)
        sampler = TableSampler(1.0, top_k)
        drafter.observe([0, 1])
        drafter.begin(TableSampler(1.0, top_k), Drafting.SAMPLED, seed)
        drafter.rewind(0)
        steps = answer(
            target,
            sampler,
            prompt=(0, 1),
            drafters=[drafter],
            policy=FixedLength(drafter, length),
            request=Request(seed, max_tokens=4),
            codec=codec,
        )
        counts[tuple(emitted(steps)[:3])] += 1
    return counts, samples * _expected_joint(top_k)


def _expected_joint(top_k: int) -> NDArray[np.float64]:
    sampler = TableSampler(1.0, top_k)

    def dense(before: int, last: int) -> NDArray[np.float64]:
        p = sampler.distribution(TARGET[before, last])
        full = np.zeros(SMALL)
        full[p.ids] = p.probs
        return full

    joint = np.zeros((SMALL,) * 3)
    for a, b in itertools.product(range(SMALL), repeat=2):
        joint[a, b] = dense(0, 1)[a] * dense(1, a)[b] * dense(a, b)
    return joint


def chi_square(counts: NDArray[np.int64], expected: NDArray[np.float64]) -> tuple[float, float]:
    """The statistic over the possible cells, and the bound that chance passes once in ten thousand times.

    The bound is Wilson and Hilferty's approximation of the quantile (1931), good to a per cent here.
    """
    possible = expected > 0
    statistic = float(((counts - expected)[possible] ** 2 / expected[possible]).sum())
    freedom = int(possible.sum()) - 1
    spread = 2 / (9 * freedom)
    return statistic, freedom * (1 - spread + 3.719 * spread**0.5) ** 3


def check_joint(samples: int = 8_000) -> None:
    """Chi-square of the joint of three tokens, p > 1e-4."""
    counts, expected = joint_of_three(samples)
    statistic, bound = chi_square(counts, expected)
    demand(statistic < bound, f"chi-square {statistic:.0f} of the joint of three tokens, bound {bound:.0f}")


def check_tv(samples: int = 8_000) -> None:
    """Total variation distance of the joint, against what sampling noise of that size gives at most."""
    counts, expected = joint_of_three(samples)
    distance = float(abs(counts - expected).sum()) / 2 / samples
    # The mean over cells of sqrt(2 p (1 - p) / (pi n)), halved and summed, is the expected distance; 1.5 times is rare.
    p = expected / samples
    floor = float(np.sqrt(2 * p * (1 - p) / (np.pi * samples)).sum()) / 2
    demand(distance < 1.5 * floor, f"TV {distance:.4f} from the target's distribution, noise floor {floor:.4f}")


def check_support(samples: int = 4_000) -> None:
    """No token outside top-k is ever emitted."""
    counts, expected = joint_of_three(samples, top_k=2)
    outside = int(counts[expected == 0].sum())
    demand(outside == 0, f"{outside} of {samples} texts hold a token outside top-k")


# --- equality: match mode ---------------------------------------------------------------------------------------------


def oracle(logits: NDArray[np.float64], seed: int, make: Callable[[], TableSampler]) -> Callable[..., list[int]]:
    """Knows what the target will say next."""

    def tell(stream: Sequence[int], length: int) -> list[int]:
        if length == 0:
            return []
        plain = answer(TableModel(logits), make(), prompt=stream, request=Request(seed, max_tokens=length))
        return emitted(plain)

    return tell


def _cool() -> TableSampler:
    return TableSampler(0.9, 6)


def _penalized() -> TableSampler:
    return TableSampler(0.9, 0, penalty=1.5)


def check_equality(make: Callable[[], TableSampler] = _cool, seeds: int = 40, length: int = 40) -> None:
    """The same text with speculation on and off, for random drafts of every length up to 16, right and wrong ones."""
    for seed in range(seeds):
        request = Request(seed, max_tokens=length)
        plain = emitted(answer(TableModel(LOGITS), make(), request=request))
        drafters = [Adversary("guess", seed), Adversary("oracle", seed + 1, oracle(LOGITS, seed, make))]
        steps = answer(TableModel(LOGITS), make(), drafters=drafters, policy=Switching(drafters, seed), request=request)
        demand(emitted(steps) == plain, f"seed {seed} says something else with speculation on")


def check_equality_with_penalties() -> None:
    """The same with a repetition penalty, which must see the drafted tokens before it and no refused ones."""
    check_equality(_penalized)


def check_every_length() -> None:
    """Right drafts of every length from 1 to 16 are accepted whole and change nothing."""
    request = Request(3, max_tokens=60)
    codec = TableCodec(end=None)

    def sampler() -> TableSampler:
        return TableSampler(1.0)

    plain = emitted(answer(TableModel(LOGITS), sampler(), request=request, codec=codec))
    for length in range(1, 17):
        drafter = _Foretelling([0, 1, *plain])
        steps = list(
            answer(
                TableModel(LOGITS),
                sampler(),
                drafters=[drafter],
                policy=FixedLength(drafter, length),
                request=request,
                codec=codec,
            )
        )
        demand(emitted(steps) == plain, f"drafts of {length} change the text")
        demand(all(step.accepted == step.drafted for step in steps), f"right drafts of {length} were refused")
        fewest = -(-60 // (length + 1))
        demand(len(steps) == fewest, f"{len(steps)} steps where {fewest} are enough with drafts of {length}")


class _Foretelling:
    """Drafts the text that is going to come."""

    name = "oracle"

    def __init__(self, text: list[int]) -> None:
        self._text, self.stream = text, list[int]()

    def observe(self, tokens: Sequence[int]) -> None:
        self.stream.extend(tokens)

    def rewind(self, length: int) -> None:
        del self.stream[length:]

    def propose(self, limit: int, step: int) -> Draft:
        start = len(self.stream)
        tokens = tuple(self._text[start : start + limit])
        return Draft(self.name, tokens, (1.0,) * len(tokens))


def check_ends() -> None:
    """Nothing is kept after an end token or a stop string inside a draft."""
    for seed in range(150):
        for stop in ((), ("ca",), ("b", "dd")):
            request = Request(seed, max_tokens=50, stop=stop)
            logits = tables(seed=8, end_bias=1.0)
            plain = list(answer(TableModel(logits), _cool(), request=request))
            drafter = Adversary("oracle", seed, oracle(logits, seed, _cool))
            policy = FixedLength(drafter, 9)
            steps = list(answer(TableModel(logits), _cool(), drafters=[drafter], policy=policy, request=request))
            demand(emitted(steps) == emitted(plain), f"seed {seed} goes on after its end, or stops before it")
            text = "".join(step.text for step in steps)
            demand(text == "".join(step.text for step in plain), f"seed {seed} shows another text")
            demand(not any(string in text for string in stop), f"seed {seed} shows its stop string")
            demand(steps[-1].finish == plain[-1].finish, f"seed {seed} gives another reason for its end")


def check_edges() -> None:
    """An answer never has more tokens than asked for, and no pass goes past the end of the context."""
    for asked, length in itertools.product((1, 2, 3, 7, None), (6, 9, 24)):
        target = TableModel(LOGITS, length=length)
        drafter = _Foretelling([])
        drafter._text = [0, 1, *[5] * 100]
        codec = TableCodec(end=None)
        request = Request(5, max_tokens=asked)
        plain = emitted(answer(TableModel(LOGITS, length=length), _cool(), request=request, codec=codec))
        try:
            policy = FixedLength(drafter, 16)
            steps = answer(target, _cool(), drafters=[drafter], policy=policy, request=request, codec=codec)
            tokens = emitted(steps)
        except AssertionError as error:
            raise CheckFailed(f"asked for {asked} in a context of {length}: {error}") from error
        demand(asked is None or len(tokens) <= asked, f"{len(tokens)} tokens where {asked} were asked for")
        demand(tokens == plain, f"another text at the edge: {asked} tokens, context {length}")
        demand(len(tokens) == min(asked or 10**6, length - 1), "the answer ends before its edge")


def check_logprobs() -> None:
    """Log-probabilities of accepted tokens are those of plain decoding."""
    request = Request(11, max_tokens=40, logprobs=True)
    plain = list(answer(TableModel(LOGITS), _cool(), request=request))
    drafter = Adversary("oracle", 4, oracle(LOGITS, 11, _cool))
    policy = FixedLength(drafter, 6)
    steps = list(answer(TableModel(LOGITS), _cool(), drafters=[drafter], policy=policy, request=request))
    demand(sum(step.accepted for step in steps) > 5, "nothing was accepted, so nothing was checked")
    ours = [value for step in steps for value in step.logprobs]
    theirs = [value for step in plain for value in step.logprobs]
    demand(len(ours) == len(theirs) and np.allclose(ours, theirs), "log-probabilities differ from plain decoding")


# --- drafters ---------------------------------------------------------------------------------------------------------


def check_self_draft() -> None:
    """The target as its own draft is right nearly always, also after steps that something else has drafted."""
    drafts = DraftModel(TableModel(LOGITS), VOCABULARY)
    drafts.begin(TableSampler(0.0), Drafting.COUPLED, 0)
    other = Adversary("other", 1)
    policy = Switching([drafts, other], seed=2, draft_max=6)
    codec = TableCodec(end=None)
    steps = list(
        answer(
            TableModel(LOGITS),
            TableSampler(0.0),
            drafters=[drafts, other],
            policy=policy,
            request=Request(0, max_tokens=400),
            codec=codec,
        )
    )
    mine = [step for step in steps if step.drafter == "draft"]
    rate = sum(step.accepted for step in mine) / max(1, sum(step.drafted for step in mine))
    demand(rate >= 0.98, f"the target as its own draft is accepted {rate:.0%}")


def check_draft_economy() -> None:
    """The draft model evaluates no token twice: as many as the stream holds, plus the refused ones."""
    context = TableModel(tables(9))
    drafts = DraftModel(context, VOCABULARY)
    drafts.begin(TableSampler(0.0), Drafting.COUPLED, 0)
    steps = list(
        answer(
            TableModel(LOGITS),
            TableSampler(0.0),
            drafters=[drafts],
            policy=FixedLength(drafts, 5),
            request=Request(0, max_tokens=200),
            codec=TableCodec(end=None),
        )
    )
    stream = 2 + sum(len(step.tokens) for step in steps)
    # The last drafted token of a step is never evaluated by the draft model, whether refused or not.
    refused = sum(max(0, step.drafted - step.accepted - 1) for step in steps)
    demand(context.evaluated <= stream + refused, f"{context.evaluated} evaluations, {stream + refused} are enough")


def check_lookup_after_edit() -> None:
    """After an edit, lookup proposes nothing from the text that was taken out."""
    lookup = Lookup()
    kept, removed, instead = [1, 2, 3, 4, 5, 6], [7, 8, 9, 9], [20, 21, 22, 23, 7, 8]
    lookup.observe([*kept, *removed])
    lookup.rewind(len(kept))
    lookup.observe(instead)
    demand(lookup.propose(8, 0).tokens == (), "lookup drafts from where something else once stood")
    lookup.observe([1, 2])
    demand(lookup.propose(3, 0).tokens == (3, 4, 5), "lookup has lost what was kept")


def distribution(probs: Sequence[float], order: Sequence[int] | None = None) -> Distribution:
    """A distribution over 0..n-1, its candidates listed in any order."""
    ids = np.arange(len(probs), dtype=np.int32) if order is None else np.array(order, np.int32)
    return Distribution(ids, np.array(probs, np.float64)[ids])
