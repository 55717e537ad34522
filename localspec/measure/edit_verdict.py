"""What came out of a comparison of edits on one device: per class and arm, over all classes, and against what is asked.

Every mean is geometric: over the pairs of a class, then over the classes, so that no class counts for more than another.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from localspec.measure.edit_arms import DIFF, DISTANCE, PLACE, SUFFIX, VOTES
from localspec.measure.edit_replay import Replayed
from localspec.measure.summary import geometric_mean

TEXT_RULES, DIFF_RULES = (SUFFIX, VOTES), (DIFF, DISTANCE)
"""What a lookup that knows the document is measured against."""
FLAT = ("cuda", "mlx")
"""Devices on which long drafts are cheap."""
LEAST_OF_PLAIN = 0.95
_LEAST_TOKENS, _LEAST_SPEED = 1.3, 1.15


@dataclass(frozen=True, slots=True)
class Pace:
    """How far a step gets, and how fast."""

    tokens_per_step: float
    speed: float
    """Over plain decoding, drafting itself not counted."""

    @classmethod
    def of(cls, replayed: Sequence[Replayed]) -> "Pace":
        """The geometric mean of at least one pair."""
        return cls.mean(Pace(one.tokens_per_step, one.speed) for one in replayed)

    @classmethod
    def mean(cls, paces: Iterator["Pace"]) -> "Pace":
        """The geometric mean of at least one."""
        tokens, speeds = zip(*((pace.tokens_per_step, pace.speed) for pace in paces), strict=True)
        return cls(geometric_mean(tokens), geometric_mean(speeds))


@dataclass(frozen=True, slots=True)
class Claim:
    """Something that is asked of an arm, and what it came to."""

    what: str
    figures: Mapping[str, tuple[float, float]]
    """By name, the figure and the least that is asked."""

    @property
    def holds(self) -> bool:
        """Whether every figure is as large as is asked."""
        return all(figure >= least for figure, least in self.figures.values())


@dataclass(frozen=True)
class EditVerdict:
    """All arms over the same pairs on one device."""

    profile: str
    replayed: Mapping[str, Sequence[Replayed]]
    """By arm, in the order of the pairs."""

    @cached_property
    def by_class(self) -> dict[str, dict[str, Pace]]:
        """By class, in the order of the pairs, then by arm."""
        classes = dict.fromkeys(one.pair.edit_class for found in self.replayed.values() for one in found)
        return {
            name: {
                arm: Pace.of([one for one in found if one.pair.edit_class == name])
                for arm, found in self.replayed.items()
            }
            for name in classes
        }

    @cached_property
    def means(self) -> dict[str, Pace]:
        """By arm, over the classes."""
        return {arm: Pace.mean(paces[arm] for paces in self.by_class.values()) for arm in self.replayed}

    def count(self, edit_class: str) -> int:
        """How many pairs a class has."""
        found = next(iter(self.replayed.values()))
        return sum(one.pair.edit_class == edit_class for one in found)

    def worst_pair(self, arm: str) -> Replayed:
        """The one where an arm is slowest against plain decoding."""
        return min(self.replayed[arm], key=lambda one: one.speed)

    def worst_class(self, arm: str) -> tuple[str, float]:
        """The one where an arm is slowest against plain decoding, and its speed there."""
        return min(((name, paces[arm].speed) for name, paces in self.by_class.items()), key=lambda item: item[1])

    def best(self, arms: Sequence[str]) -> Pace:
        """What the best of these arms reaches over all classes; for each of the two figures it may be another one."""
        means = [self.means[arm] for arm in arms]
        return Pace(max(pace.tokens_per_step for pace in means), max(pace.speed for pace in means))

    def claims(self) -> Iterator[Claim]:
        """What is asked of a lookup that knows the document, as far as the arms for it took part."""
        if PLACE not in self.replayed:
            return
        own = self.means[PLACE]
        for rules in (TEXT_RULES, DIFF_RULES):
            if set(rules) <= set(self.replayed):
                other = self.best(rules)
                figures = {"speed": (own.speed / other.speed, _LEAST_SPEED if self.profile in FLAT else 1.0)}
                if self.profile in FLAT:
                    ratio = own.tokens_per_step / other.tokens_per_step
                    figures = {"tokens per step": (ratio, _LEAST_TOKENS), **figures}
                yield Claim(f"{PLACE} over the better of {' and '.join(rules)}", figures)
        name, slowest = self.worst_class(PLACE)
        yield Claim(f"{PLACE} over plain decoding, slowest class ({name})", {"speed": (slowest, LEAST_OF_PLAIN)})
