"""`localspec rewrite` where all is well: the bytes of the files, where the text goes, and whether the figures fit together.

Where the words of an answer matter, they are made up; the model is loaded all the same, and counts the tokens.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from test_run_answer import CONTRACT, OURS, check_counts, check_times

from command import Outcome, call, read_json
from localspec.chat.rewrite import OnPrompt, Request
from localspec.chat.rewrite_prompt import rewrite_messages
from localspec.cli import cli
from rewriting import Answers

OURS_TOO = {"file", "output", "parts", "failed", "changed"}
Answer = Callable[[Callable[[str], str]], Answers]
FILES = {
    "crlf": b"one\r\n\r\ntwo\r\n",
    "no-final-newline": b"one\n\ttwo  ",
    "mixed": b"one\r\ntwo\nthree\rfour\r\n\n",
    "cr": b"one\rtwo\r",
    "bom": b"\xef\xbb\xbfone\r\ntwo\n",
    "utf-16-le": b"\xff\xfe" + "naïve 🎉\r\n\t\u05e9\u05dc\u05d5\u05dd\r\n".encode("utf-16-le"),
    "utf-16-be": b"\xfe\xff" + "\n\n  مرحبا b 🎉".encode("utf-16-be"),
    "latin-1": "Crème brûlée\r\nfür alle\r\n".encode("latin-1"),
    "blanks-and-fence": b"\n\n  ```py\n  x = 1\n\n  ```\n\n",
}


@pytest.fixture(autouse=True)
def nothing_to_measure(monkeypatch: pytest.MonkeyPatch) -> None:
    """What this machine takes is of no interest here."""
    monkeypatch.setenv("LOCALSPEC_DRAFTER", "lookup")


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> Answer:
    """Lets answers be what a function makes of the text."""

    def make(write: Callable[[str], str]) -> Answers:
        answers = Answers(write, size=50)

        def ask(_writer: object, request: Request, on_prompt: OnPrompt) -> object:
            return answers(request, on_prompt)

        monkeypatch.setattr("localspec.rewrite._Writer.ask", ask)
        return answers

    return make


def rewrite(model: Path, *options: object, stdin: bytes = b"") -> Outcome:
    return call("rewrite", "-m", model, "-i", "Do it.", *options, stdin=stdin)


def bytes_of(model: Path, *options: object, stdin: bytes = b"") -> bytes:
    """What is on stdout, after nothing has gone wrong."""
    words = [str(word) for word in ("rewrite", "-m", model, "-i", "Do it.", *options)]
    result = CliRunner().invoke(cli, words, input=stdin)
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout_bytes


@pytest.mark.parametrize("name", FILES)
def test_a_file_in_which_nothing_changes_is_the_same_byte_for_byte(name, tmp_path, tiny_llama, answer):
    """Encoding, mark, line ends, blanks, mode: on stdout, in another file, and in its own place."""
    answer(lambda text: text)
    path = tmp_path / name
    path.write_bytes(FILES[name])
    path.chmod(0o640)
    os.utime(path, ns=(1, 1))
    out = tmp_path / "out"
    assert bytes_of(tiny_llama, path) == FILES[name]
    assert bytes_of(tiny_llama, stdin=FILES[name]) == FILES[name]
    assert bytes_of(tiny_llama, path, "-o", out) == b""
    assert bytes_of(tiny_llama, path, "--in-place", "--backup") == b""
    assert bytes_of(tiny_llama, path, "--diff") == b""
    assert out.read_bytes() == path.read_bytes() == FILES[name]
    assert [stat.S_IMODE(file.stat().st_mode) for file in (path, out)] == [0o640, 0o640]
    # What is as it was has not been touched, and nothing lies around.
    assert path.stat().st_mtime_ns == 1
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted([name, "out"])


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_changes_keeps_what_is_not_its_words(name, tmp_path, tiny_llama, answer):
    """The same with capital letters."""
    answer(str.upper)
    path = tmp_path / name
    path.write_bytes(FILES[name])
    path.chmod(0o755)
    assert rewrite(tiny_llama, path, "--in-place", "--backup").code == 0
    encoding = "latin-1" if name == "latin-1" else name if name.startswith("utf-16") else "utf-8"
    assert path.read_bytes().decode(encoding) == FILES[name].decode(encoding).upper()
    assert stat.S_IMODE(path.stat().st_mode) == 0o755
    assert (tmp_path / f"{name}.bak").read_bytes() == FILES[name]


def test_a_text_longer_than_the_context_is_rewritten_in_parts(tmp_path, tiny_llama, answer):
    """As one text without seams."""
    answers = answer(lambda text: text.replace("rain", "snow"))
    text = "".join(f"Chapter {number}\r\n\r\n{'The rain fell. ' * 20}\r\n\r\n\r\n" for number in range(9))
    path = tmp_path / "book.txt"
    path.write_bytes(text.encode())
    assert bytes_of(tiny_llama, path) == text.replace("rain", "snow").encode()
    assert len(answers.requests) > 5


def test_several_files_are_rewritten_one_after_the_other(tmp_path, tiny_llama, answer):
    """One that cannot be does not keep the others from it."""
    answer(lambda text: text.upper() if "b" not in text else "→")
    for name, text in [("a", b"a\n"), ("b", b"b \xe9t\xe9 en for\xeat\n"), ("c", b"c\n"), ("empty", b"")]:
        (tmp_path / name).write_bytes(text)
    outcome = rewrite(tiny_llama, *sorted(tmp_path.iterdir()), "--in-place")
    assert outcome.code == 1
    assert f"{tmp_path / 'b'} needs the character '→', which Windows-1252 does not have" in outcome.sentence
    read = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert read == {"a": b"A\n", "b": b"b \xe9t\xe9 en for\xeat\n", "c": b"C\n", "empty": b""}


def test_diff_shows_what_would_change_and_changes_nothing(tmp_path, tiny_llama, answer, monkeypatch):
    """In the form that `patch` reads."""
    answer(lambda text: text.replace("b", "B").replace("d", "D\nE"))
    path = tmp_path / "it.txt"
    path.write_bytes(b"a\r\nb\r\nc\r\nd")
    monkeypatch.chdir(tmp_path)
    outcome = rewrite(tiny_llama, "it.txt", "--diff")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.splitlines() == [
        "--- a/it.txt",
        "+++ b/it.txt",
        "@@ -1,4 +1,5 @@",
        " a",
        "-b",
        "+B",
        " c",
        "-d",
        "\\ No newline at end of file",
        "+D",
        "+E",
        "\\ No newline at end of file",
    ]
    assert path.read_bytes() == b"a\r\nb\r\nc\r\nd"
    if shutil.which("patch"):
        shown = bytes_of(tiny_llama, "it.txt", "--diff")
        subprocess.run(["patch", "--binary", "-p1"], input=shown, check=True, capture_output=True)
        assert path.read_bytes() == b"a\r\nB\r\nc\r\nD\r\nE"


def test_a_new_file_gets_the_mode_of_its_source_or_the_usual_one(tmp_path, tiny_llama, answer):
    """A copy of a script can be run, and a text from a pipe can be read by whom it should."""
    answer(str.upper)
    (tmp_path / "script").write_text("a")
    (tmp_path / "script").chmod(0o700)
    (tmp_path / "plain").touch()
    assert rewrite(tiny_llama, tmp_path / "script", "-o", tmp_path / "copy").code == 0
    assert rewrite(tiny_llama, "-o", tmp_path / "piped", stdin=b"b").code == 0
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes["copy"] == modes["script"] == 0o700
    assert modes["piped"] == modes["plain"]
    assert ((tmp_path / "copy").read_text(), (tmp_path / "piped").read_text()) == ("A", "B")


def test_hard_links_are_mentioned(tmp_path, tiny_llama, answer):
    """The other name of the file shows the old text, which a person should know."""
    answer(str.upper)
    (tmp_path / "one").write_text("a")
    (tmp_path / "two").hardlink_to(tmp_path / "one")
    outcome = rewrite(tiny_llama, tmp_path / "one", "--in-place")
    assert outcome.code == 0
    assert outcome.sentence.endswith("was known by 2 names (hard links); the other ones keep the old text.")
    assert ((tmp_path / "one").read_text(), (tmp_path / "two").read_text()) == ("A", "a")


def test_a_part_that_fails_keeps_its_text_and_is_reported(tmp_path, tiny_llama, answer):
    """The rest is rewritten, and the exit code says that something is left to do."""
    answer(lambda text: "" if "Chapter 3" in text else text.upper())
    text = "".join(f"# Chapter {number}\n\n{'The rain fell. ' * 30}\n\n" for number in range(6))
    path = tmp_path / "book.txt"
    path.write_text(text)
    outcome = rewrite(tiny_llama, path, "--in-place", "--json")
    assert outcome.code == 1
    assert outcome.sentence == (
        f"Of the 6 parts of {path}, part 4 could not be rewritten and keeps its text (came back empty); "
        "try another model for it."
    )
    (values,) = read_json(outcome.out)["files"]
    assert (values["parts"], values["failed"]) == (6, [{"part": 4, "reason": "came back empty"}])
    assert (values["changed"], values["text"], values["output"]) == (True, None, str(path))
    kept = text[text.index("# Chapter 3") : text.index("# Chapter 4")]
    assert path.read_text() == text.upper().replace(kept.upper(), kept)


def test_json_has_the_figures_of_run(tiny_llama):
    """The same model, the same words, the same figures, under the same names."""
    # Without drafts: a drafter is told that this is a rewriting, and takes other steps.
    options = ("--drafter", "none", "--seed", 5, "--max-tokens", 90)
    text = "the cat sat on the mat and the cat sat on the hat"
    outcome = rewrite(tiny_llama, "--json", *options, stdin=f"{text}\n".encode())
    assert outcome.code == 1
    assert "did not come to an end" in outcome.sentence
    (values,) = read_json(outcome.out)["files"]
    assert set(values) == CONTRACT | OURS | OURS_TOO
    check_counts(values)
    check_times(values)
    (message,) = rewrite_messages("Do it.", text)
    run = call("run", "-m", tiny_llama, "--json", "--temp", 0, *options, "--", message.content).document
    for name in (CONTRACT | OURS) - {
        "text",
        "seconds",
        "plain_ms_per_token",
        "ms_per_token",
        "speedup",
        "host_ms_per_step",
    }:
        assert values[name] == run[name], name
    assert (values["file"], values["output"], values["text"], values["changed"]) == (None, None, f"{text}\n", False)


def test_several_parts_are_added_up(tmp_path, tiny_llama):
    """The figures are those of all that was read and written."""
    path = tmp_path / "book.txt"
    path.write_text("".join(f"Chapter {number}\n\n{'The rain fell. ' * 30}\n\n" for number in range(3)))
    outcome = rewrite(tiny_llama, path, "--json", "--max-tokens", 20, "--seed", 1)
    (values,) = read_json(outcome.out)["files"]
    assert (values["parts"], values["tokens"], values["seed"]) == (3, 60, 1)
    check_counts(values)
    assert values["prompt_tokens"] > path.stat().st_size
    assert 0 < values["reused_tokens"] < values["prompt_tokens"]


def test_a_preset_is_an_instruction_and_can_be_a_persons_own(tiny_llama, own_folders, answer):
    """Names are read with blanks or hyphens; words behind a preset are added to it."""
    (own_folders / "config").mkdir(parents=True)
    (own_folders / "config" / "config.toml").write_text('[rewrite.presets]\nboss = "Make it fit for my boss."\n')
    asked = {
        ("--preset", "Boss"): "Make it fit for my boss.",
        ("--preset", "translate:Low German"): "Translate it into Low German. Keep the formatting as it is.",
        ("--preset", "boss", "-i", "Be brief."): "Make it fit for my boss. Be brief.",
    }
    for options, instruction in asked.items():
        answers = answer(str.upper)
        assert call("rewrite", "-m", tiny_llama, *options, stdin=b"a").out == "A"
        assert instruction in answers.requests[0].messages[-1].content


def test_what_the_model_recommends_for_chats_does_not_keep_it_from_copying(models, answer):
    """Nothing is drawn at random and nothing that was said is made less likely, unless a person wants that."""
    import tiny
    from localspec.engine.engine import Engine

    extra = {"general.sampling.temp": 0.9, "general.sampling.penalty_repeat": 1.3}
    model = tiny.llama(models / "chatty.gguf", chat_template=tiny.CHAT_TEMPLATE, extra=extra)
    options = []
    generate = Engine.generate

    def note(engine, prompt, chosen, *more, **named):
        options.append(chosen)
        return generate(engine, prompt, chosen, *more, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Engine, "generate", note)
        rewrite(model, "--max-tokens", 3, stdin=b"a")
        rewrite(model, "--max-tokens", 3, "--temp", 0.4, "--repeat-penalty", 1.1, stdin=b"a")
    found = [(chosen.sampling.temperature, chosen.sampling.repeat_penalty) for chosen in options]
    assert found == [(0.0, 1.0), (0.4, 1.1)]
