"""`localspec rm`: installed models are deleted, after a question, and never what other programs own."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from command import PATIENCE, call, command, surroundings
from localspec.hub.catalog import load_catalog
from localspec.hub.removal import removal


@pytest.fixture
def shelf(own_folders: Path) -> Path:
    folder = own_folders / "data" / "models"
    folder.mkdir(parents=True)
    return folder


def put(shelf: Path, *names: str) -> None:
    for name in names:
        (shelf / name).write_bytes(bytes(1000))


def names(shelf: Path) -> list[str]:
    return sorted(path.name for path in shelf.iterdir())


def test_a_model_is_deleted_by_its_name(shelf: Path) -> None:
    """Nothing else is, and what was freed is said on stderr."""
    put(shelf, "mine.gguf", "other.gguf", "notes.txt")
    outcome = call("rm", "--yes", "MINE")
    assert (outcome.code, outcome.out) == (0, "")
    assert outcome.sentence == "mine is deleted, which frees 0 MB."
    assert names(shelf) == ["notes.txt", "other.gguf"]
    assert call("rm", "-y", "other", "--quiet").err == ""
    assert names(shelf) == ["notes.txt"]


def test_all_parts_of_a_split_model_are_deleted(shelf: Path) -> None:
    """Also where some are missing; those of another model stay."""
    put(
        shelf,
        "big-00001-of-00003.gguf",
        "big-00002-of-00003.gguf",
        "big-00003-of-00003.gguf",
        "big-00001-of-00002.gguf",
    )
    assert call("rm", "--yes", "big-00001-of-00003").code == 0
    assert names(shelf) == ["big-00001-of-00002.gguf"]


def test_the_first_part_goes_last(shelf: Path) -> None:
    """So that a model of which only some parts could be deleted can be removed again."""
    put(shelf, "big-00001-of-00003.gguf", "big-00002-of-00003.gguf", "big-00003-of-00003.gguf")
    files = removal("big", shelf, load_catalog()).files
    assert [file.name for file in files] == [f"big-0000{number}-of-00003.gguf" for number in (3, 2, 1)]


def test_a_pair_is_deleted_with_its_draft_model(shelf: Path) -> None:
    """In all quantizations that are there."""
    put(shelf, "Qwen3-8B-Q4_K_M.gguf", "Qwen3-8B-Q8_0.gguf", "Qwen3-0.6B-Q8_0.gguf", "mine.gguf")
    outcome = call("rm", "--yes", "qwen3-8b")
    assert "Qwen3-8B-Q4_K_M, Qwen3-8B-Q8_0 and Qwen3-0.6B-Q8_0 are deleted" in outcome.sentence
    assert names(shelf) == ["mine.gguf"]


def test_a_draft_model_that_another_target_needs_stays(shelf: Path) -> None:
    """And which one needs it is said; asked for by its own name, it goes."""
    put(shelf, "Qwen3-8B-Q4_K_M.gguf", "Qwen3-14B-Q4_K_M.gguf", "Qwen3-0.6B-Q8_0.gguf")
    outcome = call("rm", "--yes", "qwen3-8b")
    assert outcome.err.splitlines()[0] == "localspec: Qwen3-0.6B-Q8_0 stays, since qwen3-14b drafts with it."
    assert names(shelf) == ["Qwen3-0.6B-Q8_0.gguf", "Qwen3-14B-Q4_K_M.gguf"]
    assert call("rm", "--yes", "qwen3-0.6b").code == 0
    assert names(shelf) == ["Qwen3-14B-Q4_K_M.gguf"]


def test_a_draft_model_alone_is_the_rest_of_a_pair(shelf: Path) -> None:
    put(shelf, "Qwen3-0.6B-Q8_0.gguf", "Qwen3-14B-Q4_K_M.gguf")
    assert call("rm", "--yes", "qwen3-8b").code == 0
    assert names(shelf) == ["Qwen3-14B-Q4_K_M.gguf"]


def test_a_link_is_deleted_and_what_it_leads_to_stays(shelf: Path, tmp_path: Path) -> None:
    """What another program has downloaded is its own."""
    (tmp_path / "cache").mkdir()
    put(tmp_path / "cache", "blob")
    (shelf / "linked.gguf").symlink_to(tmp_path / "cache" / "blob")
    assert call("rm", "--yes", "linked").code == 0
    assert names(shelf) == []
    assert names(tmp_path / "cache") == ["blob"]


@pytest.mark.parametrize("name", ["/etc/passwd.gguf", "../elsewhere.gguf", "models/mine.gguf"])
def test_a_path_is_no_name(name: str, shelf: Path) -> None:
    put(shelf, "mine.gguf")
    put(shelf.parent, "elsewhere.gguf")
    outcome = call("rm", "--yes", name)
    assert outcome.code == 1
    assert outcome.sentence == f"{name} is a path: give the name of an installed model, as localspec models shows it."
    assert names(shelf) == ["mine.gguf"]


def test_what_is_not_installed_cannot_be_deleted(shelf: Path) -> None:
    """Nor what several models are called; in one sentence."""
    put(shelf, "mine-a.gguf", "mine-b.gguf")
    assert (
        call("rm", "--yes", "qwen3-8b").sentence == "qwen3-8b is not installed: localspec pull qwen3-8b downloads it."
    )
    assert call("rm", "--yes", "mine").sentence.startswith("mine could be mine-a or mine-b")
    assert names(shelf) == ["mine-a.gguf", "mine-b.gguf"]


def test_without_a_terminal_nothing_is_deleted_unasked(shelf: Path) -> None:
    put(shelf, "mine.gguf")
    outcome = call("rm", "mine", stdin=b"y\n")
    assert outcome.code == 1
    assert "add --yes" in outcome.sentence
    assert names(shelf) == ["mine.gguf"]


def test_a_model_that_the_settings_name_is_named(
    shelf: Path, own_folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is deleted all the same: whoever asks for it knows better."""
    put(shelf, "mine.gguf", "small.gguf")
    (own_folders / "config").mkdir()
    (own_folders / "config" / "config.toml").write_text('model = "MINE"\ndraft = "small"\n', "utf-8")
    outcome = call("rm", "--yes", "mine")
    assert outcome.err.splitlines()[0] == (
        "localspec: MINE is the model that your settings name: choose another one there."
    )
    assert (
        call("rm", "--yes", "small")
        .err.splitlines()[0]
        .endswith("the draft that your settings name: choose another one there.")
    )
    assert names(shelf) == []


def on_a_terminal(answer: bytes | signal.Signals, *arguments: str) -> tuple[int, str]:
    """Run `localspec rm` in a terminal, and when it asks type `answer`, or send it that signal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command("rm", *arguments),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=surroundings(),
        start_new_session=True,
    )
    os.close(theirs)
    shown = b""
    while b"[y/N] " not in shown:
        shown += os.read(ours, 4096)
    if isinstance(answer, bytes):
        os.write(ours, answer)
    else:
        process.send_signal(answer)
    code = process.wait(PATIENCE)
    return code, (shown + rest_of(ours)).decode()


def rest_of(descriptor: int) -> bytes:
    """What is still to be read of a terminal whose other end is closed."""
    pieces: list[bytes] = []
    try:
        while piece := os.read(descriptor, 4096):
            pieces.append(piece)
    except OSError:
        pass  # Linux says so where others return nothing.
    os.close(descriptor)
    return b"".join(pieces)


@pytest.mark.terminal
@pytest.mark.parametrize(
    ("answer", "left"), [(b"y\n", []), (b"YES\n", []), (b"\n", ["mine.gguf"]), (b"n\n", ["mine.gguf"])]
)
def test_on_a_terminal_it_asks(answer: bytes, left: Sequence[str], shelf: Path) -> None:
    """Only a yes is a yes."""
    put(shelf, "mine.gguf")
    code, shown = on_a_terminal(answer, "mine")
    assert "Delete mine (0 MB)? [y/N] " in shown
    assert names(shelf) == list(left)
    assert code == (1 if left else 0)
    assert ("Nothing was deleted." in shown) == bool(left)


@pytest.mark.terminal
def test_ctrl_c_at_the_question_deletes_nothing(shelf: Path) -> None:
    put(shelf, "mine.gguf")
    code, _shown = on_a_terminal(signal.SIGINT, "mine")
    assert code == 130
    assert names(shelf) == ["mine.gguf"]


def begun(shelf: Path, name: str) -> None:
    put(shelf, f"{name}.part", f"{name}.part.json")


def test_what_has_only_begun_to_come_is_deleted(shelf: Path) -> None:
    """By the file's name or by the catalog's; another unfinished download stays."""
    begun(shelf, "mine-Q4_0.gguf")
    begun(shelf, "Qwen3-0.6B-Q8_0.gguf")
    begun(shelf, "other.gguf")
    assert (
        call("rm", "-y", "mine-q4_0").sentence == "the unfinished download of mine-Q4_0 is deleted, which frees 0 MB."
    )
    assert call("rm", "-y", "qwen3-0.6b").code == 0
    assert names(shelf) == ["other.gguf.part", "other.gguf.part.json"]
    assert call("rm", "-y", "oth").code == 1
    assert call("rm", "-y", "other.gguf").code == 0
    assert names(shelf) == []


def test_a_model_goes_with_the_newer_one_that_has_begun_to_come(shelf: Path) -> None:
    """Also the parts of a split one."""
    put(shelf, "big-00001-of-00002.gguf")
    begun(shelf, "big-00002-of-00002.gguf")
    assert call("rm", "-y", "big").sentence == "big is deleted, which frees 0 MB."
    assert names(shelf) == []


def test_a_download_under_way_is_not_taken_away(shelf: Path) -> None:
    """It is somebody's, perhaps of another window."""
    begun(shelf, "mine.gguf")
    with (shelf / "mine.gguf.part").open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        outcome = call("rm", "-y", "mine")
    assert (outcome.code, outcome.sentence) == (1, "mine.gguf is being downloaded now: stop that first.")
    assert names(shelf) == ["mine.gguf.part", "mine.gguf.part.json"]
