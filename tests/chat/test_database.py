"""The file of the chats: private, never written over, and honest about what is wrong with it."""

from __future__ import annotations

import contextlib
import os
import random
import resource
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from command import PATIENCE, surroundings
from localspec.chat import database
from localspec.chat.store import Store
from localspec.chat.thread import Entry
from localspec.engine.errors import UserError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "new" / "folder" / "chats.db"


def fill(path: Path, text: str = "some words ", times: int = 200) -> int:
    """A file with one chat in it."""
    with Store(path) as store:
        chat = store.create("model")
        for number in range(1, times + 1):
            store.save(chat, Entry(number, number - 1 or None, "user", f"{number} {text * 20}"))
        return chat


def sentence(path: Path) -> str:
    """What is said when the file is opened; it stays as it is."""
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(UserError) as caught:
        Store(path)
    assert (path.read_bytes() if path.is_file() else None) == before
    text = str(caught.value)
    assert text.endswith(".")
    assert "\n" not in text
    assert ". " not in text
    return text


def test_only_its_owner_may_read_it(path):
    before = os.umask(0)
    try:
        with Store(path) as store:
            store.save(store.create("model"), Entry(1, None, "user", "private"))
            files = sorted(path.parent.iterdir())
            assert len(files) == 3
            assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
            assert path.parent.stat().st_mode & 0o777 == 0o700
    finally:
        os.umask(before)


def test_a_file_that_all_may_read_becomes_private(path):
    fill(path, times=1)
    path.chmod(0o644)
    Store(path).close()
    assert path.stat().st_mode & 0o777 == 0o600


def test_readers_and_a_writer_need_not_wait(path):
    Store(path).close()
    with contextlib.closing(database.open_database(path)) as opened:
        modes = [
            opened.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous", "foreign_keys")
        ]
        assert modes == ["wal", 1, 1]
        assert opened.execute("PRAGMA busy_timeout").fetchone()[0] == 1000 * database.PATIENCE
        with Store(path) as other, database.transaction(opened):
            assert other.chats() == []


def test_an_empty_file_is_a_beginning(path):
    path.parent.mkdir(parents=True)
    path.touch()
    fill(path, times=1)
    with Store(path) as store:
        assert len(store.chats()) == 1


@pytest.mark.parametrize("size", [1, 15, 100, 511, 512, 4096, 20000])
def test_a_file_of_something_else_is_left_alone(path, size):
    path.parent.mkdir(parents=True)
    path.write_bytes(random.Random(size).randbytes(size))
    text = sentence(path)
    assert str(path) in text
    assert "damaged; move it to another place" in text


@pytest.mark.parametrize("marks", ["", "PRAGMA user_version = 1"])
def test_a_database_of_another_program_is_left_alone(path, marks):
    path.parent.mkdir(parents=True)
    with contextlib.closing(sqlite3.connect(path)) as raw:
        raw.execute("CREATE TABLE bookmarks (url)")
        raw.execute(marks)
    assert "belongs to another program" in sentence(path)


def test_a_file_from_the_future_is_left_alone(path):
    fill(path, times=1)
    with contextlib.closing(sqlite3.connect(path)) as raw:
        raw.execute(f"PRAGMA user_version = {database.VERSION + 1}")
    assert "newer version of localspec; update this one" in sentence(path)


def test_damage_inside_is_one_sentence(path):
    chat = fill(path)
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * (size - 4096))
    damaged = path.read_bytes()
    failed = 0
    for act in (
        lambda store: store.load(chat),
        lambda store: store.chats(),
        lambda store: store.chats("words"),
        lambda store: store.save(chat, Entry(1000, 1, "user", "more")),
    ):
        with (
            pytest.raises(UserError, match=r"^The chats in \S+ cannot be read because the file is damaged; "),
            Store(path) as store,
        ):
            act(store)
        failed += 1
    assert failed == 4
    assert path.read_bytes()[4096:] == damaged[4096:]


@pytest.mark.parametrize("column", ["documents = '{'", "documents = '[1]'", "figures = 'x'", "documents = x'ff'"])
def test_a_row_that_cannot_be_read_is_one_sentence(path, column):
    chat = fill(path, times=1)
    with contextlib.closing(sqlite3.connect(path)) as raw, raw:
        raw.execute(f"UPDATE entries SET {column}")
    with Store(path) as store, pytest.raises(UserError, match="damaged"):
        store.load(chat)


def test_a_folder_in_its_place_is_one_sentence(path):
    path.mkdir(parents=True)
    assert "cannot be opened" in sentence(path)


def test_a_file_in_the_place_of_its_folder_is_one_sentence(tmp_path):
    (tmp_path / "file").touch()
    assert "cannot be created" in sentence(tmp_path / "file" / "chats.db")


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is read-only for root")
@pytest.mark.parametrize(("file", "folder"), [(0o400, 0o500), (0o600, 0o500), (0o600, 0o000)])
def test_what_may_not_be_written_is_one_sentence(path, file, folder):
    fill(path, times=1)
    path.chmod(file)
    path.parent.chmod(folder)
    try:
        with pytest.raises(UserError, match="permissions"), Store(path) as store:
            store.create("model")
    finally:
        path.parent.chmod(0o700)


def test_a_full_disk_is_one_sentence_and_costs_nothing_that_was_saved(path):
    chat = fill(path, times=3)
    program = f"""
import sys
from pathlib import Path
from localspec.chat.store import Store
from localspec.chat.thread import Entry
from localspec.engine.errors import UserError

store = Store(Path(sys.argv[1]))
try:
    for number in range(4, 1000):
        store.save({chat}, Entry(number, number - 1, "user", "x" * 1000))
        print(number, flush=True)
except UserError as error:
    print(error)
    sys.exit(7)
"""
    limit = path.stat().st_size + 50_000
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)],
        capture_output=True,
        text=True,
        env=surroundings(),
        timeout=PATIENCE,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )
    assert (done.returncode, done.stderr) == (7, "")
    *saved, said = done.stdout.splitlines()
    assert f"chats in {path}" in said
    assert "space" in said
    with Store(path) as store:
        assert len(store.load(chat).thread.entries) == int(saved[-1])


def test_sqlite_says_itself_that_the_disk_is_full(path):
    fill(path, times=1)
    with contextlib.closing(database.open_database(path)) as opened:
        opened.execute("PRAGMA max_page_count = 1")
        with pytest.raises(UserError, match="disk is full"), database.explained(path), database.transaction(opened):
            opened.execute("CREATE TABLE big AS SELECT zeroblob(1000000)")
        assert not opened.in_transaction


def test_another_program_that_keeps_writing_is_one_sentence(path, monkeypatch):
    fill(path, times=1)
    monkeypatch.setattr(database, "PATIENCE", 0.05)
    with Store(path) as store, contextlib.closing(sqlite3.connect(path, isolation_level=None)) as raw:
        raw.execute("BEGIN IMMEDIATE")
        assert len(store.chats()) == 1
        with pytest.raises(UserError, match="kept busy by another program"):
            store.create("model")
        raw.execute("ROLLBACK")
        assert store.create("model") == 2


def test_a_mistake_of_ours_is_not_explained_away(path):
    with pytest.raises(sqlite3.OperationalError), database.explained(path):
        sqlite3.connect(":memory:").execute("SELECT nonsense")


def test_half_a_migration_is_none(path, monkeypatch):
    monkeypatch.setattr(database, "_MIGRATIONS", (*database._MIGRATIONS, ("CREATE TABLE more (a)", "nonsense")))
    monkeypatch.setattr(database, "VERSION", database.VERSION + 1)
    with pytest.raises(sqlite3.OperationalError):
        Store(path)
    monkeypatch.setattr(database, "_MIGRATIONS", (*database._MIGRATIONS[:-1], ("CREATE TABLE more (a)",)))
    Store(path).close()
    with contextlib.closing(sqlite3.connect(path)) as raw:
        assert raw.execute("PRAGMA user_version").fetchone() == (database.VERSION,)
        assert raw.execute("SELECT count(*) FROM more").fetchone() == (0,)


def test_a_file_of_an_earlier_version_is_brought_up_to_date(path, monkeypatch):
    chat = fill(path, times=2)
    monkeypatch.setattr(database, "_MIGRATIONS", (*database._MIGRATIONS, ("ALTER TABLE entries ADD COLUMN note TEXT",)))
    monkeypatch.setattr(database, "VERSION", database.VERSION + 1)
    for _ in range(2):
        with Store(path) as store:
            assert len(store.load(chat).thread.entries) == 2
