"""`localspec sessions`: saved chats are listed, shown, found, exported, deleted and brought back."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest

from command import PATIENCE, call, command, execute, read_json, shell, surroundings
from localspec.chat.export import to_json, to_markdown
from localspec.chat.messages import Document
from localspec.chat.store import Chat, Store
from localspec.chat.thread import Thread

HEAVY = ("huggingface_hub", "jinja2", "llama_cpp", "localspec.engine.llama", "localspec.tui", "numpy", "textual")


@pytest.fixture
def file(own_folders: Path) -> Path:
    return own_folders / "data" / "chats.db"


@pytest.fixture
def chats(file: Path) -> list[int]:
    """Two chats, the older one first."""
    with Store(file) as store:
        return [
            put(store, "Why does it rain in Bergen?", "Because of the *mountains*.", "東京は?"),
            put(store, "Write a poem", "Roses\x1b[2J\x07 are red"),
        ]


def put(store: Store, *texts: str) -> int:
    chat, thread = store.create("SmolLM2", "Be brief."), Thread()
    for number, text in enumerate(texts):
        documents = [] if number else [Document("a.md", "text")]
        store.save(chat, thread.add("assistant" if number % 2 else "user", text, documents, after=thread.leaf))
    return chat


def loaded(file: Path, chat: int) -> Chat:
    with Store(file) as store:
        return store.load(chat)


def rows(out: str) -> list[list[str]]:
    """The table without its first line, by columns."""
    return [re.split(r" {2,}", line.strip()) for line in out.splitlines()[1:]]


def listed() -> list[int]:
    return [entry["id"] for entry in read_json(call("sessions", "list", "--json").out)]


def test_the_list_is_a_table_of_the_newest_first(chats, file):
    outcome = call("sessions", "list")
    assert (outcome.code, outcome.err) == (0, "")
    whens = [
        datetime.fromtimestamp(loaded(file, chat).info.updated).strftime("%Y-%m-%d %H:%M") for chat in reversed(chats)
    ]
    assert rows(outcome.out) == [
        [str(chats[1]), whens[0], "2", "Write a poem"],
        [str(chats[0]), whens[1], "3", "Why does it rain in Bergen?"],
    ]
    lines = outcome.out.splitlines()
    assert lines[0].split() == ["ID", "WHEN", "MESSAGES", "TITLE"]
    assert len({line.index(title) for line, title in zip(lines, ("TITLE", "Write", "Why"), strict=True)}) == 1
    assert call("sessions").out == outcome.out


def test_the_columns_stay_aligned_when_numbers_grow(file):
    with Store(file) as store:
        for number in range(12):
            put(store, f"Title {number}")
    lines = call("sessions", "list").out.splitlines()
    assert len({line.upper().index("TITLE") for line in lines}) == 1


def test_the_list_as_json(chats, file):
    document = read_json(call("sessions", "list", "--json").out)
    info = loaded(file, chats[0]).info
    assert [entry["id"] for entry in document] == [chats[1], chats[0]]
    entry = document[1]
    assert abs(datetime.fromisoformat(entry.pop("updated")).timestamp() - info.updated) <= 1
    assert abs(datetime.fromisoformat(entry.pop("created")).timestamp() - info.created) <= 1
    assert entry == {"id": chats[0], "title": info.title, "model": "SmolLM2", "messages": 3}


def test_without_chats_nothing_is_listed_found_or_created(file):
    outcome = call("sessions", "list")
    assert (outcome.code, outcome.out, outcome.sentence) == (0, "", "No chat has been saved yet.")
    assert call("sessions", "list", "--quiet").err == ""
    assert call("sessions", "list", "--json").out == call("sessions", "search", "x", "--json").out == "[]\n"
    outcome = call("sessions", "show", 1)
    assert (outcome.code, outcome.out) == (1, "")
    assert "No chat has been saved yet" in outcome.sentence
    assert not file.parent.exists()


def test_a_chat_is_shown(chats, file):
    outcome = call("sessions", "show", chats[0])
    assert (outcome.code, outcome.err, outcome.out) == (0, "", to_markdown(loaded(file, chats[0])))
    for part in ("# Why does it rain", "Be brief.", "a.md", "## You", "*mountains*", "東京は?"):
        assert part in outcome.out


def test_a_terminal_is_not_commanded_by_what_was_said(chats):
    ours, theirs = pty.openpty()
    process = subprocess.Popen(command("sessions", "show", chats[1]), stdout=theirs, env=surroundings())
    os.close(theirs)
    shown = b""
    while b"are red" not in shown:
        shown += os.read(ours, 4096)
    assert process.wait(PATIENCE) == 0
    os.close(ours)
    assert "Roses␛[2J␇ are red" in shown.decode()
    assert "Roses\x1b[2J\x07 are red" in call("sessions", "show", chats[1]).out


def test_a_chat_is_exported(chats, file, tmp_path):
    chat = loaded(file, chats[0])
    assert call("sessions", "export", chats[0]).out == to_markdown(chat)
    assert call("sessions", "export", chats[0], "-o", "-").out == to_markdown(chat)
    assert call("sessions", "export", chats[0], "--json").out == to_json(chat)
    for words, text in (((), to_markdown(chat)), (("--json",), to_json(chat))):
        target = tmp_path / f"chat{len(words)}"
        outcome = call("sessions", "export", chats[0], "-o", target, *words)
        assert (outcome.code, outcome.out, outcome.err) == (0, "", "")
        assert target.read_bytes() == text.encode()


def test_an_export_is_utf_8_whatever_the_locale_says(chats, file):
    outcome = execute("sessions", "export", chats[0], PYTHONIOENCODING="ascii", LC_ALL="C")
    assert (outcome.code, outcome.out) == (0, to_markdown(loaded(file, chats[0])))


def test_a_file_that_cannot_be_written_is_one_sentence(chats, tmp_path):
    outcome = call("sessions", "export", chats[0], "-o", tmp_path)
    assert (outcome.code, outcome.out) == (1, "")
    assert "choose another place with -o" in outcome.sentence


@pytest.mark.parametrize("way", ["itself", "link"])
def test_the_chats_are_not_written_over(chats, file, tmp_path, way):
    """By an export into their own file, whatever it is called."""
    target = file
    if way == "link":
        target = tmp_path / "link.md"
        target.symlink_to(file)
    outcome = call("sessions", "export", chats[0], "-o", target)
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.sentence == f"{target} holds the chats themselves; choose another place with -o."
    assert loaded(file, chats[0])


def test_a_link_to_itself_is_one_sentence(chats, tmp_path):
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    outcome = call("sessions", "export", chats[0], "-o", loop)
    assert (outcome.code, outcome.out) == (1, "")
    assert "Too many levels of symbolic links" in outcome.sentence


def test_chats_are_found(chats):
    outcome = call("sessions", "search", "mountains")
    assert (outcome.code, outcome.err) == (0, "")
    assert [row[0] for row in rows(outcome.out)] == [str(chats[0]), "Because of the *mountains*."]
    (entry,) = read_json(call("sessions", "search", "--json", "東京").out)
    assert (entry["id"], entry["snippet"]) == (chats[0], "東京は?")
    assert len(rows(call("sessions", "search", "poem", "roses").out)) == 2


@pytest.mark.parametrize("words", [["snow"], ['"'], ["AND"], ["--", "-x"]])
def test_finding_nothing_is_no_failure(chats, words):
    outcome = call("sessions", "search", *words)
    assert (outcome.code, outcome.out, outcome.sentence) == (0, "", "No chat has all of these words.")
    assert call("sessions", "search", "--json", *words).out == "[]\n"
    assert call("sessions", "search", "--quiet", *words).err == ""


def test_a_chat_is_deleted_and_brought_back(chats):
    outcome = call("sessions", "rm", chats[0])
    assert (outcome.code, outcome.out) == (0, "")
    assert f"localspec sessions restore {chats[0]} brings it back" in outcome.sentence
    assert listed() == [chats[1]]
    for word in ("show", "export", "rm"):
        again = call("sessions", word, chats[0])
        assert (again.code, again.out) == (1, "")
        assert f"localspec sessions restore {chats[0]}" in again.sentence
    outcome = call("sessions", "restore", chats[0])
    assert (outcome.code, outcome.out, outcome.sentence) == (0, "", f"Chat {chats[0]} is back.")
    assert listed() == [chats[1], chats[0]]
    assert call("sessions", "rm", chats[0], "--quiet").err == ""


@pytest.mark.parametrize("word", ["show", "export", "rm", "restore"])
def test_a_chat_that_is_not_there_is_one_sentence(chats, word):
    outcome = call("sessions", word, 99)
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.sentence == "There is no chat 99; see localspec sessions list."


@pytest.mark.parametrize(
    "words",
    [
        ["show"],
        ["show", "x"],
        ["show", "0"],
        ["show", "-1"],
        ["show", "٣"],
        ["show", "9" * 30],
        ["show", "1", "2"],
        ["search"],
        ["search", " "],
        ["lst"],
        ["bogus"],
        ["list", "--wings"],
    ],
)
def test_wrong_usage_is_one_sentence(chats, words):
    outcome = call("sessions", *words)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.sentence


def test_a_damaged_file_is_one_sentence_and_a_traceback_only_on_request(file):
    file.parent.mkdir(parents=True)
    file.write_bytes(b"not chats" * 1000)
    for words in (["list"], ["list", "--json"], ["show", "1"], ["search", "x"], ["rm", "1"]):
        outcome = call("sessions", *words)
        assert (outcome.code, outcome.out) == (1, "")
        assert "damaged; move it to another place" in outcome.sentence
    for words in (["sessions", "list", "--debug"], ["--debug", "sessions", "list"]):
        outcome = call(*words)
        assert outcome.code == 1
        assert outcome.err.startswith("Traceback")
    assert file.read_bytes() == b"not chats" * 1000


def test_whoever_reads_may_stop(file):
    with Store(file) as store:
        put(store, "long " * 100_000)
    outcome = shell('"$@" | head -n 1', "sessions", "show", 1)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith("# long")


@pytest.mark.parametrize("words", [["list"], ["search", "rain"], ["show", "1"], ["export", "1", "--json"], ["-h"]])
def test_nothing_heavy_is_imported(chats, words):
    program = (
        "import sys\nfrom localspec.cli import cli\n"
        "try:\n    cli.main(['sessions', *sys.argv[1:]])\n"
        f"finally:\n    print('heavy:', *(name for name in {HEAVY} if name in sys.modules), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *words], capture_output=True, env=surroundings(), timeout=PATIENCE, check=False
    )
    assert done.returncode == 0
    assert done.stdout
    assert done.stderr.decode().splitlines() == ["heavy:"]


def test_the_help_fits_a_terminal():
    for words in ([], ["list"], ["show"], ["export"], ["search"], ["rm"], ["restore"]):
        outcome = call("sessions", *words, "-h")
        assert (outcome.code, outcome.err) == (0, "")
        assert max(map(len, outcome.out.splitlines())) <= 80
    assert {"list", "show", "export", "search", "rm", "restore"} <= set(
        re.findall(r"^  (\w+) ", call("sessions", "-h").out, re.M)
    )
