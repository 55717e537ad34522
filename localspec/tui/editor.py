"""Writing in the person's own editor."""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from textual.app import App, SuspendNotSupported

from localspec.engine.errors import UserError


def edit_text(app: App[object], text: str) -> str | None:
    """What `text` became in $VISUAL or $EDITOR, which has the terminal meanwhile; None where it was left as it was.

    Raises UserError, one sentence, where no editor is set or it did not work; nothing has changed then.
    """
    editor = _editor()
    try:
        file = _file_of(text)
    except OSError as error:
        raise UserError(f"The text cannot be handed to the editor: {error.strerror or error}.") from None
    try:
        with app.suspend():
            failure = _run([*editor, str(file)])
    except SuspendNotSupported:
        failure = "An editor cannot be opened here: this terminal cannot be handed over"
    try:
        edited = _edited(file, text)
    except UnicodeDecodeError:
        raise UserError(f"What the editor wrote is not UTF-8 text; it is in {file}.") from None
    except OSError as error:
        raise UserError(f"What the editor wrote cannot be read ({error.strerror}); your text is as it was.") from None
    if failure and edited is not None:
        raise UserError(f"{failure}; what you wrote is in {file}.")
    with contextlib.suppress(OSError):
        file.unlink()
    if failure:
        raise UserError(f"{failure}; your text is as it was.")
    return edited


def has_editor() -> bool:
    """Whether the person has named an editor."""
    return bool(_named_editor())


def _file_of(text: str) -> Path:
    descriptor, name = tempfile.mkstemp(suffix=".md", prefix="localspec-")
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(_encoded(text))
    return Path(name)


def _editor() -> list[str]:
    if words := _named_editor():
        return words
    raise UserError("No editor is set: set EDITOR to one, for example EDITOR=nano.")


def _named_editor() -> list[str]:
    command = os.environ.get("VISUAL", "").strip() or os.environ.get("EDITOR", "").strip()
    try:
        return shlex.split(command, posix=os.name == "posix")
    except ValueError:
        return []


def _run(command: list[str]) -> str:
    """Why it did not work; empty where it did. Nothing is raised, for then the app would not get its terminal back."""
    try:
        # Descriptors 1 and 2 belong to native code while the chat runs; the terminal is where Python's own streams are.
        done = subprocess.run(command, stdout=sys.__stdout__, stderr=sys.__stderr__, check=False)
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or error
        return f"{command[0]} cannot be started ({reason}): set EDITOR to another editor"
    except KeyboardInterrupt:
        return f"{command[0]} was interrupted"
    return f"{command[0]} ended with code {done.returncode}" if done.returncode else ""


def _edited(file: Path, text: str) -> str | None:
    edited = file.read_bytes().decode("utf-8-sig")
    # Editors end the last line, whether or not it was.
    for end in ("\r\n", "\n"):
        if edited.endswith(end) and not text.endswith("\n"):
            edited = edited.removesuffix(end)
            break
    return None if _encoded(edited) == _encoded(text) else edited


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "replace")
