"""`localspec sessions`: the saved chats, outside of the chat."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from localspec.chat.export import to_json, to_markdown
from localspec.chat.store import STORE_FILE, ChatInfo, Store
from localspec.console import json_text, say, write_out
from localspec.engine.errors import UserError
from localspec.settings import Folders
from localspec.whole_file import write_over

EXIT_DONE = 0

_UNTITLED = "untitled"


@dataclass(frozen=True)
class Sessions:
    """One use of the command. Every method returns the exit code and raises UserError."""

    folders: Folders
    quiet: bool = False

    def show_list(self, as_json: bool) -> int:
        """All chats, newest first."""
        return self._write_chats(self._found(""), as_json, "No chat has been saved yet.")

    def search(self, words: str, as_json: bool) -> int:
        """The chats in which all the words occur, and where."""
        return self._write_chats(self._found(words), as_json, "No chat has all of these words.", snippets=True)

    def show(self, chat: int) -> int:
        """The branch of a chat that is shown, for reading."""
        with self._store() as store:
            text = to_markdown(store.load(chat))
        return write_out(text)

    def export(self, chat: int, as_json: bool, file: Path | None) -> int:
        """A chat as Markdown or JSON, in a file or, without one, on stdout."""
        with self._store() as store:
            loaded = store.load(chat)
        text = to_json(loaded) if as_json else to_markdown(loaded)
        if file is None:
            return write_out(text)
        if any(ours.exists() and file.exists() and file.samefile(ours) for ours in self._files):
            raise UserError(f"{file} holds the chats themselves; choose another place with -o.")
        try:
            write_over(file, text.encode("utf-8", "replace"))
        except OSError as error:
            raise UserError(f"{file} cannot be written ({error.strerror}); choose another place with -o.") from error
        return EXIT_DONE

    def remove(self, chat: int) -> int:
        """Delete a chat so that it can be brought back."""
        with self._store() as store:
            store.delete(chat)
        self._say(f"Chat {chat} is deleted; localspec sessions restore {chat} brings it back within 30 days.")
        return EXIT_DONE

    def restore(self, chat: int) -> int:
        """Bring back a deleted chat."""
        with self._store() as store:
            store.restore(chat)
        self._say(f"Chat {chat} is back.")
        return EXIT_DONE

    @contextmanager
    def _store(self) -> Iterator[Store]:
        if not self._file.exists():
            raise UserError("No chat has been saved yet; localspec opens a new one.")
        with Store(self._file) as store:
            yield store

    @property
    def _file(self) -> Path:
        return self.folders.data / STORE_FILE

    @property
    def _files(self) -> list[Path]:
        """All that the database is in."""
        return [self._file.with_name(self._file.name + end) for end in ("", "-wal", "-shm")]

    def _found(self, words: str) -> list[ChatInfo]:
        # Looking for chats is no reason to create a file for them.
        if not self._file.exists():
            return []
        with self._store() as store:
            return store.chats(words, limit=sys.maxsize)

    def _write_chats(self, chats: list[ChatInfo], as_json: bool, none: str, snippets: bool = False) -> int:
        if as_json:
            document = [_report(chat, snippets) for chat in chats]
            return write_out(json_text(document))
        if not chats:
            self._say(none)
            return EXIT_DONE
        return write_out(_table(chats))

    def _say(self, sentence: str) -> None:
        if not self.quiet:
            say(sentence)


def _report(chat: ChatInfo, snippets: bool) -> dict[str, Any]:
    report: dict[str, Any] = {
        "id": chat.id,
        "title": chat.title,
        "model": chat.model,
        "created": _moment(chat.created).isoformat(timespec="seconds"),
        "updated": _moment(chat.updated).isoformat(timespec="seconds"),
        "messages": chat.messages,
    }
    return {**report, "snippet": chat.snippet} if snippets else report


def _table(chats: list[ChatInfo]) -> str:
    """A line for each chat, and one more for where something was found in it."""
    ids = max(len("ID"), *(len(str(chat.id)) for chat in chats))
    lines = [f"{'ID':>{ids}}  {'WHEN':<16}  MESSAGES  TITLE"]
    for chat in chats:
        when = f"{_moment(chat.updated):%Y-%m-%d %H:%M}"
        lines.append(f"{chat.id:>{ids}}  {when}  {chat.messages:>8}  {_line(chat.title) or _UNTITLED}")
        if chat.snippet:
            lines.append(f"{'':>{ids}}  {_line(chat.snippet)}")
    return "\n".join(lines) + "\n"


def _line(text: str) -> str:
    """A title out of the file, which another program may have written, on the one line that it has in a table."""
    return " ".join(text.split())


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds).astimezone()
