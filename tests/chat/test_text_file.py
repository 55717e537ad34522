"""A file is replaced at once or not at all, and everything about it but its text stays."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from localspec.chat.text_file import ChangedMeanwhileError, back_up, check_writable, read_text_file, replace_file
from localspec.engine.errors import UserError

NO_ROOT = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="everything is allowed to root")


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_a_file_keeps_its_mode_and_a_link_stays_a_link(tmp_path):
    """Scripts stay executable, secrets stay secret, and links go on pointing at the file."""
    real = written(tmp_path / "real.sh", "old")
    real.chmod(0o750)
    link = tmp_path / "link.sh"
    link.symlink_to(real)
    file = read_text_file(link)
    replace_file(file, written(tmp_path / "new", "new"))
    assert link.is_symlink()
    assert real.read_text() == "new"
    assert stat.S_IMODE(real.stat().st_mode) == 0o750
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.sh", "real.sh"]


@pytest.mark.parametrize("change", ["other words", "gone", "same length"])
def test_a_file_that_changed_meanwhile_is_not_overwritten(change, tmp_path):
    """Somebody's edits are safe, and so is the rewritten text."""
    path = written(tmp_path / "notes.md", "old text")
    file = read_text_file(path)
    before = path.stat()
    if change == "gone":
        path.unlink()
    else:
        path.write_text("new text" if change == "same length" else "edited")
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(ChangedMeanwhileError) as error:
        replace_file(file, written(tmp_path / "made", "rewritten"), backup=True)
    kept = tmp_path / "notes.md.rewritten"
    assert str(error.value) == (f"{path} was changed meanwhile and stays as it is; the rewritten text is in {kept}.")
    assert kept.read_text() == "rewritten"
    assert not path.exists() if change == "gone" else path.read_text() != "rewritten"


def test_no_earlier_copy_is_overwritten(tmp_path):
    """The first text can always be had back."""
    path = written(tmp_path / "notes.md", "first")
    for text in ("second", "third"):
        replace_file(read_text_file(path), written(tmp_path / "made", text), backup=True)
    assert path.read_text() == "third"
    assert (tmp_path / "notes.md.bak").read_text() == "first"
    assert (tmp_path / "notes.md.bak.2").read_text() == "second"


def test_a_copy_has_the_mode_of_the_file(tmp_path):
    """A copy of a secret is one."""
    path = written(tmp_path / "secret", "x")
    path.chmod(0o600)
    assert stat.S_IMODE(back_up(read_text_file(path)).stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("missing", "There is no file {}; check the path."),
        ("folder", "{} is a folder; give the files in it."),
        ("pipe", "{} is not a file; give a text file, or pipe the text in."),
    ],
)
def test_what_is_no_file_is_refused(name, sentence, tmp_path):
    """And nothing waits for the other end of a pipe."""
    (tmp_path / "folder").mkdir()
    if name == "pipe":
        if not hasattr(os, "mkfifo"):
            pytest.skip("there are no pipes in folders here")
        os.mkfifo(tmp_path / "pipe")
    path = tmp_path / name
    with pytest.raises(UserError) as error:
        read_text_file(path)
    assert str(error.value) == sentence.format(path)


def test_an_output_that_cannot_be_written_is_known_before(tmp_path):
    """Nobody waits for a model in vain."""
    for path, what in [(tmp_path, "is a folder"), (tmp_path / "no" / "out.md", "There is no folder")]:
        with pytest.raises(UserError, match=what):
            check_writable(path)
    check_writable(tmp_path / "out.md")
    assert list(tmp_path.iterdir()) == []


@NO_ROOT
def test_a_folder_that_cannot_be_written_in_gives_one_sentence(tmp_path):
    """The file itself is left alone."""
    path = written(tmp_path / "notes.md", "old")
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(UserError, match="Nothing can be written in the folder"):
            check_writable(path)
    finally:
        tmp_path.chmod(0o700)
