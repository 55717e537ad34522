"""Changing a few values in config.toml, and nothing else in it."""

from __future__ import annotations

import contextlib
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from localspec.engine.errors import UserError
from localspec.settings import make_private, parse_config, read_config_file
from localspec.whole_file import locked, write_whole

Value = str | int | float
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


def update_config(file: Path, changes: Mapping[str, Value | None]) -> None:
    """Set the top-level keys `changes` in `file`; None takes one out. All else stays as it is, byte for byte, also what
    another process has put there just now.

    The file is replaced at once or not at all, and created for this user alone where there is none. Raises UserError
    where it is not TOML or cannot be written.
    """
    wanted = {name: _clean(value) for name, value in changes.items()}
    make_private(file.parent)
    with locked(file.parent):
        content = read_config_file(file)
        text = parse_config(file, content)[1]
        changed = _changed(text, wanted)
        _check(file, text, changed, wanted)
        if changed != text:
            mark = b"\xef\xbb\xbf" if content.startswith(b"\xef\xbb\xbf") else b""
            _replace(file, mark + changed.encode())


@dataclass(frozen=True)
class _Statement:
    """A key with its value, a table's header, or a line without either; with the end of its line."""

    text: str
    key: str | None
    """Of a value at the top level."""
    is_header: bool


def _statements(text: str) -> Iterator[_Statement]:
    """`text` in pieces. A value of several lines is complete when it can be read."""
    inside = False
    piece = ""
    for line in re.findall(r"[^\n]*\n|[^\n]+", text):
        piece += line
        try:
            table = tomllib.loads(piece)
        except tomllib.TOMLDecodeError:
            continue
        is_header = piece.lstrip().startswith("[")
        inside = inside or is_header
        yield _Statement(piece, None if inside else next(iter(table), None), is_header)
        piece = ""
    if piece:
        yield _Statement(piece, None, False)


def _changed(text: str, changes: Mapping[str, Value | None]) -> str:
    statements = list(_statements(text))
    newline = "\r\n" if "\r\n" in text else "\n"
    there = {statement.key for statement in statements}
    parts = [
        statement.text
        if statement.key is None or statement.key not in changes
        else _with_value(statement.text, changes[statement.key], newline)
        for statement in statements
    ]
    new = [
        f"{name} = {_written(value, newline)}{newline}"
        for name, value in changes.items()
        if name not in there and value is not None
    ]
    if new:
        _insert(parts, statements, new, newline)
    return "".join(parts)


def _insert(parts: list[str], statements: list[_Statement], new: list[str], newline: str) -> None:
    """Put new lines behind the last value at the top level; where there is none, above the first table and what is said
    about it, else at the end."""
    keys = [place for place, statement in enumerate(statements) if statement.key is not None]
    headers = [place for place, statement in enumerate(statements) if statement.is_header]
    at = keys[-1] + 1 if keys else headers[0] if headers else len(parts)
    if not keys and headers:
        while at and statements[at - 1].text.lstrip().startswith("#"):
            at -= 1
        new = [*new, newline]
    if at and parts[at - 1] and not parts[at - 1].endswith("\n"):
        new = [newline, *new]
    parts[at:at] = new


def _with_value(statement: str, value: Value | None, newline: str) -> str:
    """A key's statement with another value, or only its comment when it has none."""
    equals = statement.index("=") + 1
    head, tail = statement[:equals], statement[equals:]
    comment_at = next((match.start() for match in re.finditer("#", tail) if _is_value(tail[: match.start()])), None)
    old = tail if comment_at is None else tail[:comment_at]
    comment = "" if comment_at is None else tail[comment_at:]
    if value is None:
        return comment
    blank_before = old[: len(old) - len(old.lstrip(" \t"))]
    blank_behind = old[len(old.rstrip()) :]
    return f"{head}{blank_before}{_written(value, newline)}{blank_behind}{comment}"


def _is_value(text: str) -> bool:
    try:
        tomllib.loads(f"value = {text.strip()}")
    except tomllib.TOMLDecodeError:
        return False
    return True


def _clean(value: Value | None) -> Value | None:
    """Text that UTF-8 and TOML can hold."""
    if not isinstance(value, str):
        return value
    return value.replace("\r\n", "\n").encode("utf-8", "replace").decode()


def _written(value: Value, newline: str) -> str:
    """`value` in TOML; a text of several lines on several lines."""
    if not isinstance(value, str):
        return repr(value)
    if "\n" not in value:
        return f'"{_escaped(value)}"'
    # Escaped, a quotation mark can neither end the text nor join its end.
    lines = newline.join(map(_escaped, value.split("\n")))
    return f'"""{newline}{lines}"""'


def _escaped(text: str) -> str:
    return "".join(
        _ESCAPES.get(character)
        or (f"\\u{ord(character):04x}" if ord(character) < 32 or ord(character) == 127 else character)
        for character in text
    )


def _check(file: Path, before: str, after: str, changes: Mapping[str, Value | None]) -> None:
    """Nothing is written that does not mean exactly what it should."""
    wanted = {**tomllib.loads(before), **changes}
    wanted = {name: value for name, value in wanted.items() if name not in changes or value is not None}
    with contextlib.suppress(tomllib.TOMLDecodeError):
        if tomllib.loads(after) == wanted:
            return
    raise UserError(f"{', '.join(changes)} cannot be put into {file} as it is written now: change it with an editor.")


def _replace(file: Path, content: bytes) -> None:
    try:
        # A link stays a link.
        place = file.resolve()
        make_private(place.parent)
        mode = place.stat().st_mode & 0o777 if place.exists() else 0o600
        write_whole(place, content, mode)
    except OSError as error:
        raise UserError(f"{file} cannot be written ({error.strerror}): check its permissions.") from error
