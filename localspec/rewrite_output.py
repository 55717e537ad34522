"""Where a rewritten text goes: to stdout, into a file, or into a comparison with what it was."""

from __future__ import annotations

import hashlib
import os
from difflib import unified_diff
from pathlib import Path
from typing import TextIO

from localspec.chat.part_file import PartFile
from localspec.chat.rewrite_events import State
from localspec.chat.text_bytes import TextBytes
from localspec.chat.text_file import ChangedMeanwhileError, TextFile, replace_by, replace_file
from localspec.console import abandon, one_line
from localspec.engine.errors import UserError
from localspec.literal import LiteralPieces, literal

_RED, _GREEN, _CYAN, _BOLD, _PLAIN = "\x1b[31m", "\x1b[32m", "\x1b[36m", "\x1b[1m", "\x1b[0m"


class Outlet:
    """Takes one text part by part, and gives it the line ends it had."""

    state: State | None = None
    """Where it goes on, if it has been begun before."""
    path: Path | None = None
    """The file it becomes."""

    def __init__(self, content: TextBytes) -> None:
        self.content = content
        self.changed = False
        """Whether anything is not as it was."""
        self._newlines = 0

    def part(self, source: str, text: str, state: State) -> None:
        """Take the next part; `source` is what it was."""
        restored = self.content.ends.restored(source, text, self._newlines)
        self._newlines += source.count("\n")
        self.changed = self.changed or text != source
        self._take(restored, state)

    def interrupted(self, text: str, state: State) -> str | None:
        """Take the beginning of the part that was under way, and say what is kept."""
        raise NotImplementedError

    def end(self, source: str) -> None:
        """The text is complete."""

    def close(self) -> None:
        """Leave everything behind as it should be, however it has ended."""

    def _take(self, text: str, state: State) -> None:
        raise NotImplementedError


class Stream(Outlet):
    """To stdout, in the bytes the text had; on a terminal as it can be read there."""

    def __init__(self, content: TextBytes, stream: TextIO) -> None:
        super().__init__(content)
        self._stream, self._begun = stream, False
        self._literal = LiteralPieces() if stream.isatty() else None

    def interrupted(self, text: str, state: State) -> str | None:
        """Write what there is."""
        self._take(text.replace("\n", self.content.ends.usual), state)
        return None

    def _take(self, text: str, state: State) -> None:
        if self._literal:
            data = self._literal.next(text).encode("utf-8", "replace")
        else:
            data = (b"" if self._begun else self.content.mark) + text.encode(self.content.encoding, "replace")
        self._begun = True
        try:
            self._stream.buffer.write(data)
            self._stream.buffer.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            abandon(self._stream)
            raise UserError(f"stdout cannot be written ({error.strerror}); choose a file with -o.") from error


class Collected(Outlet):
    """Into memory."""

    def __init__(self, content: TextBytes) -> None:
        super().__init__(content)
        self._parts: list[str] = []

    @property
    def text(self) -> str:
        """All there is, with its line ends."""
        return "".join(self._parts)

    def interrupted(self, text: str, state: State) -> str | None:
        """Keep what there is."""
        self._parts.append(text.replace("\n", self.content.ends.usual))
        return None

    def _take(self, text: str, state: State) -> None:
        self._parts.append(text)


class File(Outlet):
    """Into a file, by way of a part file that a later run can go on with."""

    def __init__(self, content: TextBytes, digest: str, file: TextFile | None, target: Path, backup: bool) -> None:
        """`target` is the file to make or replace; where it is `file` itself, that must not have changed meanwhile."""
        super().__init__(content)
        self.path = target
        self._file, self._target, self._backup = file, target.resolve(), backup
        self._like = next(
            (path for path in (self._target, file.path if file else None) if path and path.exists()), None
        )
        self._part = PartFile(self._target, digest, content.mark, private=self._like is not None)
        self.state = self._part.state
        self._kept = self.state is not None and bool(self.state.part or self.state.begun)
        if self.state:
            self._newlines = content.text.count("\n", 0, self.state.source_position)

    def interrupted(self, text: str, state: State) -> str | None:
        """Keep the parts."""
        stays = f"{self.path} stays as it is" if self._target.exists() else f"{self.path} is not there yet"
        if not (state.part or state.begun):
            return f"{stays}."
        self._part.note(state)
        self._kept = True
        return f"{stays}; what is done is kept in {self._part.path}, and the same command goes on from there."

    def end(self, source: str) -> None:
        """Put the file in its place. Raises UserError."""
        self._kept = True
        digest = self._part.complete()
        self.changed = digest != _digest(self.content)
        in_place = self._file is not None and self._file.path == self._target
        if in_place and not self.changed:
            self._part.discard()
            return
        if in_place and self._file:
            try:
                replace_file(self._file, self._part.path, self._backup)
            except ChangedMeanwhileError:
                self._part.forget_state()
                raise
        else:
            replace_by(self._part.path, self._target, self._like)
        self._part.forget_state()

    def close(self) -> None:
        """Keep the parts where there are any."""
        self._part.close() if self._kept else self._part.discard()

    def _take(self, text: str, state: State) -> None:
        self._part.append(self.content.encoded(text), state)
        self._kept = True


class Comparison(Collected):
    """Into the lines that differ, as `diff -u` shows them."""

    def __init__(self, content: TextBytes, name: str) -> None:
        super().__init__(content)
        # A name with a line end in it would break the lines that begin a comparison.
        self._name = one_line(name)

    def interrupted(self, text: str, state: State) -> str | None:
        """What has not been rewritten is the same."""
        rest = self.content.text[state.source_position :]
        self._parts.append(self.content.ends.restored(rest, rest, self._newlines))
        return None

    def lines(self, colored: bool) -> str:
        """The comparison; "" where nothing differs."""
        content = self.content
        before = _lines(content.ends.restored(content.text, content.text))
        after = _lines(self.text)
        found = unified_diff(before, after, f"a/{self._name}", f"b/{self._name}")
        return "".join(_painted(line, number) if colored else _ended(line) for number, line in enumerate(found))


def colors_wanted(stream: TextIO) -> bool:
    """Whether what is written there may have colors."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _lines(text: str) -> list[str]:
    """Lines with their ends. A carriage return alone is one, where there are no others."""
    if "\n" not in text:
        text = text.replace("\r", "\n")
    lines = text.split("\n")
    return [f"{line}\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def _ended(line: str) -> str:
    return line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _painted(line: str, number: int) -> str:
    color = _BOLD if number < 2 else {"+": _GREEN, "-": _RED, "@": _CYAN}.get(line[0], "")
    # A carriage return within a line is no end of it.
    text = literal(_ended(line).replace("\r\n", "\n").replace("\r", "\u240d"))
    if not color:
        return text
    return "".join(f"{color}{part}{_PLAIN}\n" for part in text.split("\n")[:-1])


def _digest(content: TextBytes) -> bytes:
    whole = content.ends.restored(content.text, content.text)
    return hashlib.sha256(content.mark + content.encoded(whole)).digest()
