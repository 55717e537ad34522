"""What kinds of pieces tokens are."""

from collections.abc import Callable

CONTINUES, BEGINS, LINE_END, REST = range(4)
"""A piece that goes on within a word, begins one behind a space, has a line end in it, or is anything else."""


class PieceClasses(dict[int, int]):
    """The class of each token, found out when it is first met: a text has few of a vocabulary's tokens, and asking for all
    of them would slow the load of a model."""

    def __init__(self, piece: Callable[[int], bytes]) -> None:
        """`piece`: the bytes of a token."""
        super().__init__()
        self._piece = piece

    def __missing__(self, token: int) -> int:
        kind = self[token] = piece_class(self._piece(token))
        return kind

    def __deepcopy__(self, memo: object) -> "PieceClasses":
        """Itself: what it knows is true of a vocabulary, whoever asks."""
        return self


def piece_class(piece: bytes) -> int:
    """The class of one piece."""
    if b"\n" in piece:
        return LINE_END
    if _in_word(piece[:1]):
        return CONTINUES
    return BEGINS if piece[:1] == b" " and _in_word(piece[1:2]) and not piece[1:2].isdigit() else REST


def _in_word(byte: bytes) -> bool:
    """Letters, digits and the underscore; of other scripts any byte."""
    return byte.isalnum() or byte == b"_" or byte >= b"\x80"
