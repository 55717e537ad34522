"""Guesses of where the document goes on while the answer is in the middle of an edit.

Each is a hypothesis about the edit: so many tokens were replaced one for one, so many words were, something was put in before
the place. Every guess is judged by the next token, used or not, and its trust is learned by kind.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from localspec.engine.calibration import NestedRates
from localspec.engine.drafters.document_place import Anchor, DocumentPlace
from localspec.engine.drafters.pieces import CONTINUES
from localspec.engine.drafters.promises import Share

_SUB, _WORD, _NEXT_WORD, _INS = 1, 2, 4, 8
_OLDER = 4
"""How far the bits of the older anchor's guesses are moved."""
_LOCAL = 256
"""Kinds of guesses, as bits: tokens replaced one for one; words one for one; the word behind; something put in. Places where
the last token occurs are 1, 2 and 3 times _LOCAL, by nearness, where no other guess says them."""
_LONGEST_INS, _LONGEST_WORD, _NEAREST = 24, 8, 3
_AWAY = (2, 3, 4, 5, 7, 11, 17, 25)
_LUCK = (0.2, 0.4, 0.6)
_LUCK_AT_FIRST, _LUCK_RATE = 0.45, 0.15
_PRIOR = 0.1
_SURE = (0.35, 0.65)
"""How sure lookup is of its own next token, in classes."""


@dataclass(slots=True, frozen=True)
class Guess:
    """The document goes on at `place`, with this probability for its next token."""

    place: int
    chance: float
    keys: tuple[int, ...]


class EditGuesses:
    """The guesses of one answer, and the trust in their kinds that outlives it."""

    def __init__(self, stream: Sequence[int], rates: NestedRates, class_of: Mapping[int, int]) -> None:
        self._stream, self._rates, self._classes = stream, rates, class_of
        self._made: list[Guess] = []
        self.luck = _LUCK_AT_FIRST
        """How often the best guess has been right of late."""
        self._kept = Share()

    def begin(self) -> None:
        """A new answer."""
        self._made, self.luck = [], _LUCK_AT_FIRST
        self._kept = Share()

    def forget(self) -> None:
        """No guess is waiting to be judged."""
        self._made = []

    def judge(self, token: int) -> None:
        """The token that came."""
        made = self._made
        if not made:
            return
        stream = self._stream
        for guess in made:
            self._rates.learn(float(stream[guess.place] == token), *guess.keys)
        right = float(stream[made[0].place] == token)
        self.luck += _LUCK_RATE * (right - self.luck)
        self._kept.judge(made[0].chance, bool(right))
        self._made = []

    @property
    def correction(self) -> float:
        """How much more often the best guess has been right in this answer than it promised."""
        return self._kept.factor

    def make(self, where: DocumentPlace, voted: int, sure: float) -> list[Guess]:
        """All guesses, the likeliest first; `voted`: the next token by lookup's votes, -1 for none, and how sure it is of
        it."""
        stream, classes = self._stream, self._classes
        last = classes[stream[-1]]
        away = where.away
        mood = bisect_left(_AWAY, away + 1) * 4 + bisect_left(_LUCK, self.luck)
        found = []
        for place, kind in self._kinds(where, away).items():
            token = stream[place]
            evidence = int(stream[place - 1] == stream[-1])
            key = (kind * 2 + evidence) * 4096
            view = 0 if voted < 0 else 1 + bisect_left(_SURE, sure) + (0 if voted == token else 3)
            keys = (key, key + 1 + mood, key + 64 + mood * 16 + classes[token] * 4 + last, key + 2048 + view)
            found.append(Guess(place, self._rates.mean(_PRIOR, *keys), keys))
        found.sort(key=lambda guess: -guess.chance)
        self._made = found
        return found

    def _kinds(self, where: DocumentPlace, away: int) -> dict[int, int]:
        """Places to go on at, with the kinds of the guesses that say so."""
        kinds: dict[int, int] = {}
        size, end = len(self._stream), where.end
        for shift, anchor in enumerate(reversed(where.anchors)):
            emitted = size - anchor.answer
            for place, kind in self._of_anchor(anchor, emitted, end, newest=shift == 0):
                if place < end:
                    kinds[place] = kinds.get(place, 0) | kind << shift * _OLDER
        rank = 0
        for place in where.near[:_NEAREST]:
            if place < end:
                rank += 1
                if place not in kinds:
                    kinds[place] = rank * _LOCAL
        return kinds

    def _of_anchor(self, anchor: Anchor, emitted: int, end: int, newest: bool) -> list[tuple[int, int]]:
        found = [(anchor.source + emitted, _SUB)]
        if emitted <= _LONGEST_WORD:
            word = self._word_after(anchor, emitted, end)
            found.append((word, _WORD))
            if newest:
                found.append((self._next_word(word + 1, end), _NEXT_WORD))
        if emitted <= _LONGEST_INS:
            found.append((anchor.source, _INS))
        return found

    def _word_after(self, anchor: Anchor, emitted: int, end: int) -> int:
        """The document's place behind as many words as the answer has put there."""
        classes, stream = self._classes, self._stream
        words = sum(classes[token] != CONTINUES for token in stream[anchor.answer : anchor.answer + emitted])
        place = anchor.source
        while place < end:
            if classes[stream[place]] != CONTINUES:
                if words == 0:
                    break
                words -= 1
            place += 1
        return place

    def _next_word(self, place: int, end: int) -> int:
        while place < end and self._classes[self._stream[place]] == CONTINUES:
            place += 1
        return place
