"""Files of other versions of the program: earlier ones are kept before they are changed, later ones left alone."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from kept_chat import opened, prompt, said, shown, unsent

from command import PATIENCE, call, surroundings
from localspec.chat import database
from localspec.chat.clock import EARLIEST
from localspec.chat.store import STORE_FILE, Store
from localspec.chat.thread import Entry
from localspec.settings import find_folders
from localspec.tui.screens.unsaved import UnsavedScreen
from scripted import finished, send, until

Scale = Callable[[int, int], int]
DAY = 24 * 3600
NOW = EARLIEST + 100 * DAY

FIRST = """
PRAGMA application_id = 1819501424;
PRAGMA user_version = 1;
CREATE TABLE chats (id INTEGER PRIMARY KEY AUTOINCREMENT, title TEXT NOT NULL DEFAULT '', named INTEGER NOT NULL DEFAULT 0,
    model TEXT NOT NULL, system TEXT, settings TEXT NOT NULL DEFAULT '{}', leaf INTEGER, created REAL NOT NULL,
    updated REAL NOT NULL, deleted_at REAL);
CREATE INDEX chats_by_time ON chats (updated);
CREATE TABLE entries (key INTEGER PRIMARY KEY AUTOINCREMENT,
    chat INTEGER NOT NULL REFERENCES chats (id) ON DELETE CASCADE, id INTEGER NOT NULL, parent INTEGER,
    role TEXT NOT NULL CHECK (role IN ('user', 'assistant')), text TEXT NOT NULL, documents TEXT NOT NULL DEFAULT '[]',
    finish TEXT, figures TEXT, created REAL NOT NULL, updated REAL NOT NULL, indexed INTEGER NOT NULL DEFAULT 0,
    UNIQUE (chat, id), CHECK (parent < id));
CREATE INDEX entries_to_index ON entries (key) WHERE NOT indexed;
"""
"""What the first version has made."""
SECOND = """
PRAGMA user_version = 2;
CREATE TABLE documents (digest TEXT PRIMARY KEY, text BLOB NOT NULL);
CREATE INDEX entries_with_documents ON entries (key) WHERE documents <> '[]';
CREATE TABLE versions (id INTEGER PRIMARY KEY AUTOINCREMENT, document TEXT NOT NULL REFERENCES documents (digest),
    source TEXT NOT NULL REFERENCES documents (digest), result BLOB NOT NULL, name TEXT NOT NULL, path BLOB,
    instruction TEXT NOT NULL, finish TEXT, state TEXT, rejected TEXT NOT NULL DEFAULT '[]', created REAL NOT NULL,
    updated REAL NOT NULL);
CREATE INDEX versions_by_document ON versions (document);
"""


def old(path: Path, version: int, chats: int = 3) -> Path:
    """A file as that version has left it: the last of its chats is the oldest."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.closing(sqlite3.connect(path)) as raw, raw:
        raw.execute("PRAGMA journal_mode = WAL")
        raw.executescript(FIRST)
        documents = json.dumps([{"name": "notes.md", "text": "attached"}]) if version == 1 else "[]"
        for chat in range(1, chats + 1):
            raw.execute(
                "INSERT INTO chats (title, model, leaf, created, updated) VALUES (?, 'm', 2, ?, ?)",
                (f"chat {chat}", NOW - chat, NOW - chat),
            )
            for id_, role in ((1, "user"), (2, "assistant")):
                raw.execute(
                    "INSERT INTO entries (chat, id, parent, role, text, documents, created, updated) "
                    "VALUES (?, ?, ?, ?, ?, ?, 0, 0)",
                    (chat, id_, id_ - 1 or None, role, f"{role} of {chat} " * 50, documents if id_ == 1 else "[]"),
                )
        if version == 2:
            raw.executescript(SECOND)
    return path


def dump(path: Path) -> list[str]:
    """All that a database says."""
    with contextlib.closing(sqlite3.connect(path)) as raw:
        version = raw.execute("PRAGMA user_version").fetchone()[0]
        return [f"version {version}", *raw.iterdump()]


def check(path: Path, version: int, chats: int = 3) -> None:
    """Everything is there, in its order."""
    with Store(path) as store:
        infos = store.chats()
        assert [info.title for info in infos] == [f"chat {chat}" for chat in range(1, chats + 1)]
        for info in infos:
            entries = store.load(info.id).thread.path()
            assert [entry.text for entry in entries] == [f"{role} of {info.id} " * 50 for role in ("user", "assistant")]
            assert [document.text for document in entries[0].documents] == ["attached"] * (version == 1)


@pytest.mark.parametrize("version", [1, 2])
def test_an_old_file_is_kept_before_it_is_changed(version: int, tmp_path: Path) -> None:
    """The copy is what the file was, for this user alone; there is one of it, and the old program could go on with it."""
    path = old(tmp_path / STORE_FILE, version)
    before = dump(path)
    check(path, version)
    copy = tmp_path / f"chats-version-{version}.db"
    assert dump(copy) == before
    assert copy.stat().st_mode & 0o777 == 0o600
    stamp = copy.stat().st_mtime_ns
    check(path, version)
    assert copy.stat().st_mtime_ns == stamp
    assert {file.name for file in tmp_path.iterdir()} == {STORE_FILE, copy.name}


def test_every_version_there_was_is_tried() -> None:
    """Whoever adds a version adds it here, and to the files above as it was."""
    assert database.VERSION == 3


def test_a_copy_goes_when_what_was_deleted_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that a person has deleted stays in it for longer than in the file itself."""
    monkeypatch.setattr(time, "time", lambda: NOW)
    path = old(tmp_path / STORE_FILE, 1)
    Store(path).close()
    copy = tmp_path / "chats-version-1.db"
    for days, there in ((29, True), (31, True), (31, False)):
        monkeypatch.setattr(time, "time", lambda days=days: NOW + days * DAY)
        with Store(path) as store:
            assert copy.exists() is there
            store.save(store.create("m"), Entry(1, None, "user", "later"))


def test_nothing_is_copied_for_a_new_file_or_one_of_this_version(tmp_path: Path) -> None:
    for _ in range(2):
        Store(tmp_path / STORE_FILE).close()
    assert [file.name for file in tmp_path.iterdir()] == [STORE_FILE]


KILLED = """
import os, signal, sqlite3, sys
from pathlib import Path
from localspec.chat import database

left = int(sys.argv[2])

def count():
    global left
    left -= 1
    if left <= 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return 0

connect = sqlite3.connect

def watched(*arguments, **named):
    made = connect(*arguments, **named)
    made.set_progress_handler(count, 1)
    return made

sqlite3.connect = watched
database.open_database(Path(sys.argv[1])).close()
"""
"""Dies after so many instructions of the database."""


def test_a_kill_while_a_file_is_brought_up_to_date_costs_nothing(tmp_path: Path, scale: Scale) -> None:
    """At whatever moment: the file is old or new, and there is a copy where it is new."""
    whole = old(tmp_path / "whole" / STORE_FILE, 1, chats=20)
    killed = 0
    step = scale(700, 60)
    for instructions in range(20, 1_000_000, step):
        path = tmp_path / str(instructions) / STORE_FILE
        path.parent.mkdir()
        shutil.copy(whole, path)
        arguments = [sys.executable, "-c", KILLED, str(path), str(instructions)]
        done = subprocess.run(arguments, env=surroundings(), capture_output=True, timeout=PATIENCE, check=False)
        assert done.stderr == b""
        with contextlib.closing(sqlite3.connect(path)) as raw:
            version = raw.execute("PRAGMA user_version").fetchone()[0]
        assert version in (1, database.VERSION)
        if version == database.VERSION:
            assert (path.parent / "chats-version-1.db").exists()
        check(path, 1, chats=20)
        assert dump(path.parent / "chats-version-1.db") == dump(whole)
        assert not list(path.parent.glob("*.part*"))
        shutil.rmtree(path.parent)
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL
        killed += 1
    print(f"{killed} kills while a file was brought up to date")
    assert killed >= 3


# --- from the future --------------------------------------------------------------------------------------------------


def newer(path: Path) -> dict[str, tuple[bytes, int]]:
    """A file of the next version; the files of its folder."""
    with Store(path) as store:
        store.save(store.create("m"), Entry(1, None, "user", "old"))
    with contextlib.closing(sqlite3.connect(path)) as raw:
        raw.execute("ALTER TABLE chats ADD COLUMN more")
        raw.execute(f"PRAGMA user_version = {database.VERSION + 1}")
    return state(path.parent)


def state(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in folder.glob("chats*")}


@pytest.mark.parametrize("command", ["list", "show 1", "export 1", "search old", "rm 1", "restore 1"])
def test_a_file_of_a_newer_version_is_left_alone(command: str) -> None:
    """One sentence says what to do, and no byte is written."""
    path = find_folders().data / STORE_FILE
    before = newer(path)
    outcome = call("sessions", *command.split())
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.sentence.endswith("were written by a newer version of localspec; update this one.")
    assert state(path.parent) == before


async def test_the_app_can_be_used_beside_a_file_of_a_newer_version(tmp_path: Path) -> None:
    """It says so at the start and before the words are lost; what is typed is kept for the next start."""
    before = newer(tmp_path / STORE_FILE)
    async with opened(tmp_path, ["first"]) as (pilot, _):
        await until(pilot, lambda: "newer version of localspec; update this one" in said(pilot.app))
        await send(pilot, "one")
        await finished(pilot, 1)
        await pilot.press(*"two", "ctrl+q")
        await until(pilot, lambda: isinstance(pilot.app.screen, UnsavedScreen))
        await pilot.press("escape")
        await until(pilot, lambda: prompt(pilot.app).is_attached)
        assert shown(pilot.app) == ["one", "first"]
    assert state(tmp_path) == before
    # What was sent is nowhere else.
    assert unsent(tmp_path) == "one\ntwo"


def test_what_the_umask_says_is_of_no_matter(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        old(tmp_path / STORE_FILE, 1)
        Store(tmp_path / STORE_FILE).close()
    finally:
        os.umask(before)
    assert {file.stat().st_mode & 0o777 for file in tmp_path.iterdir()} == {0o600}
