"""Chats are found by every word in them, whatever the words look like."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from localspec.chat import database, search
from localspec.chat.store import Store
from localspec.chat.thread import Entry


@pytest.fixture(params=["index", "part", "none"])
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """What is found is the same with an index, with one that is behind, and where SQLite cannot have any."""
    if request.param == "part":
        monkeypatch.setattr(search, "_INDEXING_SECONDS", -1.0)
    if request.param == "none":
        monkeypatch.setattr(search, "_refresh", lambda _database: False)
    with Store(tmp_path / "chats.db") as store:
        yield store


def put(store: Store, *texts: str, title: str = "untold") -> int:
    """A chat with these messages."""
    chat = store.create("model")
    for number, text in enumerate(texts, 1):
        store.save(chat, Entry(number, number - 1 or None, "user", text))
    store.rename(chat, title)
    return chat


def found(store: Store, words: str) -> set[int]:
    return {info.id for info in store.chats(words)}


TEXTS = {
    "rain": 'It rains "cats & dogs" in Bergen\'s old town.',
    "code": "def f(x):\n\treturn x*2 -- NEAR(a, b) OR NOT c:d ^e {f} \\ 100%_done; DROP TABLE chats;",
    "tower": "東京タワーの高さは333メートルです。한국어 텍스트, ภาษาไทย",
    "street": "Die Straße ist naß, ÄRGERLICH. İstanbul. Ελλάδα",
    "short": "qq zz",
    "nul": "before\0behind \U0001f600 smile \ufffd",
}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("rain", "rain"),
        ("RAINS bergen", "rain"),
        ("bergen rains", "rain"),
        ('"cats', "rain"),
        ('dogs"', "rain"),
        ('"', "rain"),
        ('""', ""),
        ('""""', ""),
        ("'", "rain"),
        ("Bergen's", "rain"),
        ("cats dogs snow", ""),
        ("x*2", "code"),
        ("near(a,", "code"),
        ("NOT", "code"),
        ("OR NOT", "code"),
        ("AND", ""),
        ("--", "code"),
        ("c:d", "code"),
        ("text:rain", ""),
        ("^e {f} \\", "code"),
        ("100%_done", "code"),
        ("100_", ""),
        ("%%%", ""),
        ("*", "code"),
        ("rain*", ""),
        ("chats; DROP", "code"),
        ("東京タワー", "tower"),
        ("東京", "tower"),
        ("京", "tower"),
        ("高さ 333", "tower"),
        ("텍스트", "tower"),
        ("ภาษา", "tower"),
        ("straße", "street"),
        ("ärgerlich", "street"),
        ("ελλάδα", "street"),
        ("zz qq", "short"),
        ("behind", "nul"),
        ("\0", "nul"),
        ("before\0behind", "nul"),
        ("\U0001f600", "nul"),
        ("\ud83d", "nul"),
        ("nowhere", ""),
        ("x" * 100_000, ""),
        ("  ", " ".join(TEXTS)),
    ],
)
def test_a_search_finds_what_has_all_its_words(store, words, expected):
    chats = {name: put(store, text) for name, text in TEXTS.items()}
    assert found(store, words) == {chats[name] for name in expected.split()}


def test_the_words_may_stand_apart(store):
    chat = put(store, "Where does it rain?", "In Bergen.", title="Weather")
    assert found(store, "rain bergen weather") == {chat}
    assert found(store, "rain sunshine") == set()
    by_title, by_text = store.chats("weather")[0], store.chats("weather bergen")[0]
    assert (by_title.title, by_title.snippet) == ("Weather", "")
    assert by_text.snippet == "In Bergen."


def test_what_is_found_is_the_newest_first_and_not_more_than_asked_for(store):
    chats = [put(store, f"rain {number}") for number in range(5)]
    store.save(chats[1], Entry(2, 1, "assistant", "more"))
    assert [info.id for info in store.chats("rain", limit=3)] == [chats[1], chats[4], chats[3]]


def test_the_snippet_is_of_the_message_with_most_of_the_words(store):
    put(store, "rain in the morning", "rain in Bergen", "Bergen alone")
    (info,) = store.chats("rain bergen")
    assert info.snippet == "rain in Bergen"


def test_a_snippet_is_one_line_around_the_place(store):
    put(store, f"{'before ' * 50}\n\n the\tNEEDLE \r\n{'behind ' * 50}")
    (info,) = store.chats("needle")
    assert info.snippet.startswith("…before ")
    assert "before the NEEDLE behind" in info.snippet
    assert info.snippet.endswith("…")
    assert len(info.snippet) < 110
    put(store, "東" * 200 + "京" + "東" * 200)
    (info,) = store.chats("東京東")
    assert "東京東" in info.snippet


def test_answers_are_found_while_and_after_they_grow(store):
    chat = put(store, "Question")
    assert found(store, "growing") == set()
    store.save(chat, Entry(2, 1, "assistant", "It is grow"))
    assert found(store, "growing") == set()
    store.save(chat, Entry(2, 1, "assistant", "It is growing fast"))
    assert found(store, "growing") == {chat}
    store.save(chat, Entry(2, 1, "assistant", "It is over"))
    assert found(store, "growing") == set()
    assert found(store, "over") == {chat}


def test_what_was_taken_back_or_deleted_is_not_found(store):
    chat, other = put(store, "Rain", "Snow"), put(store, "Snow")
    assert found(store, "snow") == {chat, other}
    store.remove(chat, 2)
    assert found(store, "snow") == {other}
    store.delete(other)
    assert found(store, "snow") == set()
    store.restore(other)
    assert found(store, "snow") == {other}


def test_the_index_is_shared(tmp_path):
    path = tmp_path / "chats.db"
    with Store(path) as one, Store(path) as other:
        chat = put(one, "Rain in Bergen")
        assert found(other, "bergen") == found(one, "bergen") == {chat}
        one.save(chat, Entry(2, 1, "assistant", "It often does"))
        assert found(other, "often") == {chat}
    with Store(path) as again:
        assert found(again, "often rain") == {chat}


def test_reading_goes_on_where_the_index_cannot_be_written(tmp_path, monkeypatch):
    monkeypatch.setattr(database, "PATIENCE", 0.02)
    path = tmp_path / "chats.db"
    with Store(path) as store, contextlib.closing(sqlite3.connect(path, isolation_level=None)) as raw:
        chat = put(store, "Rain in Bergen")
        store.save(chat, Entry(2, 1, "assistant", "It is being wri"))
        raw.execute("BEGIN IMMEDIATE")
        assert found(store, "bergen wri") == {chat}
        assert raw.execute("SELECT text FROM texts").fetchall() == [("Rain in Bergen",)]
        raw.execute("ROLLBACK")
        assert found(store, "bergen wri") == {chat}
        assert raw.execute("SELECT count(*) FROM texts").fetchone() == (2,)


def test_a_full_disk_keeps_nobody_from_searching(tmp_path):
    with Store(tmp_path / "chats.db") as store:
        chat = put(store, "Rain in Bergen")
        store.save(chat, Entry(2, 1, "assistant", "word " * 5000))
        store._database.execute("PRAGMA max_page_count = 1")
        assert found(store, "bergen word") == {chat}


def test_a_long_message_is_in_the_index_at_once(tmp_path):
    with Store(tmp_path / "chats.db") as store:
        chat = put(store, "word " * 50_000 + "needle")
        assert found(store, "needle") == {chat}
    with contextlib.closing(sqlite3.connect(tmp_path / "chats.db")) as raw:
        assert raw.execute("SELECT indexed FROM entries").fetchall() == [(1,)]
