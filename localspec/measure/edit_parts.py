"""Lookup that knows the document with one of its parts left out: what each part gives. docs/edits.md says what they are."""

from collections.abc import Callable, Mapping, Sequence

from localspec.engine.calibration import NestedRates
from localspec.engine.drafters.base import Draft
from localspec.engine.drafters.document_place import Anchor
from localspec.engine.drafters.edit_guesses import _SUB, EditGuesses
from localspec.engine.drafters.edit_memory import BARE
from localspec.engine.drafters.place import PlaceLookup, Priors, shipped_priors
from localspec.engine.drafters.promises import Promises
from localspec.measure.edit_replay import Piece

MakePlace = Callable[[Piece, Priors | None], PlaceLookup]
"""Called with the bytes of a token and what is known beforehand; None: what is shipped."""


class _NoMemory(PlaceLookup):
    def observe(self, tokens: Sequence[int]) -> None:
        super().observe(tokens)
        self._memory.clear()


class _NoNeighbors(PlaceLookup):
    def observe(self, tokens: Sequence[int]) -> None:
        super().observe(tokens)
        for first, rules in self._memory.by_first.items():
            self._memory.by_first[first] = [rule for rule in rules if rule.form == BARE]


class _NearestAlone(EditGuesses):
    def _of_anchor(self, anchor: Anchor, emitted: int, end: int, newest: bool) -> list[tuple[int, int]]:
        return []


class _TokensAlone(EditGuesses):
    def _of_anchor(self, anchor: Anchor, emitted: int, end: int, newest: bool) -> list[tuple[int, int]]:
        return [found for found in super()._of_anchor(anchor, emitted, end, newest) if found[1] == _SUB]


def _guessing(kind: type[EditGuesses]) -> MakePlace:
    def make(piece: Piece, priors: Priors | None = None) -> PlaceLookup:
        lookup = PlaceLookup(piece, priors)
        lookup._guesses = kind(lookup._stream, lookup._rates["guesses"], lookup._guesses._classes)
        return lookup

    return make


class _NoVotes(PlaceLookup):
    def _amid_an_edit(self, voted: Draft, most: int) -> Draft:
        return super()._amid_an_edit(Draft(self.name), most)


class _NoJump(PlaceLookup):
    def _far_jump(self) -> None:
        pass


class _Fixed(NestedRates):
    def learn(self, hit: float, *keys: int) -> None:
        pass


def _unlearning(piece: Piece, priors: Priors | None = None) -> PlaceLookup:
    """With the chances that are known beforehand, for ever."""
    lookup, known = PlaceLookup(piece, priors), shipped_priors() if priors is None else priors
    rates = lookup._rates
    for name in rates:
        rates[name] = _Fixed(known.get(name, ()))
    lookup._memory._trust, lookup._walk._rates = rates["edits"], rates["copies"]
    lookup._guesses._rates = rates["guesses"]
    return lookup


class _Trusted(Promises):
    @property
    def doubt(self) -> float:
        return 1.0

    def corrected(self, draft: Draft) -> Draft:
        return draft


class _AsPromised(EditGuesses):
    @property
    def correction(self) -> float:
        return 1.0


def _uncorrected(piece: Piece, priors: Priors | None = None) -> PlaceLookup:
    lookup = _guessing(_AsPromised)(piece, priors)
    lookup._promises = _Trusted()
    return lookup


class _RunningRate(PlaceLookup):
    @property
    def calibrated(self) -> bool:
        return False


PARTS: Mapping[str, MakePlace] = {
    "no-memory": _NoMemory,
    "no-neighbors": _NoNeighbors,
    "no-guesses": _guessing(_NearestAlone),
    "no-words": _guessing(_TokensAlone),
    "no-votes": _NoVotes,
    "no-jump": _NoJump,
    "no-learning": _unlearning,
    "no-correction": _uncorrected,
    "no-horizon": _RunningRate,
}
"""By the part that is left out."""
