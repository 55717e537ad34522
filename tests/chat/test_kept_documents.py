"""Documents in the file of the chats: each text once, unchanged, and no longer than something refers to it."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import time
from pathlib import Path

import pytest

from localspec.chat import database
from localspec.chat.export import to_json, to_markdown
from localspec.chat.kept_documents import digest_of
from localspec.chat.messages import Document
from localspec.chat.rewrite import digest_of as of_rewriting
from localspec.chat.rewrite_events import State
from localspec.chat.store import Store
from localspec.chat.thread import Entry
from localspec.chat.versions import Version, Versions, rewritten_lately

TEXTS = ("plain\r\nlines\r", "Grüße 世界 \U0001f600", "half \ud83d and NUL \0", "x" * 5000)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "chats.db"


def with_document(store: Store, *texts: str) -> int:
    """A chat with a message that has these documents."""
    chat = store.create("model")
    store.save(chat, Entry(1, None, "user", "words", tuple(Document(f"name {text[:5]}", text) for text in texts)))
    return chat


def kept(path: Path) -> list[str]:
    """The digests of the texts in the file."""
    with contextlib.closing(sqlite3.connect(path)) as raw:
        return [digest for (digest,) in raw.execute("SELECT digest FROM documents")]


def test_a_document_comes_back_letter_by_letter(path: Path) -> None:
    """Line ends, signs of all kinds and halves of surrogate pairs stay what they are."""
    with Store(path) as store:
        chat = with_document(store, *TEXTS)
    with Store(path) as store:
        assert [document.text for document in store.load(chat).thread.entries[1].documents] == list(TEXTS)


def test_the_same_text_is_kept_once(path: Path) -> None:
    """However often and under whatever name it is attached."""
    with Store(path) as store:
        chats = [with_document(store, "the same text", "the same text"), with_document(store, "the same text")]
        assert kept(path) == [digest_of("the same text")]
        with contextlib.closing(sqlite3.connect(path)) as raw:
            assert b"the same text" not in b"".join(str(row).encode() for row in raw.execute("SELECT * FROM entries"))
        assert [len(store.load(chat).thread.entries[1].documents) for chat in chats] == [2, 1]


def test_a_text_goes_when_no_chat_refers_to_it(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A message taken back, and a chat deleted for good, take their documents along; the text of another stays."""
    with Store(path) as store:
        first, second = with_document(store, "one", "both"), with_document(store, "two", "both")
        store.remove(second, 1)
        assert set(kept(path)) == {digest_of("one"), digest_of("both")}
        store.delete(first)
    monkeypatch.setattr(time, "time", lambda: 4e9)
    with Store(path) as store:
        # A clock alone makes nothing old: something has to have been written by then.
        assert set(kept(path)) == {digest_of("one"), digest_of("both")}
        store.save(store.create("model"), Entry(1, None, "user", "later"))
    Store(path).close()
    assert kept(path) == []


def test_a_file_of_version_1_is_brought_up_to_date_with_its_texts(path: Path) -> None:
    """What was in the messages is in a table of its own afterwards, unchanged; a damaged row stays as it is."""
    documents = json.dumps([{"name": f"d{number}", "text": text} for number, text in enumerate((*TEXTS, TEXTS[0]))])
    with contextlib.closing(sqlite3.connect(path)) as raw, raw:
        for statement in database._MIGRATIONS[0]:
            raw.execute(statement)
        raw.execute(f"PRAGMA application_id = {database._OURS}")
        raw.execute("PRAGMA user_version = 1")
        raw.execute("INSERT INTO chats (model, created, updated) VALUES ('m', 1, 1)")
        insert = (
            "INSERT INTO entries (chat, id, role, text, documents, created, updated) VALUES (1, ?, 'user', ?, ?, 1, 1)"
        )
        raw.execute(insert, (1, "question", documents))
    with Store(path) as store:
        chat = store.load(1)
        read = chat.thread.entries[1].documents
        assert read == tuple(Document(f"d{number}", text) for number, text in enumerate((*TEXTS, TEXTS[0])))
        assert len(kept(path)) == len(TEXTS)
        assert [info.id for info in store.chats("question")] == [1]
        assert "d3" in to_markdown(chat)
        exported = json.loads(to_json(chat))["messages"][0]["documents"]
        assert exported[1] == {"name": "d1", "text": TEXTS[1]}


def test_a_missing_text_is_one_sentence(path: Path) -> None:
    """A file that somebody has cut texts out of is damaged, and says so."""
    with Store(path) as store:
        chat = with_document(store, "text")
        with contextlib.closing(sqlite3.connect(path)) as raw, raw:
            raw.execute("DELETE FROM documents")
        with pytest.raises(Exception, match="damaged"):
            store.load(chat)


def test_versions_outlive_the_program(path: Path) -> None:
    """Each rewriting is there again with what it was made from, what was written, and what was rejected."""
    with Store(path) as store:
        versions = Versions(store, Document("d", "a text"))
        first = versions.add(Version(0, "Fix it.", "a text", ""))
        versions.change(first := Version(first.id, first.instruction, first.source, "A text", "stop", (0, 2)))
        second = versions.add(Version(0, "", "A text", "By hand\ud800", "stop"))
    with Store(path) as store:
        assert Versions(store, Document("d", "a text")).load() == [first, second]
        assert Versions(store, Document("d", "another text")).load() == []
        assert rewritten_lately(store) == [Document("d", "a text")]
        Versions(store, Document("d", "a text")).remove(second)
        assert Versions(store, Document("d", "a text")).load() == [first]
    assert set(kept(path)) == {digest_of("a text")}


def test_versions_of_a_document_without_a_chat_are_kept_for_a_month(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A paste that was rewritten and never sent is not lost when the app is closed; nor is it kept for ever."""
    with Store(path) as store:
        Versions(store, Document("d", "never sent")).add(Version(0, "Fix it.", "never sent", "Never sent"))
        with_document(store, "sent")
        Versions(store, Document("d", "sent")).add(Version(0, "Fix it.", "sent", "Sent"))
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 29 * 24 * 3600)
    with Store(path) as store:
        assert len(Versions(store, Document("d", "never sent")).load()) == 1
    monkeypatch.setattr(time, "time", lambda: now + 31 * 24 * 3600)
    with Store(path) as store:
        store.save(store.create("model"), Entry(1, None, "user", "later"))
    with Store(path) as store:
        assert Versions(store, Document("d", "never sent")).load() == []
        assert len(Versions(store, Document("d", "sent")).load()) == 1
    assert kept(path) == [digest_of("sent")]


def test_without_a_store_versions_have_no_number() -> None:
    """Rewriting works all the same where chats cannot be kept."""
    versions = Versions(None, Document("d", "text"))
    assert versions.add(Version(0, "Fix it.", "text", "Text")) == Version(0, "Fix it.", "text", "Text")
    versions.change(versions.add(Version(0, "", "text", "")))
    assert versions.load() == []


def test_where_a_version_goes_on_is_kept(path: Path) -> None:
    """And left out where it does not belong to the text, or cannot be read; the text is there all the same."""
    state = State(of_rewriting("a text", "Fix it."), 1, 2, (0,), "tail \ud83d", "begun")
    with Store(path) as store:
        versions = Versions(store, Document("d", "a text"))
        stopped = versions.add(Version(0, "Fix it.", "a text", "A text", "interrupted", state=state, done=2))
        assert versions.load() == [stopped]
        for kept_state in ("{", "[]", '{"state": {}, "done": 0}', '{"state": null, "done": 0}'):
            with store.writing() as raw:
                raw.execute("UPDATE versions SET state = ?", (kept_state,))
            assert [(version.result, version.state) for version in versions.load()] == [("A text", None)]
        versions.change(Version(stopped.id, "Fix it.", "a text", "A", None, state=state, done=2))
        assert [(version.result, version.state) for version in versions.load()] == [("A", None)]
        other = State(of_rewriting("another", "Fix it."), 1, 2)
        versions.change(Version(stopped.id, "Fix it.", "a text", "A text", None, state=other, done=2))
        assert [version.state for version in versions.load()] == [None]


def test_the_file_of_a_document_is_kept(path: Path) -> None:
    """With a message and with versions, whatever it is called; an export does not tell it."""
    file = Path("/home/jo/\udce9t\xe9/notes.md")
    with Store(path) as store:
        chat = store.create("model")
        store.save(chat, Entry(1, None, "user", "words", (Document("notes.md", "text", file),)))
        Versions(store, Document("notes.md", "text", file)).add(Version(0, "Fix it.", "text", "Text"))
    with Store(path) as store:
        (document,) = store.load(chat).thread.entries[1].documents
        assert document.path == file
        assert [lately.path for lately in rewritten_lately(store)] == [file]
        assert "/home/jo" not in to_json(store.load(chat)) + to_markdown(store.load(chat))
