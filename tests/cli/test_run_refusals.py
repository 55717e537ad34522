"""What `localspec run` cannot do it says in one sentence, with the remedy in it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

import tiny
import tiny_bad
from command import Outcome, call, execute, shell

FAILED, USAGE = 1, 2


@dataclass(frozen=True)
class Case:
    """Options that are refused, `{name}` standing for a file of that name; parts of the sentence; and the exit code."""

    options: tuple[object, ...]
    says: tuple[str, ...]
    code: int = FAILED
    stdin: bytes = b""
    prompt: tuple[str, ...] = ("Hi",)


def file(name: str, *says: str) -> Case:
    return Case(("-m", name), says)


def value(*options: object, says: tuple[str, ...]) -> Case:
    return Case(("-m", "good.gguf", *options), says, USAGE)


def question(*prompt: str, stdin: bytes = b"", says: tuple[str, ...]) -> Case:
    return Case(("-m", "good.gguf"), says, FAILED, stdin, prompt)


CASES = {
    "a missing file": file("./nowhere.gguf", "There is no file ./nowhere.gguf", "give the path"),
    "an unknown name": file("llama-9b", "No model called llama-9b is installed", "give the path"),
    "an empty name": Case(("-m", " "), ("--model ' ' is empty", "give a value"), USAGE),
    "a hub reference": file("someone/something:Q4_K_M", "is not installed", "localspec pull someone/something:Q4_K_M"),
    "a folder": file("./folder", "./folder is a folder", "give the path of a .gguf file in it"),
    "a folder called .gguf": file("./folder.gguf", "is a folder", "give the path of a .gguf file"),
    "no GGUF": file("text.gguf", "text.gguf is not a GGUF model file", "give the path"),
    "a web page": file("page.gguf", "it looks like a web page", "give the path"),
    "an empty file": file("empty.gguf", "empty.gguf is empty", "download it again"),
    "a header cut short": file("head.gguf", "head.gguf is cut short", "download it again"),
    "tensors cut short": file("cut.gguf", "cut.gguf is cut short: it holds", "download it again"),
    "a vocabulary": file("vocabulary.gguf", "holds a vocabulary but no weights", "give the GGUF file of a whole model"),
    "an embedding model": file("bert.gguf", "is an embedding model", "give a chat model"),
    "a pooled model": file("pooled.gguf", "is an embedding model", "give a chat model"),
    "a translator": file("t5.gguf", "t5.gguf does not write text", "give a chat model"),
    "an unknown architecture": file("unheard.gguf", "'unheardof', which this build of llama.cpp does not know", "choose"),
    "a hostile architecture": file("hostile.gguf", r"architecture 'a\n\x1b[31mb'", "choose another model"),
    "missing tensors": file("holes.gguf", "llama.cpp could not load holes.gguf", "output_norm.weight", "download"),
    "a damaged number": file("layerless.gguf", "its number of layers is 0", "download it again"),
    "a template that raises": file("raising.gguf", "template"),
    "a template that is no template": file("broken.gguf", "template"),
    "a template for the machine": file("escaping.gguf", "template"),
    "a draft of another family": Case(
        ("-m", "good.gguf", "-d", "other.gguf"),
        ("token 65 is 'A' in the target and 'B' in the draft", "choose a draft of the same family"),
    ),
    "a missing draft": Case(("-m", "good.gguf", "-d", "./no.gguf"), ("There is no file ./no.gguf", "give the path")),
    "a draft that is no model": Case(("-m", "good.gguf", "-d", "text.gguf"), ("not a GGUF model file", "give")),
    "no draft to draft with": Case(
        ("-m", "good.gguf", "--drafter", "draft"), ("no draft model", "--draft, or choose --drafter lookup")
    ),
    "a draft taken back": Case(
        ("-m", "good.gguf", "-d", "good.gguf", "-d", "none", "--drafter", "draft"), ("no draft model", "--draft")
    ),
    "a context larger than memory": Case(
        ("-m", "good.gguf", "--ctx", 1 << 30), ("A context of 1073741824 tokens needs 274.9 GB", "choose --ctx")
    ),
    "a quantized cache for narrow heads": Case(
        ("-m", "narrow.gguf", "--kv-type", "q8_0"), ("attention heads of 16", "use --kv-type f16")
    ),
    "no prompt": question(says=("The prompt is empty", "localspec run")),
    "an empty prompt": question("", says=("The prompt is empty", "localspec run")),
    "a blank prompt": question(" ", "\n", says=("The prompt is empty", "localspec run")),
    "a blank prompt and nothing piped": question(" ", stdin=b" \n\t", says=("The prompt is empty", "localspec run")),
    "only a byte order mark": question(stdin=b"\xef\xbb\xbf", says=("The prompt is empty", "localspec run")),
    "a prompt longer than the context": question(
        "x" * 3000, says=("The prompt has 3019 tokens and the context holds 2048", "--ctx")
    ),
    "a document longer than the context": question(
        "Hi", stdin=b"y" * 5000, says=("and the context holds 2048", "shorten the text")
    ),
    "a tiny context": Case(
        ("-m", "good.gguf", "--ctx", 1), ("and the context holds 256", "--ctx"), prompt=("z" * 300,)
    ),
    "latin-1 on stdin": question(stdin=b"caf\xe9", says=("not UTF-8 (byte 4 is 0xe9)", "iconv")),
    "UTF-16 on stdin": question("Hi", stdin="café".encode("utf-16"), says=("not UTF-8 (byte 1 is 0xff)", "iconv")),
    "an endless stdin": question("Hi", stdin=bytes(17 << 20), says=("longer than 16 MB", "give a shorter one")),
    "temperature nan": value("--temp", "nan", says=("--temp nan is not a number", "from 0 to 5")),
    "temperature inf": value("--temp", "inf", says=("--temp inf is out of range", "from 0 to 5")),
    "temperature below zero": value("--temp", "-0.1", says=("--temp -0.1 is out of range", "from 0 to 5")),
    "temperature in words": value("--temp", "hot", says=("--temp hot is not a number", "from 0 to 5")),
    "top-p 2": value("--top-p", 2, says=("--top-p 2 is out of range", "from 0 to 1")),
    "top-k -1": value("--top-k", -1, says=("--top-k -1 is out of range", "from 0 to")),
    "top-k 1.5": value("--top-k", 1.5, says=("--top-k 1.5 is not a whole number", "from 0 to")),
    "min-p -1": value("--min-p", -1, says=("--min-p -1 is out of range", "from 0 to 1")),
    "repeat penalty 0": value("--repeat-penalty", 0, says=("--repeat-penalty 0 is out of range", "from 0.1 to 10")),
    "frequency penalty 3": value("--frequency-penalty", 3, says=("is out of range", "from -2 to 2")),
    "presence penalty -inf": value("--presence-penalty", "-inf", says=("is out of range", "from -2 to 2")),
    "seed -1": value("--seed", -1, says=("--seed -1 is out of range", "from 0 to 4294967295")),
    "seed 2**32": value("--seed", 1 << 32, says=("is out of range", "from 0 to 4294967295")),
    "no tokens at all": value("--max-tokens", 0, says=("--max-tokens 0 is out of range", "from 1 to")),
    "an unknown drafter": value("--drafter", "medusa", says=("--drafter medusa", "auto, draft, lookup or none")),
    "an unknown verification": value("--verification", "no", says=("--verification no", "auto, match or rejection")),
    "an unknown cache": value("--kv-type", "q4_0", says=("--kv-type q4_0", "f16 or q8_0")),
    "drafts of 0": value("--draft-max", 0, says=("--draft-max 0 is out of range", "from 1 to 32")),
    "drafts of 33": value("--draft-max", 33, says=("--draft-max 33 is out of range", "from 1 to 32")),
    "a context of 0": value("--ctx", 0, says=("--ctx 0 is out of range", "from 1 to")),
    "no threads": value("--threads", 0, says=("--threads 0 is out of range", "from 1 to 1024")),
    "gpu-layers -1": value("--gpu-layers", -1, says=("--gpu-layers -1 is out of range", "or all")),
    "a number of many digits": value("--ctx", "9" * 5000, says=("--ctx 9999", "give a whole number")),
    "a number of too many digits for a float": value("--ctx", "9" * 400, says=("--ctx 9999", "from 1 to 1073741824")),
    "a value on two lines": value("--drafter", "auto\nnone", says=(r"auto\nnone", "is not one of the choices")),
    "an option that nearly exists": value("--tempo", 1, says=("no option --tempo", "perhaps --temp is meant")),
    "an option that does not exist": value("--wings", says=("There is no option --wings", "see localspec run -h")),
    "a question with a dash": value("-5 degrees?", says=("There is no option -5", "put -- before a question")),
    "an option without its value": Case(("--temp",), ("--temp", "see localspec run -h"), USAGE, prompt=()),
    "a flag with a value": value("--json=yes", says=("--json", "see localspec run -h")),
    "two forms": value("--json", "--jsonl", says=("one form", "choose one of --json and --jsonl")),
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every file that the cases name."""
    place = tmp_path_factory.mktemp("refused")
    good = tiny.llama(place / "good.gguf", chat_template=tiny.CHAT_TEMPLATE)
    tiny.llama(place / "narrow.gguf", heads=4)
    tiny.llama(place / "layerless.gguf", extra={"llama.block_count": 0})
    tiny.llama(place / "holes.gguf", drop=["output_norm.weight"])
    for name, template in {
        "raising": "{{ raise_exception('this model only sings') }}",
        "broken": "{% for message in messages %}",
        "escaping": "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    }.items():
        tiny.llama(place / f"{name}.gguf", chat_template=template)
    tiny_bad.other_vocabulary(place / "other.gguf")
    tiny_bad.vocab_only(place / "vocabulary.gguf")
    tiny_bad.embedding(place / "bert.gguf")
    tiny_bad.embedding(place / "pooled.gguf", architecture="llama", pooling=3, causal=True)
    tiny_bad.unknown_architecture(place / "unheard.gguf")
    tiny_bad.unknown_architecture(place / "hostile.gguf", architecture="a\n\x1b[31mb")
    tiny_bad.unknown_architecture(place / "t5.gguf", architecture="t5")
    tiny_bad.truncated(place / "cut.gguf", good)
    tiny_bad.truncated(place / "head.gguf", good, keep=0.001)
    (place / "text.gguf").write_text("once upon a time")
    (place / "page.gguf").write_text("<!doctype html>")
    (place / "empty.gguf").touch()
    (place / "folder").mkdir()
    (place / "folder.gguf").mkdir()
    return place


@pytest.mark.parametrize("name", CASES)
def test_it_is_one_sentence_with_the_remedy(name, folder, monkeypatch):
    case = CASES[name]
    monkeypatch.chdir(folder)
    outcome = call("run", *case.options, *case.prompt, stdin=case.stdin)
    assert (outcome.code, outcome.out) == (case.code, "")
    for part in case.says:
        assert part in outcome.sentence


@pytest.mark.parametrize("form", ["--json", "--jsonl", "--quiet"])
def test_a_script_gets_an_exit_code_and_the_sentence_and_no_half_document(form, folder):
    outcome = execute("run", "-m", folder / "bert.gguf", form, "Hi")
    assert (outcome.code, outcome.out) == (FAILED, "")
    assert "is an embedding model" in outcome.sentence


@pytest.mark.parametrize("name", ["unheard.gguf", "holes.gguf", "cut.gguf"])
def test_llama_cpp_says_nothing_on_the_screen_about_a_file_it_cannot_load(name, folder):
    outcome = execute("run", "-m", folder / name, "Hi")
    assert (outcome.code, outcome.out) == (FAILED, "")
    assert name in outcome.sentence


def test_debug_shows_where_it_happened(folder):
    for arguments in (("--debug", "run"), ("run", "--debug")):
        outcome = call(*arguments, "-m", folder / "text.gguf", "Hi")
        assert outcome.code == FAILED
        assert outcome.err.startswith("Traceback (most recent call last):\n")
        assert outcome.err.splitlines()[-1].startswith("localspec: text.gguf is not a GGUF")


def test_a_bug_is_one_sentence_too(folder, monkeypatch):
    monkeypatch.setattr("localspec.run.options", lambda *_: 1 // 0)
    outcome = call("run", "-m", folder / "good.gguf", "Hi")
    assert (outcome.code, outcome.out) == (FAILED, "")
    assert "went wrong (ZeroDivisionError: integer division or modulo by zero)" in outcome.sentence
    assert "--debug" in outcome.sentence
    shown = call("run", "--debug", "-m", folder / "good.gguf", "Hi")
    assert shown.code == FAILED
    assert "ZeroDivisionError" in shown.err.splitlines()[-2]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"temp = 0.5\ntop_k = \n", "Line 2 of"),
        (b"temp = 'warm'\n", "temp = warm in"),
        (b"temperature = 0.5\n", "did you mean temp?"),
        (b"system = '\xff'\n", "not UTF-8"),
    ],
)
def test_a_wrong_config_file_is_named(content, says, folder, own_folders):
    (own_folders / "config").mkdir()
    (own_folders / "config" / "config.toml").write_bytes(content)
    outcome = call("run", "-m", folder / "good.gguf", "Hi")
    assert (outcome.code, outcome.out) == (USAGE, "")
    assert says in outcome.sentence
    assert "config.toml" in outcome.sentence


def test_a_wrong_variable_is_named(folder, monkeypatch):
    monkeypatch.setenv("LOCALSPEC_TOP_P", "1.5")
    outcome = call("run", "-m", folder / "good.gguf", "Hi")
    assert (outcome.code, outcome.out) == (USAGE, "")
    assert outcome.sentence == "LOCALSPEC_TOP_P=1.5 is out of range: give a number from 0 to 1."


def test_a_file_that_may_not_be_read_is_named(folder, monkeypatch):
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        place.chmod(0o755)
        monkeypatch.setenv("LOCALSPEC_CONFIG_DIR", name)
        model = place / "private.gguf"
        model.write_bytes((folder / "good.gguf").read_bytes())
        assert call("run", "-m", model, "--max-tokens", 1, "Hi").code == 0
        model.chmod(0)
        outcome = as_nobody(lambda: call("run", "-m", model, "Hi"))
    assert (outcome.code, outcome.out) == (FAILED, "")
    assert "private.gguf cannot be read (Permission denied)" in outcome.sentence
    assert "permissions" in outcome.sentence


def as_nobody(task: Callable[[], Outcome]) -> Outcome:
    """Do something without the powers of root, who may read everything."""
    if os.geteuid() != 0:
        return task()
    os.seteuid(65534)
    try:
        return task()
    finally:
        os.seteuid(0)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("What is a monad?",), ("There is no command What is a monad?", "write localspec run and the question")),
        (("runn", "Hi"), ("There is no command runn", "perhaps run is meant")),
        (("x" * 5000,), ("There is no command xxx", "localspec run")),
        (("--wings",), ("There is no option --wings", "see localspec -h")),
        (("--temp", "nan"), ("--temp nan is not a number",)),
        (("--temp",), ("--temp", "see localspec -h")),
    ],
)
def test_what_is_no_command_is_one_sentence(arguments, says):
    outcome = call(*arguments)
    assert (outcome.code, outcome.out) == (USAGE, "")
    for part in says:
        assert part in outcome.sentence


def test_the_chat_says_that_it_needs_a_terminal():
    outcome = execute()
    assert (outcome.code, outcome.out) == (FAILED, "")
    assert outcome.sentence == "The chat needs a terminal; without one, write localspec run and the question."


@pytest.mark.parametrize("line", ['"$@" </dev/null >&-', '"$@" <&- >&-'])
def test_without_stdout_nothing_is_loaded(line, folder):
    outcome = shell(line, "run", "-m", folder / "good.gguf", "Hi")
    assert outcome.code == FAILED
    assert outcome.sentence.startswith("There is no stdout to write the answer to;")
    assert shell(line, "--temp", 1).sentence.startswith("The chat needs a terminal")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("form", [(), ("--json",), ("--jsonl",)])
def test_an_answer_for_which_there_is_no_space_is_one_sentence(form, folder):
    options = ("run", "-m", folder / "good.gguf", "--max-tokens", 20, *form, "Hi")
    outcome = shell('"$@" </dev/null >/dev/full', *options)
    assert outcome.code == FAILED
    assert outcome.sentence.startswith("The answer cannot be written to stdout (No space left on device): ")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("words", [("--version",), ("-h",), ("run", "-h")])
def test_help_for_which_there_is_no_space_is_one_sentence(words):
    outcome = shell('"$@" >/dev/full', *words)
    assert outcome.code == FAILED
    assert outcome.sentence.startswith("Reading or writing failed (No space left on device); ")
