"""A vocabulary without a model, for replays of edits: words with the space before them, punctuation, line ends."""

from __future__ import annotations

import re
from collections.abc import Sequence

from localspec.measure.edit_replay import EditAnswer, answer_of
from localspec.measure.edits import EditPair

_PIECES = re.compile(r" ?\w{1,5}|\w{1,5}|\n+| +|.", re.DOTALL)


class WordVocabulary:
    """Gives every piece the next free number when it is first seen. Long words are several tokens, as in real ones."""

    eos = 0

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {"": 0}
        self._pieces = [b""]

    def tokenize(self, text: str, *, special: bool) -> list[int]:
        return [self._number(piece) for piece in _PIECES.findall(text)]

    def piece(self, token: int) -> bytes:
        return self._pieces[token]

    def _number(self, piece: str) -> int:
        if piece not in self._numbers:
            self._numbers[piece] = len(self._pieces)
            self._pieces.append(piece.encode())
        return self._numbers[piece]

    def render(self, source: str, instruction: str) -> tuple[list[int], tuple[int, int]]:
        """A prompt: the document between two lines, and what is asked; and where the document is."""
        before, document, after = (
            self.tokenize(text, special=False)
            for text in ("--- document ---\n", f"{source}\n", f"--- end ---\n\n{instruction}\n")
        )
        return [*before, *document, *after], (len(before), len(before) + len(document))

    def answers(self, pairs: Sequence[EditPair]) -> list[EditAnswer]:
        """Pairs as a model with this vocabulary would have answered them."""
        return [answer_of(pair, self.render, self) for pair in pairs]
