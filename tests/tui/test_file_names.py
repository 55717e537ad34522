"""Completing a path."""

from pathlib import Path

import pytest

from localspec.tui.file_names import MOST_SHOWN, matching_paths


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to be in."""
    for name in ("notes.md", "My Notes.txt", "data.csv", ".hidden", "src/note_taking.py", "src/deep/er/annotated.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / ".cache").mkdir()
    (tmp_path / ".cache" / "note").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "src"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "src"))
    return tmp_path


def test_without_a_letter_it_is_the_folder() -> None:
    assert matching_paths("") == ["data.csv", "My Notes.txt", "notes.md", "src/"]


def test_names_that_begin_like_it_come_first_then_those_that_hold_it_then_those_below() -> None:
    assert matching_paths("NOT") == [
        "notes.md",
        "My Notes.txt",
        "src/note_taking.py",
        "src/deep/er/annotated.py",
    ]


def test_a_single_letter_is_not_searched_below() -> None:
    assert matching_paths("n") == ["notes.md", "My Notes.txt"]


def test_paths_are_written_the_same_way(folder: Path) -> None:
    assert matching_paths("src/") == ["src/deep/", "src/note_taking.py"]
    assert matching_paths("./src/n") == ["./src/note_taking.py"]
    assert matching_paths("~") == ["~/"]
    assert matching_paths("~/n") == ["~/note_taking.py"]
    assert matching_paths(f"{folder}/no") == [f"{folder}/notes.md", f"{folder}/My Notes.txt"]


def test_hidden_files_are_found_by_their_dot() -> None:
    assert matching_paths(".") == [".cache/", ".hidden", "data.csv", "My Notes.txt", "notes.md"]


@pytest.mark.parametrize("fragment", ["missing/x", "nul\0byte/x", "notes.md/x", "~no-such-person-here/", "x" * 5000])
def test_where_there_is_nothing_nothing_is_found(fragment: str) -> None:
    assert matching_paths(fragment) == []


def test_large_folders_and_links_in_circles_have_an_end(folder: Path) -> None:
    (folder / "src" / "up").symlink_to(folder, target_is_directory=True)
    for number in range(100):
        (folder / f"file{number}").touch()
    assert len(matching_paths("file")) == MOST_SHOWN
    assert matching_paths("er") == []
