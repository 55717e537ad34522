"""Two programs with the same chat: neither changes what the other has written."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from command import PATIENCE, surroundings
from localspec.chat.store import Store
from localspec.chat.thread import Thread

WRITER = """
import sys
from pathlib import Path
from localspec.chat.store import Store
from localspec.chat.thread import Thread

path, chat, times = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
store = Store(path)
chat = chat or store.create("other")
thread = store.load(chat).thread
store.save(chat, thread.add("user", "from outside", after=thread.leaf))
answer = thread.add("assistant", "", after=thread.leaf)
for number in range(1, times + 1):
    store.save(chat, thread.change(answer.id, text="word " * number))
    print(number, flush=True)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "chats.db"


@pytest.fixture
def pair(path: Path) -> Iterator[tuple[Store, Store]]:
    with Store(path) as one, Store(path) as other:
        yield one, other


def begin(store: Store) -> tuple[int, Thread]:
    """A chat of a question and its answer."""
    chat, thread = store.create("model"), Thread()
    store.save(chat, thread.add("user", "Hi", after=None))
    store.save(chat, thread.add("assistant", "Hello", after=1))
    return chat, thread


def ask(store: Store, chat: int, thread: Thread, words: str, answer: str) -> None:
    store.save(chat, thread.add("user", words, after=thread.leaf))
    store.save(chat, thread.add("assistant", "", after=thread.leaf))
    for end in range(1, len(answer) + 1):
        store.save(chat, thread.change(thread.leaf, text=answer[:end]))


def branches(thread: Thread) -> set[tuple[str, ...]]:
    """Every branch, as what was said in it."""
    ends = thread.entries.keys() - {entry.parent for entry in thread.entries.values()}
    return {tuple(entry.text for entry in Thread(thread.entries, end).path()) for end in ends}


def start_writer(path: Path, chat: int, times: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), str(chat), str(times)],
        stdout=subprocess.PIPE,
        text=True,
        env=surroundings(),
    )


def test_messages_of_two_programs_become_branches(pair, path):
    one, other = pair
    chat, mine = begin(one)
    theirs = other.load(chat).thread
    ask(one, chat, mine, "Mine", "1")
    ask(other, chat, theirs, "Theirs", "22")
    ask(one, chat, mine, "Mine again", "111")
    ask(other, chat, theirs, "Theirs again", "2222")
    expected = {
        ("Hi", "Hello", "Mine", "1", "Mine again", "111"),
        ("Hi", "Hello", "Theirs", "22", "Theirs again", "2222"),
    }
    for store in (*pair, Store(path)):
        loaded = store.load(chat).thread
        assert branches(loaded) == expected
        assert [entry.text for entry in loaded.path()][-1] == "2222"
    store.close()


def test_each_shows_and_takes_back_its_own(pair):
    one, other = pair
    chat, mine = begin(one)
    theirs = other.load(chat).thread
    ask(one, chat, mine, "Mine", "1")
    ask(other, chat, theirs, "Theirs", "2")
    other.show(chat, theirs.leaf)
    assert [entry.text for entry in one.load(chat).thread.path()] == ["Hi", "Hello", "Theirs", "2"]
    one.show(chat, mine.leaf)
    assert [entry.text for entry in other.load(chat).thread.path()] == ["Hi", "Hello", "Mine", "1"]
    other.remove(chat, theirs.leaf)
    assert branches(one.load(chat).thread) == {("Hi", "Hello", "Mine", "1"), ("Hi", "Hello", "Theirs")}


def test_a_message_that_was_never_saved_takes_nobody_elses_away(pair):
    one, other = pair
    chat, mine = begin(one)
    theirs = other.load(chat).thread
    ask(one, chat, mine, "Mine", "1")
    other.remove(chat, theirs.add("user", "Never saved", after=2).id)
    assert branches(other.load(chat).thread) == {("Hi", "Hello", "Mine", "1")}


def test_reading_a_chat_in_between_changes_nothing_for_who_writes(pair):
    one, other = pair
    chat, mine = begin(one)
    theirs = other.load(chat).thread
    ask(one, chat, mine, "Mine", "1")
    other.load(chat)
    ask(other, chat, theirs, "Theirs", "2")
    other.load(chat)
    ask(other, chat, theirs, "More", "3")
    expected = {("Hi", "Hello", "Mine", "1"), ("Hi", "Hello", "Theirs", "2", "More", "3")}
    assert branches(one.load(chat).thread) == branches(other.load(chat).thread) == expected


def test_an_answer_of_another_program_can_be_continued(pair):
    one, other = pair
    chat, _mine = begin(one)
    theirs = other.load(chat).thread
    other.save(chat, theirs.change(2, text="Hello there", finish="stop"))
    assert one.load(chat).thread == theirs


def test_what_another_program_took_away_under_an_answer_is_no_loss(pair):
    one, other = pair
    chat, mine = begin(one)
    one.save(chat, mine.add("user", "Why?", after=2))
    theirs = other.load(chat).thread
    one.remove(chat, 3)
    other.save(chat, theirs.add("assistant", "Because", after=3))
    assert branches(one.load(chat).thread) == {("Hi", "Hello"), ("Because",)}
    other.save(chat, theirs.entries[3])
    assert "Why?" in {entry.text for entry in one.load(chat).thread.entries.values()}


@pytest.mark.parametrize("same", [True, False])
def test_two_processes_write_at_the_same_time(path, same):
    with Store(path) as store:
        chat, thread = begin(store)
        writer = start_writer(path, chat if same else 0, 200)
        assert writer.stdout
        assert writer.stdout.readline() == "1\n"
        store.save(chat, thread.add("user", "from inside", after=2))
        store.save(chat, thread.add("assistant", "", after=thread.leaf))
        written = 0
        while writer.poll() is None or written < 200:
            written += 1
            store.save(chat, thread.change(thread.leaf, text="letter " * written))
            assert len(store.chats()) == 1 if same else 2
        assert writer.wait(PATIENCE) == 0
        writer.stdout.close()
        found = {branch for info in store.chats() for branch in branches(store.load(info.id).thread)}
        before = ("Hi", "Hello")
        outside = (*(before if same else ()), "from outside", "word " * 200)
        assert found == {outside, (*before, "from inside", "letter " * written)}


def test_a_killed_process_loses_only_what_it_was_saving(path):
    with Store(path) as store:
        chat, thread = begin(store)
        writer = start_writer(path, chat, 100_000)
        assert writer.stdout
        for _ in range(25):
            writer.stdout.readline()
        os.kill(writer.pid, signal.SIGKILL)
        said = [line for line in writer.stdout.read().splitlines(keepends=True) if line.endswith("\n")]
        assert writer.wait(PATIENCE) == -signal.SIGKILL
        writer.stdout.close()
        saved = len(store.load(chat).thread.path()[-1].text) // len("word ")
        assert saved - int(said[-1] if said else 25) in (0, 1)
        store.save(chat, thread.add("user", "And on it goes", after=2))
    with contextlib.closing(sqlite3.connect(path)) as raw:
        assert raw.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_many_processes_may_open_a_new_file_at_once(path):
    writers = [start_writer(path, 0, 3) for _ in range(4)]
    outputs = [writer.communicate(timeout=PATIENCE)[0] for writer in writers]
    assert [writer.returncode for writer in writers] == [0] * 4
    assert outputs == ["1\n2\n3\n"] * 4
    with Store(path) as store:
        assert len(store.chats()) == 4
