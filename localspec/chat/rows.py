"""Messages as rows of the database, and what it can hold."""

import json
import sqlite3
from typing import Any

from localspec.chat.kept_documents import keep_all, read_all
from localspec.chat.thread import Entry
from localspec.engine.rates import finite
from localspec.whole_file import from_json


def values(database: sqlite3.Connection, entry: Entry) -> dict[str, str | None]:
    """The columns of a message; the texts of its documents are kept by that."""
    return {
        "role": entry.role,
        "text": storable(entry.text),
        "documents": keep_all(database, entry.documents),
        "finish": entry.finish,
        "figures": None if entry.figures is None else to_json(entry.figures),
    }


def entry_of(database: sqlite3.Connection, row: tuple[Any, ...]) -> Entry:
    """The message of a row. Raises TypeError, ValueError or KeyError for one that cannot be read."""
    _key, _chat, id_, parent, role, text, documents, finish, figures, *_ = row
    # What the columns are asked to hold, a damaged file need not. A message behind itself would never come to an end.
    sound = type(id_) is int and (parent is None or (type(parent) is int and parent < id_))
    if (
        not sound
        or role not in ("user", "assistant")
        or not isinstance(text, str)
        or not isinstance(finish, str | None)
    ):
        raise ValueError("a column is damaged")
    taken = None if figures is None else from_json(figures)
    if not isinstance(taken, dict | None):
        raise ValueError("the figures are none")
    return Entry(id_, parent, role, text, read_all(database, documents), finish, taken)


def to_json(value: object) -> str:
    """`value` as JSON. ASCII: halves of surrogate pairs stay what they are."""
    return json.dumps(finite(value), allow_nan=False)


def storable(text: str) -> str:
    """`text` with halves of surrogate pairs, which have no UTF-8 form, replaced."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def known(number: int | None) -> int:
    """The number of a row that has been written."""
    assert number is not None
    return number
