"""Writing in an editor."""

import contextlib
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from textual.app import App

from localspec.engine.errors import UserError
from localspec.tui.editor import edit_text


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the editor's files are, and an app that hands over its terminal."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setattr(App, "suspend", suspend)
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.delenv("EDITOR", raising=False)
    return folder


@contextlib.contextmanager
def suspend(app: App[None]) -> Iterator[None]:
    yield


def editor(tmp_path: Path, code: str) -> str:
    """A command for an editor that does `code` with the file `path`."""
    script = tmp_path / "my editor.py"
    script.write_text(f"import pathlib, sys\npath = pathlib.Path(sys.argv[1])\n{code}\n")
    return f"'{sys.executable}' '{script}'"


def test_what_was_written_comes_back_and_the_file_goes(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "path.write_bytes(path.read_bytes().replace(b'old', 'n\\u00fc'.encode()) + b'\\n')"
    monkeypatch.setenv("EDITOR", "not this one")
    monkeypatch.setenv("VISUAL", editor(tmp_path, code))
    assert edit_text(App(), "old ü\r\nlines") == "nü ü\r\nlines"
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("text", ["same", "same\n", ""])
def test_an_unchanged_text_is_none(text: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDITOR", editor(tmp_path, "path.write_bytes(path.read_bytes().rstrip(b'\\n') + b'\\n')"))
    assert edit_text(App(), text) is None


def test_nobody_else_may_read_it(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDITOR", editor(tmp_path, "path.write_text(oct(path.stat().st_mode & 0o777))"))
    assert edit_text(App(), "x") == "0o600"


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (None, "No editor is set"),
        ("  ", "No editor is set"),
        ("'unfinished", "No editor is set"),
        ("no-such-editor-anywhere -w", "no-such-editor-anywhere cannot be started"),
        ("false", "false ended with code 1"),
    ],
)
def test_an_editor_that_does_not_work_is_one_sentence(
    command: str | None, words: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if command is not None:
        monkeypatch.setenv("EDITOR", command)
    with pytest.raises(UserError, match=words):
        edit_text(App(), "x")
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("code", ["path.write_bytes(b'\\xff words')", "path.write_text('words'); sys.exit(3)"])
def test_what_was_written_but_cannot_be_taken_is_kept(
    code: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDITOR", editor(tmp_path, code))
    with pytest.raises(UserError, match="is in") as caught:
        edit_text(App(), "x")
    kept = next(folder.iterdir())
    assert str(kept) in str(caught.value)
    assert kept.read_bytes().endswith(b"words")


async def test_where_the_app_cannot_step_aside_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDITOR", "true")
    app: App[None] = App()
    async with app.run_test():
        with pytest.raises(UserError, match="cannot be opened here"):
            edit_text(app, "x")
