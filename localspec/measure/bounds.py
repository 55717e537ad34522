"""How good a policy could be, and how good it is: all arms over recorded answers, beside what nobody can beat.

The bound knows every acceptance beforehand. It holds for every way of drafting chains out of the draft model's tokens and
of copies from the text so far, the two mixed in one draft or not.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from localspec.engine.drafters.lookup import LONGEST_DRAFT
from localspec.measure.arms import AUTO, Arm, Kind
from localspec.measure.profiles import Profile
from localspec.measure.recording import Recording
from localspec.measure.replay import Session, device_ms
from localspec.measure.summary import geometric_mean


def clairvoyant_ms(recording: Recording, profile: Profile, longest: int = LONGEST_DRAFT) -> float:
    """The least time in which the answer can be written.

    A dynamic program from the answer's end: at each position the draft length k that makes the rest fastest, where every
    drafted token is right, because a wrong one costs time and gains nothing. A right token is free where a copy could give
    it: the token and the one before it stand side by side somewhere in the text that was known when the step began, and any
    lookup matches one token at least. Else it costs one pass of the draft model where that one is right, and the draft ends
    where it is not. A pass is taken to cost what the cheapest one of its width or a larger one does.
    """
    costs = [profile.target_ms(width) for width in range(1, longest + 2)]
    pass_ms = [min(costs[width:]) for width in range(longest + 1)]
    token_ms = _token_ms(recording, profile.draft_ms(1))
    count = len(recording.answer)
    rest = [0.0] * (count + 1)
    for start in range(count - 1, -1, -1):
        best, drafting = pass_ms[0] + rest[start + 1], 0.0
        # The pass gives one more token than was drafted, and none is asked for past the end.
        for k in range(1, min(longest, count - start - 1) + 1):
            price = token_ms(start, start + k - 1)
            if price is None:
                break
            drafting += price
            best = min(best, drafting + pass_ms[k] + rest[start + k + 1])
        rest[start] = best
    return rest[0]


def _token_ms(recording: Recording, look_ms: float) -> Callable[[int, int], float | None]:
    """What the right token of an answer's position costs in a step that began at an earlier one; None: nobody has it."""
    prompt = len(recording.prompt)
    text = [*recording.prompt.tolist(), *recording.answer.tolist()]
    first: dict[tuple[int, int], int] = {}
    for place, pair in enumerate(pairwise(text), start=1):
        first.setdefault(pair, place)
    agrees = recording.agrees.tolist()

    def price(start: int, position: int) -> float | None:
        place = prompt + position
        if place > 0 and first[text[place - 1], text[place]] < prompt + start:
            return 0.0
        return look_ms if agrees[position] else None

    return price


@dataclass(frozen=True)
class Verdict:
    """All arms over the same recordings on one device. Speedups over plain decoding, in the order of the recordings."""

    profile: str
    categories: tuple[str, ...]
    """Of each recording."""
    kinds: Mapping[str, Kind]
    """By arm."""
    speedups: Mapping[str, tuple[float, ...]]
    """By arm."""
    bound: tuple[float, ...]
    """What no arm can exceed."""

    @cached_property
    def by_category(self) -> dict[str, dict[str, float]]:
        """By arm and category, the geometric mean."""
        return {arm: self._grouped(speedups) for arm, speedups in self.speedups.items()}

    @cached_property
    def means(self) -> dict[str, float]:
        """By arm, the geometric mean of the categories."""
        return {arm: geometric_mean(figures.values()) for arm, figures in self.by_category.items()}

    @property
    def bound_mean(self) -> float:
        """The same of the bound."""
        return geometric_mean(self._grouped(self.bound).values())

    def worst(self, arm: str) -> tuple[str, float]:
        """The category where an arm is slowest, and its speedup there."""
        return min(self.by_category[arm].items(), key=lambda item: item[1])

    def best(self, *kinds: Kind) -> tuple[str, float]:
        """The arm of these kinds, or plain decoding, with the best mean; and that mean."""
        best = max(self._of(kinds), key=lambda arm: self.means[arm])
        return best, self.means[best]

    def best_by_category(self, *kinds: Kind) -> dict[str, float]:
        """What the best arm of these kinds, or plain decoding, reaches in each category."""
        return {
            category: max(self.by_category[arm][category] for arm in self._of(kinds))
            for category in dict.fromkeys(self.categories)
        }

    def least_share(self, arm: str, *kinds: Kind) -> tuple[str, float]:
        """The category where an arm has the smallest share of what the best one of these kinds, or plain decoding, reaches
        there; and that share."""
        best = self.best_by_category(*kinds)
        shares = {category: figure / best[category] for category, figure in self.by_category[arm].items()}
        return min(shares.items(), key=lambda item: item[1])

    def hindsight_share(self, arm: str) -> float:
        """What an arm reaches of the best arm of each prompt, itself included, as a ratio of geometric means."""
        best = [max(figures) for figures in zip(*self.speedups.values(), strict=True)]
        return geometric_mean(self.speedups[arm]) / geometric_mean(best)

    def _of(self, kinds: Sequence[Kind]) -> list[str]:
        return [arm for arm, kind in self.kinds.items() if kind is Kind.PLAIN or kind in kinds]

    def _grouped(self, speedups: Sequence[float]) -> dict[str, float]:
        groups: dict[str, list[float]] = {}
        for category, figure in zip(self.categories, speedups, strict=True):
            groups.setdefault(category, []).append(figure)
        return {category: geometric_mean(figures) for category, figures in groups.items()}


def judge(recordings: Sequence[Recording], profile: Profile, arms: Sequence[Arm]) -> Verdict:
    """Every arm over all recordings in their order, each as if it ran alone in a session of its own."""
    plain = profile.target_ms(1)
    speedups = {}
    for arm in arms:
        session, make = Session(profile), arm.start()
        replays = (session.replay(recording, make) for recording in recordings)
        speedups[arm.name] = tuple(plain * totals.tokens / device_ms(totals) for totals in replays)
    return Verdict(
        profile=profile.name,
        categories=tuple(recording.category for recording in recordings),
        kinds={arm.name: arm.kind for arm in arms},
        speedups=speedups,
        bound=tuple(plain * len(r.answer) / clairvoyant_ms(r, profile) for r in recordings),
    )


def verdict_lines(verdict: Verdict, arm: str = AUTO) -> Iterator[str]:
    """A table of all arms, and how one of them stands against the others."""
    yield f"{verdict.profile:<16}{'mean':>7}{'worst category':>32}"
    for name, mean in verdict.means.items():
        category, worst = verdict.worst(name)
        yield f"  {name:<14}{mean:>7.3f}{category:>25}{worst:>7.3f}"
    yield f"  {'bound':<14}{verdict.bound_mean:>7.3f}"
    mean = verdict.means[arm]
    for kinds, what in (((Kind.FIXED,), "fixed arm"), ((Kind.FIXED, Kind.RULE), "fixed arm or rule")):
        name, single = verdict.best(*kinds)
        by_category = geometric_mean(verdict.best_by_category(*kinds).values())
        category, share = verdict.least_share(arm, *kinds)
        yield f"  {arm} / best single {what} ({name}, {single:.3f}): {mean / single:.3f}"
        yield f"  {arm} / best {what} of each category ({by_category:.3f}): {mean / by_category:.3f}"
        yield f"  {arm} / best {what} of a category, at least: {share:.3f} ({category})"
    yield f"  {arm} / best arm of each prompt: {verdict.hindsight_share(arm):.3f}"
    yield f"  {arm} / bound: {mean / verdict.bound_mean:.3f}"
