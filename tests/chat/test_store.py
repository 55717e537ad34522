"""What is saved comes back, whoever else writes to the same file."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from localspec.chat.messages import Document
from localspec.chat.store import Store
from localspec.chat.thread import Entry, Thread
from localspec.engine.errors import UserError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "chats.db"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    with Store(path) as store:
        yield store


def say(store: Store, chat: int, *texts: str) -> Thread:
    """A chat of these messages, a person's first, saved one by one."""
    thread = Thread()
    for number, text in enumerate(texts):
        store.save(chat, thread.add("assistant" if number % 2 else "user", text, after=thread.leaf))
    return thread


def new(store: Store, *texts: str) -> int:
    chat = store.create("model")
    say(store, chat, *texts)
    return chat


def texts(store: Store, chat: int) -> list[str]:
    """All messages of all branches."""
    return sorted(entry.text for entry in store.load(chat).thread.entries.values())


def test_a_chat_comes_back_as_it_was(store, path):
    chat = store.create("SmolLM2", "Be brief.")
    thread = Thread()
    documents = [Document("naïve.md", "# 東京\r\n\0"), Document("empty", "")]
    store.save(chat, thread.add("user", 'Why "this"? \0 \x1b[2J 東京 👩‍👩‍👧', documents, after=None))
    store.save(chat, thread.add("assistant", "", after=1))
    store.save(chat, thread.change(2, text="Because", finish="stop", figures={"tokens": 1, "rate": 0.5, "off": None}))
    store.save(chat, thread.add("assistant", "  Another\n", after=1))
    thread.show(2)
    store.show(chat, 2)
    store.configure(chat, "Be long.", {"temp": 0.5, "stop": ["a", {"b": None}], "on": True})
    for other in (store, Store(path)):
        loaded = other.load(chat)
        assert loaded.thread == thread
        assert (loaded.system, loaded.settings) == ("Be long.", {"temp": 0.5, "stop": ["a", {"b": None}], "on": True})
        assert (loaded.info.id, loaded.info.model, loaded.info.messages) == (chat, "SmolLM2", 3)
        assert other.chats() == [loaded.info]
    other.close()
    other.close()


def test_what_has_no_form_in_the_file_costs_no_words(store):
    chat = store.create("model")
    thread = Thread()
    store.save(chat, thread.add("user", "half \ud83d and whole \ud83d\ude00", after=None))
    figures = {"speedup": float("inf"), "rate": float("nan"), "steps": 2}
    store.save(chat, Entry(2, 1, "assistant", "Yes", (), "stop", figures))
    first, second = store.load(chat).thread.path()
    assert first.text == "half \ufffd and whole \U0001f600"
    assert (second.text, second.figures) == ("Yes", {"speedup": None, "rate": None, "steps": 2})


def test_chats_are_listed_newest_first_once_they_have_a_message(store):
    empty = store.create("model")
    first, second = new(store, "one"), new(store, "two", "2")
    assert [(info.id, info.messages, info.snippet) for info in store.chats()] == [(second, 2, ""), (first, 1, "")]
    before = store.load(first).info
    store.save(first, Entry(2, 1, "assistant", "1"))
    assert [info.id for info in store.chats()] == [first, second]
    assert [info.id for info in store.chats(limit=1)] == [first]
    after = store.load(first).info
    assert after.created == before.created <= before.updated <= after.updated <= time.time()
    assert store.load(empty).thread == Thread()


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Why does it rain?", "Why does it rain?"),
        ("  Why\n\tdoes \u2028 it\x1b rain?\r\n", "Why does it rain?"),
        ("word " * 20, "word " * 11 + "word…"),
        ("x" * 60, "x" * 60),
        ("x" * 61, "x" * 59 + "…"),
        ("東" * 100, "東" * 59 + "…"),
        ("short " + "y" * 100, "short " + "y" * 53 + "…"),
        ("\ud83d", "\ufffd"),
        ("", "notes.md, a b.py"),
    ],
)
def test_the_first_words_are_the_title(store, text, title):
    chat = store.create("model")
    documents = [Document("notes.md", "long"), Document("a\nb.py", "long")]
    store.save(chat, Entry(1, None, "user", text, tuple(documents)))
    store.save(chat, Entry(2, 1, "user", "Other words"))
    assert store.load(chat).info.title == title
    assert len(title) <= 60


def test_a_chat_is_renamed(store):
    chat = new(store, "First words", "Answer")
    store.rename(chat, "  Rain\nand \x1bshine ")
    store.save(chat, Entry(3, 2, "user", "More"))
    assert store.load(chat).info.title == "Rain and shine"
    store.rename(chat, " ")
    assert store.load(chat).info.title == "First words"


def test_an_answer_is_saved_again_and_again(store):
    chat = store.create("model")
    thread = say(store, chat, "Hi", "")
    for length in range(1, 20):
        store.save(chat, thread.change(2, text="word " * length))
    store.save(chat, thread.change(2, finish="length"))
    assert store.load(chat).thread == thread


def test_a_message_is_taken_back(store):
    chat = store.create("model")
    thread = say(store, chat, "Hi", "Hello", "Why?")
    store.remove(chat, 2)
    assert texts(store, chat) == ["Hello", "Hi", "Why?"]
    store.remove(chat, 3)
    thread.remove(3)
    assert store.load(chat).thread == thread
    store.remove(chat, 3)
    store.remove(chat, 2)
    store.remove(chat, 1)
    assert (store.chats(), store.load(chat).info.title) == ([], "")
    say(store, chat, "Something else")
    assert store.load(chat).info.title == "Something else"


def test_a_title_that_was_given_outlives_the_first_message(store):
    chat = new(store, "Hi")
    store.rename(chat, "Greetings")
    store.remove(chat, 1)
    say(store, chat, "Hey")
    assert store.load(chat).info.title == "Greetings"


def test_the_branch_that_is_shown_is_kept(store):
    chat = store.create("model")
    thread = say(store, chat, "Hi", "Hello")
    store.save(chat, thread.add("assistant", "Howdy", after=1))
    assert store.load(chat).thread.leaf == 3
    store.show(chat, 2)
    assert store.load(chat).thread.leaf == 2
    # Where nothing would be shown, it is the newest message.
    for nowhere in (None, 99):
        store.show(chat, nowhere)
        assert store.load(chat).thread.leaf == 3


def test_a_deleted_chat_can_be_restored(store):
    chat, other = new(store, "Hi"), new(store, "Hey")
    store.delete(chat)
    assert [info.id for info in store.chats()] == [other]
    assert store.chats("Hi") == []
    for refused in (lambda: store.load(chat), lambda: store.delete(chat), lambda: store.rename(chat, "x")):
        with pytest.raises(UserError, match=f"localspec sessions restore {chat} brings it back"):
            refused()
    for _ in range(2):
        store.restore(chat)
        assert [info.id for info in store.chats()] == [other, chat]
    assert texts(store, chat) == ["Hi"]


def test_words_written_to_a_deleted_chat_bring_it_back(store):
    chat = store.create("model")
    thread = say(store, chat, "Hi", "Hel")
    store.delete(chat)
    store.save(chat, thread.change(2, text="Hello"))
    assert store.chats() == []
    store.save(chat, thread.add("user", "Still here", after=2))
    assert store.load(chat).thread == thread


def test_chats_deleted_a_month_ago_are_dropped(store, path):
    old, recent = new(store, "secret words"), new(store, "other words")
    store.chats("words")
    for chat, days in ((old, 30.1), (recent, 29.9)):
        store.delete(chat)
        with contextlib.closing(sqlite3.connect(path)) as raw, raw:
            raw.execute("UPDATE chats SET deleted_at = ? WHERE id = ?", (time.time() - days * 86400, chat))
    with Store(path) as again:
        again.restore(recent)
        with pytest.raises(UserError, match=f"no chat {old}"):
            again.restore(old)
        assert [info.id for info in again.chats("words")] == [recent]
        # A number is never given twice: the old one may still be written down somewhere.
        assert again.create("model") > recent
    with contextlib.closing(sqlite3.connect(path)) as raw:
        assert raw.execute("SELECT text FROM entries").fetchall() == [("other words",)]
        assert raw.execute("SELECT text FROM texts").fetchall() == [("other words",)]


def test_a_chat_that_is_not_there_is_one_sentence(store):
    for act in (
        lambda: store.load(7),
        lambda: store.save(7, Entry(1, None, "user", "x")),
        lambda: store.show(7, 1),
        lambda: store.rename(7, "x"),
        lambda: store.configure(7, None, {}),
        lambda: store.delete(7),
        lambda: store.restore(7),
    ):
        with pytest.raises(UserError, match=r"^There is no chat 7; see localspec sessions list\.$"):
            act()


def test_threads_may_write_at_the_same_time(store):
    chat = store.create("model")
    entries = [Entry(number, None, "user", f"message {number}") for number in range(1, 81)]

    def write(part: int) -> None:
        for entry in entries[part::4]:
            store.save(chat, entry)

    threads = [threading.Thread(target=write, args=(part,)) for part in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert texts(store, chat) == sorted(entry.text for entry in entries)
