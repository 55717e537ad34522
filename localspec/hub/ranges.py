"""The arithmetic of going on with a download (RFC 9110, section 14)."""

from __future__ import annotations

import re

_QUOTE_CHARACTERS = 80
_CONTENT_RANGE = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18}|\*)", re.ASCII)


class UnusableAnswerError(Exception):
    """An answer whose bytes cannot be put in their place."""


def range_header(start: int, end: int | None = None) -> str:
    """The bytes from `start` on, or those before `end`."""
    return f"bytes={start}-" if end is None else f"bytes={start}-{end - 1}"


def first_byte(status: int, content_range: str | None, offset: int, size: int) -> int:
    """Where in the file of `size` bytes the body of an answer begins, when the bytes from `offset` on were asked for.

    At 0 where the server has ignored that. Raises UnusableAnswerError where bytes would be missing between, or where
    another file is meant.
    """
    if status != 206:
        return 0
    found = _CONTENT_RANGE.fullmatch((content_range or "").strip())
    if not found:
        raise UnusableAnswerError(f"Content-Range is {(content_range or '')[:_QUOTE_CHARACTERS]!r}")
    first, total = int(found[1]), found[3]
    if first > offset or (total != "*" and int(total) != size):
        raise UnusableAnswerError(f"Content-Range is {content_range!r} for byte {offset} of {size}")
    return first


def new_bytes(chunk: bytes, position: int, offset: int, size: int) -> bytes:
    """Of a chunk that stands at `position` of the file, what comes behind the `offset` bytes that are here already.

    Raises UnusableAnswerError where the chunk leaves a gap, or reaches beyond the file's `size`.
    """
    if position > offset or position + len(chunk) > size:
        raise UnusableAnswerError(f"bytes {position} to {position + len(chunk)} of {size}, after {offset}")
    return chunk[offset - position :] if position < offset else chunk
