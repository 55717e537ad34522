"""Where the documents are among the tokens of a prompt: what the answer may copy or edit."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import accumulate

Span = tuple[int, int]
"""The first token of a document, and the one behind its last."""

# As `attach_documents` frames them; the document's own last line end stands before the closing line.
_OPENING = re.compile(rb"(?<!-)(-{3,}) document: ([^\n]*) \1\n")


def document_spans(tokens: Sequence[int], piece: Callable[[int], bytes]) -> list[Span]:
    """The tokens of every attached document in a prompt, as they stand there; those that the last words name come last,
    because the answer most likely is about them. A document that is not found whole is left out. `piece`: the bytes of a
    token.

    The text is read from the tokens themselves, so that no template and no shape of a conversation has to be known.
    """
    pieces = [piece(token) for token in tokens]
    text = b"".join(pieces)
    ends = list(accumulate(map(len, pieces)))
    found: list[tuple[Span, bytes]] = []
    place = 0
    while opening := _OPENING.search(text, place):
        rule, name = opening[1], opening[2]
        closing = text.find(b"\n%b end of %b %b" % (rule, name, rule), opening.end() - 1)
        if closing < 0:
            place = opening.end()
            continue
        span = _inside(ends, opening.end(), closing + 1)
        if span:
            found.append((span, name))
        place = closing + 1
    words = text[place:].split(b"\n", 1)[-1]
    # A stable sort: documents that are named stay in their order, and so do the others.
    return [span for span, _ in sorted(found, key=lambda document: bool(document[1]) and document[1] in words)]


def _inside(ends: Sequence[int], start: int, end: int) -> Span | None:
    """The tokens that lie wholly within bytes, by the bytes up to each token's end."""
    # Control tokens have no bytes: the first token is the first one that ends behind the start.
    first = bisect_left(ends, start + 1)
    if first < len(ends) and (ends[first - 1] if first else 0) < start:
        first += 1
    last = bisect_left(ends, end + 1)
    return (first, last) if first < last else None
