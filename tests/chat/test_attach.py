"""Files and pastes as documents."""

import os
from pathlib import Path

import pytest

from localspec.chat.attach import estimated_tokens, is_large, pasted_text, read_document, written_path
from localspec.chat.messages import Document
from localspec.chat.text_file import MOST_BYTES
from localspec.engine.errors import UserError

TEXT = "Grüße,\r\n世界\n\x1b[31mred\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_text_is_read_without_its_mark_and_with_newlines(encoding: str, tmp_path: Path) -> None:
    file = tmp_path / "notes.md"
    file.write_bytes(TEXT.encode(encoding))
    assert read_document(file) == Document("notes.md", TEXT.replace("\r\n", "\n"))


def test_big_endian_text_is_read_as_well(tmp_path: Path) -> None:
    file = tmp_path / "notes.md"
    file.write_bytes(b"\xfe\xff" + TEXT.encode("utf-16-be"))
    assert read_document(file).text == TEXT.replace("\r\n", "\n")


def test_a_text_of_an_older_encoding_is_read_as_well(tmp_path: Path) -> None:
    file = tmp_path / "letter.txt"
    file.write_bytes("Schöne Grüße aus Köln".encode("latin-1"))
    assert read_document(file).text == "Schöne Grüße aus Köln"


def test_a_tilde_is_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    (tmp_path / "a b.txt").write_text("x")
    assert read_document(Path("~/a b.txt")) == Document("a b.txt", "x")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\x7fELF\0\0\xff\xfe", "not a text file"),
        (b"valid but \0 binary", "not a text file"),
        ("Привет всем".encode("cp1251"), "not UTF-8"),
        (b"", "empty"),
        (b"\xef\xbb\xbf", "empty"),
    ],
)
def test_what_is_no_text_is_refused_in_one_sentence(data: bytes, words: str, tmp_path: Path) -> None:
    file = tmp_path / "thing"
    file.write_bytes(data)
    with pytest.raises(UserError, match=words) as caught:
        read_document(file)
    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_a_folder_and_a_pipe_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="There is no file"):
        read_document(tmp_path / "missing")
    with pytest.raises(UserError, match="is a folder"):
        read_document(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UserError, match="is not a file"):
        read_document(tmp_path / "pipe")


def test_paths_that_no_system_takes_are_refused(tmp_path: Path) -> None:
    for path in ("nul\0byte", "x" * 5000, "~no-such-person-here/x"):
        with pytest.raises(UserError):
            read_document(Path(path))


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_a_file_of_somebody_else_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("x")
    file.chmod(0)
    with pytest.raises(UserError, match="cannot be read"):
        read_document(file)


def test_a_file_that_is_too_large_is_refused_without_being_read_whole(tmp_path: Path) -> None:
    file = tmp_path / "large"
    with file.open("wb") as stream:
        stream.truncate(1000 * MOST_BYTES)
    with pytest.raises(UserError, match="20 MB"):
        read_document(file)


@pytest.mark.parametrize(
    ("paste", "large"),
    [("x" * 1000, False), ("x" * 1001, True), ("x\n" * 8, False), ("x\n" * 9, True), ("x\r" * 9, True), ("", False)],
)
def test_a_paste_is_large_beyond_a_thousand_characters_or_eight_lines(paste: str, large: bool) -> None:
    assert is_large(paste) is large


def test_a_paste_keeps_everything_but_the_line_ends_of_terminals() -> None:
    assert pasted_text("a\rb\r\nc\x1b[0m\x0cd\u2028e\ud800") == "a\nb\nc\x1b[0m\x0cd\u2028e\ufffd"


def test_tokens_are_estimated_at_four_characters() -> None:
    assert [estimated_tokens("x" * length) for length in (0, 1, 4, 5)] == [0, 1, 1, 2]


@pytest.mark.skipif(os.name != "posix", reason="elsewhere a backslash separates folders")
@pytest.mark.parametrize("words", ["a b.txt", "'a b.txt'", '"a b.txt"', "a\\ b.txt"])
def test_a_path_may_be_written_as_a_shell_wants_it(words: str) -> None:
    assert written_path(words) == Path("a b.txt")


@pytest.mark.parametrize("words", ["it's", "two 'words here'"])
def test_other_paths_are_taken_as_they_are(words: str) -> None:
    assert written_path(words) == Path(words)


def test_a_file_that_is_there_under_that_very_name_wins(tmp_path: Path) -> None:
    (tmp_path / "'a'").touch()
    assert written_path(str(tmp_path / "'a'")) == tmp_path / "'a'"
