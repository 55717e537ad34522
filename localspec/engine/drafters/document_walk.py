"""Walking ahead along a document: the tokens that would come, known edits put in, and how likely each of them is.

A token's chance depends on how long the copy has been going on, on the kind of token and on how much this answer edits; it is
learned from every token that was judged, and smoothed from the coarse to the fine.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from localspec.engine.calibration import NestedRates
from localspec.engine.drafters.edit_memory import EditMemory, Patch

LEAST_SURVIVAL = 0.04
"""A draft ends where it is less likely than this to be reached."""
_RUNS = (0, 1, 2, 3, 4, 6, 10, 20, 40, 80)
_LONGEST_CLASS, _PATCHED = len(_RUNS), len(_RUNS) + 1
_PRIORS = (0.93, 0.83, 0.87, 0.90, 0.92, 0.94, 0.947, 0.976, 0.986, 0.989, 0.996, 0.93)
"""A token's chance by how many before it have come as expected, or within a remembered edit, before anything is known."""
_CLASS_OF_RUN = tuple(bisect_left(_RUNS, run) for run in range(_RUNS[-1] + 2))
_LONGEST_RUN = len(_CLASS_OF_RUN) - 1
_DENSITIES = (0.01, 0.03, 0.07, 0.15)
_WIDE = 1024
_TAKEN, _DECLINED = 1 << 16, 2 << 16
"""Where the keys of tokens begin that begin a remembered edit, or are copied although there is one."""

Keys = tuple[int, ...]
Said = tuple[int, float, Keys]
"""A token, its chance where it is reached, and the keys of what is believed of such tokens."""
_Told = tuple[Patch | None, float, Keys]
"""The edit that is expected, or none, with the chance of what is expected and its keys."""


@dataclass(slots=True)
class Start:
    """Where a walk begins."""

    place: int
    end: int
    """The document's."""
    run: int
    density: float
    patch: Patch | None = None
    """The edit that the answer is in the middle of."""
    patched: int = 0
    guess: Said | None = None
    """The first token, where the place is a guess."""


class DocumentWalk:
    """What walking ahead needs, and the rates that it learns."""

    def __init__(
        self, stream: Sequence[int], memory: EditMemory, rates: NestedRates, classes: Mapping[int, int]
    ) -> None:
        self._stream, self._memory, self._rates, self._classes = stream, memory, rates, classes

    def ahead(self, start: Start, most: int, doubt: float) -> list[Said]:
        """Up to `most` tokens. `doubt`: how much likelier errors are in this answer than the rates say."""
        stream, rules, classes = self._stream, self._memory.by_first, self._classes
        place, run, patch, patched = start.place, start.run, start.patch, start.patched
        guessed, density = int(start.guess is not None), bisect_left(_DENSITIES, start.density)
        known: dict[int, tuple[float, Keys]] = {}
        reached = 1.0
        said: list[Said] = []
        if start.guess:
            said, reached, place, run = [start.guess], start.guess[1], place + 1, run + 1
        while len(said) < most and reached >= LEAST_SURVIVAL:
            told: _Told | None = None
            if patch is not None:
                token = patch.tokens[patched]
            elif place < start.end:
                token = stream[place]
                if token in rules and (told := self._remembered(place, start.end)) and told[0]:
                    patch, patched, token = told[0], 0, told[0].tokens[0]
            else:
                break
            if told:
                _, chance, keys = told
            else:
                length = _PATCHED if patch is not None else _CLASS_OF_RUN[run] if run < _LONGEST_RUN else _LONGEST_CLASS
                coarse = (length * 2 + guessed) * _WIDE
                fine = coarse + 1 + classes[token] * 5 + density
                # Most tokens of a copy are alike.
                found = known.get(fine)
                if found is None:
                    wrong = (1.0 - self._rates.mean(_PRIORS[length], coarse, fine)) * doubt
                    found = known[fine] = (max(0.0, 1.0 - wrong), (coarse, fine))
                chance, keys = found
            reached *= chance
            said.append((token, chance, keys))
            run += 1
            if patch is None:
                place += 1
            else:
                place, patch, patched = _onward(place, patch, patched)
        if said and reached < LEAST_SURVIVAL:
            said.pop()
        return said

    def learn(self, right: bool, keys: Keys) -> None:
        """A token that was said has been judged."""
        self._rates.learn(float(right), *keys)

    def _remembered(self, place: int, end: int) -> _Told | None:
        """The remembered edit that is expected here, or none although there is one; with the chance of either."""
        found = self._memory.applying(self._stream, place, end)
        if not found:
            return None
        best = found[0]
        key = _TAKEN + best.rule.key
        chance = self._rates.mean(best.trust, key)
        if chance > 0.5:
            return best, chance, (key,)
        key = _DECLINED + best.rule.key
        return None, self._rates.mean(1.0 - best.trust, key), (key,)


def _onward(place: int, patch: Patch, patched: int) -> tuple[int, Patch | None, int]:
    """One token further in an edit, or behind it."""
    return (place, patch, patched + 1) if patched + 1 < len(patch.tokens) else (patch.resume, None, 0)
