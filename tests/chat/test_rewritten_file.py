"""Saving a rewritten text: the file it came from stays what it was but for the words, or stays whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from localspec.chat.rewritten_file import save_rewritten
from localspec.engine.errors import UserError


def test_the_file_keeps_encoding_line_ends_and_mode(tmp_path: Path) -> None:
    """With a mark and mixed line ends, and byte for byte where nothing has changed."""
    file = tmp_path / "notes.md"
    before = b"\xff\xfe" + "one\r\ntoo\nthree\r\n".encode("utf-16-le")
    file.write_bytes(before)
    file.chmod(0o640)
    save_rewritten(file, "one\ntoo\nthree\n", {"one\ntoo\nthree\n"})
    assert file.read_bytes() == before
    save_rewritten(file, "one\ntwo\nthree\n", {"one\ntoo\nthree\n"})
    assert file.read_bytes() == b"\xff\xfe" + "one\r\ntwo\nthree\r\n".encode("utf-16-le")
    assert file.stat().st_mode & 0o777 == 0o640
    assert list(tmp_path.iterdir()) == [file]


def test_a_file_that_has_become_another_is_not_overwritten(tmp_path: Path) -> None:
    """Nor is one that never was the one."""
    file = tmp_path / "notes.md"
    file.write_text("changed meanwhile")
    with pytest.raises(UserError, match=r"stays as it is; choose another name\.$"):
        save_rewritten(file, "new", {"old"})
    assert file.read_text() == "changed meanwhile"


def test_what_the_encoding_does_not_have_is_not_written(tmp_path: Path) -> None:
    """The person chooses another name, and loses nothing."""
    file = tmp_path / "notes.txt"
    file.write_bytes("Viele Grüße aus Köln".encode("latin-1"))
    with pytest.raises(UserError, match="Windows-1252"):
        save_rewritten(file, "Viele Grüße aus 世界", {"Viele Grüße aus Köln"})
    assert file.read_bytes() == "Viele Grüße aus Köln".encode("latin-1")


def test_a_new_file_is_written_and_a_folder_refused(tmp_path: Path) -> None:
    """In one sentence."""
    save_rewritten(tmp_path / "new.md", "text\n", ())
    assert (tmp_path / "new.md").read_bytes() == b"text\n"
    for path in (tmp_path, tmp_path / "missing" / "new.md"):
        with pytest.raises(UserError):
            save_rewritten(path, "text", ())
