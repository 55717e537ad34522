"""Lookup that knows documents: it follows the place in the text that is being copied or edited.

While the answer copies a document, the document's next tokens are the draft, edits that have been seen before put in. Behind
a disagreement it guesses where the document goes on, instead of waiting for the next match of several tokens. Plain lookup,
by its votes, is a rival there; without a document it is all there is.
How likely each token is, is learned from every verified token.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from localspec.engine.calibration import NestedRates
from localspec.engine.drafters.base import Draft
from localspec.engine.drafters.document_place import DocumentPlace
from localspec.engine.drafters.document_walk import DocumentWalk, Said, Start
from localspec.engine.drafters.edit_guesses import EditGuesses
from localspec.engine.drafters.edit_memory import EditMemory
from localspec.engine.drafters.lookup import LONGEST_DRAFT, Lookup
from localspec.engine.drafters.pieces import PieceClasses
from localspec.engine.drafters.promises import Promises

Priors = Mapping[str, Sequence[tuple[int, float, float]]]
"""Key, hits and trials of cells."""
Span = tuple[int, int]
"""Where a document lies in the stream: its first token, and the one behind its last."""

PRIORS = Path(__file__).with_name("place_priors.json")
"""What is known before the first answer; made by measure/place_priors."""

_FAR = 6
"""Tokens that must match for the answer to be at a far place of a document."""
_NEAR = 2
_PROVEN = 24
"""Tokens copied in a row that show an answer to be a copy, where nobody has said so."""
_SUREST = 0.98


class PlaceLookup:
    """Drafts by copying, from the right place of a document."""

    name = "lookup"

    def __init__(self, piece: Callable[[int], bytes], priors: Priors | None = None) -> None:
        """`piece`: the bytes of a token. `priors`: what is known beforehand, by table; None: what is shipped."""
        known = shipped_priors() if priors is None else priors
        self._rates = {name: NestedRates(known.get(name, ())) for name in ("edits", "copies", "guesses")}
        self._votes = Lookup()
        self._stream = self._votes.stream
        self._memory = EditMemory(self._rates["edits"])
        self._piece, classes = piece, PieceClasses(piece)
        self._where = DocumentPlace(self._stream, self._memory)
        self._walk = DocumentWalk(self._stream, self._memory, self._rates["copies"], classes)
        self._guesses = EditGuesses(self._stream, self._rates["guesses"], classes)
        self._promises = Promises()
        self._documents: tuple[Span, ...] = ()
        self._copies = False
        """Whether this answer is known to be a copy."""
        self._said: list[Said] = []
        self._voted: tuple[int, float] | None = None
        """The votes' first token and its chance, where they were a rival."""

    @property
    def learned(self) -> dict[str, dict[int, tuple[float, float]]]:
        """Hits and trials of every cell, by the name of a table."""
        return {name: rates.cells for name, rates in self._rates.items()}

    @property
    def stream(self) -> Sequence[int]:
        """The text as it has been followed so far."""
        return self._stream

    @property
    def calibrated(self) -> bool:
        """Whether an answer copies a document, and promises are corrected by what became of them in it."""
        return self._copies

    @property
    def documents(self) -> tuple[Span, ...]:
        """Those of the answer that has begun."""
        return self._documents

    def untaught(self) -> "PlaceLookup":
        """Another one for the same vocabulary, which has seen nothing yet."""
        return PlaceLookup(self._piece)

    def begin(self, documents: Sequence[Span] = (), rewrites: bool = False) -> None:
        """An answer begins; the documents are these spans of the stream so far. `rewrites`: the answer is an edited copy of
        the last of them. What is already there of an answer that goes on is followed, too."""
        self._memory.clear()
        self._guesses.begin()
        self._promises.begin()
        self._said, self._voted = [], None
        self._documents = tuple((start, end) for start, end in documents if 0 <= start < end < len(self._stream))
        self._copies = rewrites and bool(self._documents)
        if not self._documents:
            return
        self._where.enter(self._documents[-1], None)
        self._far_jump()
        if rewrites and not self._where.copying:
            self._where.enter(self._documents[-1], self._documents[-1][0])

    def observe(self, tokens: Sequence[int]) -> None:
        """Judge what was said by what really came, then follow."""
        start, where = len(self._stream), self._where
        if self._documents and tokens:
            self._judge(tokens)
        self._votes.observe(tokens)
        if self._documents:
            for position, token in enumerate(tokens, start):
                where.follow(token, position)
            self._copies = self._copies or where.run >= _PROVEN

    def rewind(self, length: int) -> None:
        """Take back everything from position `length` on. A place belongs to an answer, and that one is over."""
        self._documents, self._copies = (), False
        self._said, self._voted = [], None
        self._guesses.forget()
        self._votes.rewind(length)

    def propose(self, limit: int, step: int) -> Draft:
        """What could follow the stream, as far as it is likely to be reached at all."""
        self._said, self._voted = [], None
        where, most = self._where, min(limit, LONGEST_DRAFT)
        if self._documents and not where.copying:
            self._far_jump()
        if self._documents and where.copying:
            return self._follow(Start(where.at, where.end, where.run, where.density, where.patch, where.patched), most)
        voted = self._votes.propose(limit, step)
        return self._amid_an_edit(voted, most) if self._copies else voted

    def extend(self, after: Sequence[int], limit: int) -> Draft:
        """The same, if `after` followed the stream: how a draft by somebody else could go on. Not judged later."""
        start = self._start_behind(after)
        if start is None:
            return self._votes.extend(after, limit)
        said = self._walk.ahead(start, min(limit, LONGEST_DRAFT), self._promises.doubt)
        return _draft(self.name, said)

    def _amid_an_edit(self, voted: Draft, most: int) -> Draft:
        """The best guess of where the document goes on, or the votes, whichever promises more."""
        first, sure = (voted.tokens[0], voted.survival[0]) if voted.tokens else (-1, 0.0)
        self._voted = (first, sure)
        rival = self._promises.corrected(voted)
        guesses = self._guesses.make(self._where, first, sure)
        if not guesses:
            return rival
        best, where = guesses[0], self._where
        chance = min(_SUREST, best.chance * self._guesses.correction)
        # The guesses are judged by themselves: the walk has nothing to learn from their first token.
        guess: Said = (self._stream[best.place], chance, ())
        own = self._follow(Start(best.place, where.end, 0, where.density, guess=guess), most)
        if sum(own.survival) >= sum(rival.survival):
            return own
        self._said = []
        return rival

    def _follow(self, start: Start, most: int) -> Draft:
        self._said = self._walk.ahead(start, most, self._promises.doubt)
        return _draft(self.name, self._said)

    def _far_jump(self) -> None:
        """A long match within a document is the place, wherever the answer was before."""
        for place, length in self._votes.places():
            if length >= _FAR:
                for span in self._documents:
                    if span[0] < place < span[1]:
                        self._where.jump(span, place, length)
                        return

    def _start_behind(self, after: Sequence[int]) -> Start | None:
        """Where the document goes on behind tokens that are only thought of: a copy that they follow, or a place nearby
        behind the last two of them."""
        where, stream = self._where, self._stream
        if not self._documents or where.patch or not (where.copying or where.anchors):
            return None
        place = where.at if where.copying else where.anchors[-1].source
        if where.copying:
            copied = stream[place : min(where.end, place + len(after))]
            if list(after) == copied:
                return Start(place + len(after), where.end, where.run + len(after), where.density)
        last = (*stream[-_NEAR:], *after)[-_NEAR:]
        found = where.behind(last, place)
        return None if found is None else Start(found, where.end, _NEAR, where.density)

    def _judge(self, tokens: Sequence[int]) -> None:
        self._guesses.judge(tokens[0])
        if self._voted and self._voted[0] >= 0:
            self._promises.judge_votes(self._voted[1], self._voted[0] == tokens[0])
        judged: list[tuple[float, bool]] = []
        for token, (said, chance, keys) in zip(tokens, self._said, strict=False):
            if keys:
                self._walk.learn(token == said, keys)
                judged.append((chance, token == said))
            if token != said:
                break
        self._promises.judge_copy(judged)
        self._said, self._voted = [], None


@lru_cache(1)
def shipped_priors() -> Priors:
    """What is shipped; nothing where the file is missing."""
    if not PRIORS.exists():
        return {}
    found: Priors = json.loads(PRIORS.read_text(encoding="utf-8"))
    return found


def _draft(name: str, said: Sequence[Said]) -> Draft:
    reached, survival = 1.0, []
    for _, chance, _ in said:
        reached *= chance
        survival.append(reached)
    return Draft(name, tuple([token for token, _, _ in said]), tuple(survival))
