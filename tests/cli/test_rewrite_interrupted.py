"""Ctrl-C, a killed process, and files that change meanwhile: the original is untouched, and what was made is kept."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import tiny
from command import PATIENCE, ROOT, Outcome, call, read_json, surroundings
from localspec.chat.rewrite import OnPrompt, Request
from localspec.engine.step import Finish, Step, closing_step
from rewriting import DRIVER, Answers, steps_of

INTERRUPTED = 130
BOOK = "".join(f"# Chapter {number}\n\n{'The rain fell. ' * 30}\n\n" for number in range(6))


@pytest.fixture(autouse=True)
def nothing_to_measure(monkeypatch: pytest.MonkeyPatch) -> None:
    """What this machine takes is of no interest here."""
    monkeypatch.setenv("LOCALSPEC_DRAFTER", "lookup")


@pytest.fixture
def book(tmp_path: Path) -> Path:
    path = tmp_path / "book.txt"
    path.write_text(BOOK)
    return path


def rewrite(model: Path, *options: object, stdin: bytes = b"") -> Outcome:
    return call("rewrite", "-m", model, "-i", "Shout.", *options, stdin=stdin)


def answering(monkeypatch: pytest.MonkeyPatch, before: Callable[[int], object]) -> Answers:
    """Answers in capital letters; `before` is called with the number of each request in the middle of its answer."""
    answers = Answers(str.upper)

    def ask(writer: object, request: Request, on_prompt: OnPrompt) -> Iterator[Step]:
        number = len(answers.requests)
        steps = list(answers(request, on_prompt))
        yield from steps[: len(steps) // 2]
        before(number)
        if writer.interruption.stop.asked:
            yield closing_step(Finish.INTERRUPTED)
            return
        yield from steps[len(steps) // 2 :]

    monkeypatch.setattr("localspec.rewrite._Writer.ask", ask)
    return answers


@pytest.mark.parametrize("place", ["in place", "elsewhere"])
def test_control_c_leaves_the_original_and_the_same_command_goes_on(place, book, tiny_llama, press, monkeypatch):
    """Not one part is written twice."""
    out = book if place == "in place" else book.with_name("out.txt")
    options = (book, "--in-place") if place == "in place" else (book, "-o", out)
    answering(monkeypatch, lambda number: press() if number == 3 else None)
    outcome = rewrite(tiny_llama, *options)
    assert outcome.code == INTERRUPTED
    part = out.with_name(f"{out.name}.part")
    stays = "stays as it is" if place == "in place" else "is not there yet"
    assert (
        outcome.sentence == f"{out} {stays}; what is done is kept in {part}, and the same command goes on from there."
    )
    assert book.read_text() == BOOK
    assert part.read_text() == BOOK[: BOOK.index("# Chapter 3")].upper()
    answers = answering(monkeypatch, lambda number: None)
    assert (rewrite(tiny_llama, *options).code, out.read_text()) == (0, BOOK.upper())
    assert len(answers.requests) == 3
    # The part that was under way went on behind its last word.
    assert answers.requests[0].begun == answers.requests[0].document.upper()[: len(answers.requests[0].begun)] != ""
    assert sorted(path.name for path in book.parent.iterdir()) == sorted({book.name, out.name})


def test_line_ends_are_right_behind_a_stop(book, tiny_llama, press, monkeypatch):
    """Of a file with mixed ones, every line has its own also in the parts that are written later."""
    mixed = BOOK.replace("\n\n#", "\r\n\n#").encode()
    book.write_bytes(mixed)
    answering(monkeypatch, lambda number: press() if number == 2 else None)
    assert rewrite(tiny_llama, book, "--in-place").code == INTERRUPTED
    answering(monkeypatch, lambda number: None)
    assert (rewrite(tiny_llama, book, "--in-place").code, book.read_bytes()) == (0, mixed.upper())


def test_another_instruction_does_not_go_on_with_what_is_there(book, tiny_llama, press, monkeypatch):
    """Two halves that do not belong together are not joined, and the first one is not lost either."""
    answering(monkeypatch, lambda number: press() if number == 2 else None)
    assert rewrite(tiny_llama, book, "--in-place").code == INTERRUPTED
    part = book.with_name("book.txt.part")
    kept = part.read_text()
    answers = answering(monkeypatch, lambda number: None)
    outcome = call("rewrite", "-m", tiny_llama, "-i", "Cry.", book, "--in-place")
    assert (outcome.code, book.read_text(), len(answers.requests)) == (0, BOOK.upper(), 6)
    assert part.read_text() == kept


def test_a_file_of_that_name_which_is_not_ours_is_left_alone(book, tiny_llama, press, monkeypatch):
    """Downloads are called .part as well."""
    part = book.with_name("book.txt.part")
    part.write_text("half a film")
    answering(monkeypatch, lambda number: press() if number == 2 else None)
    outcome = rewrite(tiny_llama, book, "--in-place")
    assert f"is kept in {part}.2, and" in outcome.sentence
    answers = answering(monkeypatch, lambda number: None)
    assert (rewrite(tiny_llama, book, "--in-place").code, book.read_text()) == (0, BOOK.upper())
    assert len(answers.requests) == 4
    assert part.read_text() == "half a film"


def test_control_c_gives_what_there_is_on_stdout(book, tiny_llama, press, monkeypatch):
    """To the last word."""
    answering(monkeypatch, lambda number: press() if number == 1 else None)
    outcome = rewrite(tiny_llama, book)
    assert (outcome.code, outcome.err) == (INTERRUPTED, "")
    assert BOOK.upper().startswith(outcome.out)
    assert len(outcome.out) > BOOK.index("# Chapter 1") + 100


def test_control_c_before_anything_is_made_leaves_nothing_behind(book, tiny_llama, press, monkeypatch):
    """No empty part files."""

    def ask(writer: object, request: Request, on_prompt: OnPrompt) -> Iterator[Step]:
        press()
        yield closing_step(Finish.INTERRUPTED)

    monkeypatch.setattr("localspec.rewrite._Writer.ask", ask)
    outcome = rewrite(tiny_llama, book, "--in-place")
    assert (outcome.code, outcome.sentence) == (INTERRUPTED, f"{book} stays as it is.")
    assert [path.name for path in book.parent.iterdir()] == ["book.txt"]


def test_control_c_stops_the_real_engine(book, tiny_llama, press, monkeypatch):
    """In the middle of an answer."""
    shown = []

    def show(_progress: object, text: str) -> None:
        shown.append(text)
        if text.startswith("rewriting"):
            press()

    monkeypatch.setattr("localspec.console.Progress.show", show)
    outcome = rewrite(tiny_llama, book, "--json", "--in-place")
    assert outcome.code == INTERRUPTED
    (values,) = read_json(outcome.out)["files"]
    assert (values["finish_reason"], values["steps"]) == ("interrupted", 1)
    assert book.read_text() == BOOK
    assert any(text.startswith("reading part 1 of 6 of book.txt") for text in shown)
    assert shown[-1].startswith("rewriting book.txt   0%, part 1 of 6, ")


def test_a_file_that_changes_meanwhile_is_not_overwritten(book, tiny_llama, monkeypatch):
    """And the rewritten text is not lost."""
    answering(monkeypatch, lambda number: book.write_text("edited") if number == 4 else None)
    outcome = rewrite(tiny_llama, book, "--in-place", "--backup")
    kept = book.with_name("book.txt.rewritten")
    assert outcome.code == 1
    assert outcome.sentence == (f"{book} was changed meanwhile and stays as it is; the rewritten text is in {kept}.")
    assert (book.read_text(), kept.read_text()) == ("edited", BOOK.upper())
    assert sorted(path.name for path in book.parent.iterdir()) == [book.name, kept.name]


def test_sixty_thousand_words_survive_a_kill(tmp_path, models, monkeypatch):
    """A process that is killed in the middle has kept every part that was finished, and no more is asked than is left."""
    model = tiny.llama(models / "long.gguf", chat_template=tiny.CHAT_TEMPLATE, context=8192)
    path = tmp_path / "book.txt"
    path.write_text("".join(f"Day {number} it rained and the river rose a little.\n\n" for number in range(6000)))
    text = path.read_text()
    words = ("rewrite", "-m", model, "--ctx", 8192, "-i", "Shout.", path, "--in-place")
    environment = surroundings(PYTHONPATH=os.pathsep.join([str(ROOT), str(ROOT / "tests")]))
    command = [sys.executable, "-c", DRIVER, "50", *map(str, words)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout.readline() == b"there\n"
        process.kill()
        process.wait(PATIENCE)
    assert path.read_text() == text
    state = json.loads(path.with_name("book.txt.part.state").read_bytes())
    assert state["state"]["part"] == 50
    # What a kill may leave behind in the middle of a write does not count.
    with path.with_name("book.txt.part").open("ab") as part:
        part.write(b"half a wo" * 50_000)
    answers = Answers(str.upper, size=2000)
    monkeypatch.setattr("localspec.rewrite._Writer.ask", lambda writer, *asked: answers(*asked))
    outcome = call(*words, "--json")
    (values,) = outcome.document["files"]
    assert len(answers.requests) == values["parts"] - 50 > 50
    assert hashlib.sha256(path.read_bytes()).digest() == hashlib.sha256(text.upper().encode()).digest()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["book.txt"]


def test_a_reader_who_has_seen_enough_is_no_error(book, tiny_llama, monkeypatch):
    """As in `localspec rewrite book.txt | head`."""
    monkeypatch.setattr("localspec.rewrite._Writer.ask", lambda writer, request, on_prompt: steps_of(request.document))

    def broken(_outlet: object, text: str, state: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr("localspec.rewrite_output.Stream._take", broken)
    outcome = rewrite(tiny_llama, book)
    assert (outcome.code, outcome.err) == (0, "")
