"""Rewritings that meet: one file named twice, two processes with one file, and one that is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from command import PATIENCE, ROOT, call, surroundings
from rewriting import DRIVER, Answers

BOOK = "".join(f"# Chapter {number}\n\n{'The rain fell. ' * 30}\n\n" for number in range(6))


@pytest.fixture
def book(tmp_path: Path) -> Path:
    path = tmp_path / "book.txt"
    path.write_text(BOOK)
    return path


def begin(book: Path, tiny_llama: Path, wait_at: int) -> subprocess.Popen[bytes]:
    """A rewriting in place that waits at its part number `wait_at` until its stdin is closed."""
    words = ["rewrite", "-m", str(tiny_llama), "-i", "Shout.", "--in-place", "--ctx", "512", str(book)]
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    return subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(wait_at), *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=surroundings(LOCALSPEC_DRAFTER="lookup") | {"PYTHONPATH": path},
    )


def until_there(process: subprocess.Popen[bytes]) -> None:
    assert process.stdout
    assert process.stdout.readline() == b"there\n"


def test_two_rewritings_of_one_file_lose_no_text(book, tiny_llama):
    """The one that ends first is in the file, the other one's text beside it, and both are whole."""
    first, second = begin(book, tiny_llama, 2), begin(book, tiny_llama, 2)
    until_there(first)
    until_there(second)
    _, err = first.communicate(timeout=PATIENCE)
    assert (first.returncode, err) == (0, b"")
    assert book.read_text() == BOOK.upper()
    _, err = second.communicate(timeout=PATIENCE)
    assert second.returncode == 1
    assert err.startswith(f"localspec: {book} was changed meanwhile and stays as it is; ".encode())
    assert book.with_name("book.txt.rewritten").read_text() == BOOK.upper()
    assert sorted(path.name for path in book.parent.iterdir()) == ["book.txt", "book.txt.rewritten"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
@pytest.mark.parametrize("wait_at", [0, 2])
def test_whatever_ends_it_the_same_command_goes_on(book, tiny_llama, number, wait_at):
    """The original is as it was, no part is lost, and at the end nothing is left over."""
    process = begin(book, tiny_llama, wait_at)
    until_there(process)
    process.send_signal(number)
    process.communicate(timeout=PATIENCE)
    assert process.returncode == -number
    assert book.read_text() == BOOK
    again = begin(book, tiny_llama, -1)
    _, err = again.communicate(timeout=PATIENCE)
    assert (again.returncode, err) == (0, b"")
    assert book.read_text() == BOOK.upper()
    assert [path.name for path in book.parent.iterdir()] == ["book.txt"]


def test_a_file_that_is_named_twice_is_rewritten_once(book, tiny_llama, monkeypatch):
    """Also where the second name is a link; its turn would find it changed."""
    answers = Answers(str.upper)
    monkeypatch.setattr("localspec.rewrite._Writer.ask", lambda _writer, request, told: answers(request, told))
    link = book.with_name("link.txt")
    link.symlink_to(book)
    outcome = call("rewrite", "-m", tiny_llama, "-i", "Shout.", "--in-place", book, link, book)
    assert (outcome.code, outcome.err) == (0, "")
    assert book.read_text() == BOOK.upper()
    assert link.is_symlink()
    assert sorted(path.name for path in book.parent.iterdir()) == ["book.txt", "link.txt"]


def test_several_texts_in_one_document(book, tiny_llama, monkeypatch):
    """JSON has a place for each, in the order in which they were named."""
    answers = Answers(str.upper)
    monkeypatch.setattr("localspec.rewrite._Writer.ask", lambda _writer, request, told: answers(request, told))
    other = book.with_name("a.txt")
    other.write_text("short\n")
    outcome = call("rewrite", "-m", tiny_llama, "-i", "Shout.", "--json", book, other)
    assert (outcome.code, outcome.err) == (0, "")
    files = json.loads(outcome.out)["files"]
    assert [file["text"] for file in files] == [BOOK.upper(), "SHORT\n"]


def test_an_instruction_that_fills_the_context_is_told_to_be_the_one(book, tiny_llama):
    """Not the context is short then."""
    outcome = call("rewrite", "-m", tiny_llama, "-i", "word " * 20_000, book)
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.sentence.startswith("The instruction is too long for a context of ")
