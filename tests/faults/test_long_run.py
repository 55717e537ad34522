"""Hours of chatting: nothing grows that need not, nothing gets slower, and the database holds what was said.

The usual size is a few dozen answers, in several chats and in one. A sample so small shows whether a session works, and
what grows by much with every answer; small growth only `pytest --long tests/faults/test_long_run.py` tells from
the warm-up: 2,000 answers with some 250,000 tokens, and 600 in one chat (an hour of one core).
"""

from __future__ import annotations

import json
import os
import sqlite3
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from localspec.chat.store import STORE_FILE, Store
from localspec.chat.thread import Thread

_DRIVER = Path(__file__).with_name("long_session.py")
_SEED = 8
_CONTEXT = 1024
_LIMIT = 5400
"""Seconds; only a session that hangs needs them."""
_WARM_UP = 0.25
"""Of the looks."""
_LOG_BYTES = 2_100_000
"""Two files of a million, and the line that was too much."""
_NAMES = {
    *("draft.gguf", "llama.gguf", "looks.jsonl", "plan.json", "cache/costs.json", "log/localspec.log"),
    *(f"data/{name}" for name in ("history.jsonl", "unsent.json", "unsent.json.lock")),
    *(f"data/{STORE_FILE}{end}" for end in ("", "-shm", "-wal")),
    *(f"notes {number}.txt" for number in range(6)),
}
"""Every file there may be, apart from folders and the states of chats."""


class Played:
    """What came of a session."""

    def __init__(self, folder: Path, *, long: bool) -> None:
        self.long = long
        self.looks: list[dict[str, Any]] = [json.loads(line) for line in (folder / "looks.jsonl").open()]
        self.result: dict[str, Any] = json.loads((folder / "result.json").read_text())
        self.counts: dict[str, int] = self.result["counts"]
        self.database = folder / "data" / STORE_FILE

    @property
    def settled(self) -> list[dict[str, Any]]:
        """The looks after the warm-up."""
        return self.looks[max(1, round(len(self.looks) * _WARM_UP)) :]

    def values(self, name: str) -> list[float]:
        """Of the looks after the warm-up."""
        return [look[name] for look in self.settled]

    def ends(self, name: str) -> tuple[float, float]:
        """Medians of the first and of the last quarter of the looks after the warm-up."""
        values = self.values(name)
        quarter = max(1, len(values) // 4)
        return statistics.median(values[:quarter]), statistics.median(values[-quarter:])


def play(folder: Path, *, long: bool, **plan: object) -> Played:
    """Play a session in a process of its own."""
    (folder / "plan.json").write_text(json.dumps({"seed": _SEED, "context": _CONTEXT, **plan}))
    command = [sys.executable, str(_DRIVER), str(folder / "plan.json")]
    paths = os.pathsep.join([str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": paths}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_LIMIT, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-8000:]
    return Played(folder, long=long)


@pytest.fixture(scope="module", params=["chats", "one chat"])
def played(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, tiny_llama: Path, tiny_draft: Path
) -> Played:
    """Many chats, left and gone back to; or one that gets longer and longer."""
    long, one_chat = bool(request.config.getoption("--long")), request.param == "one chat"
    folder = tmp_path_factory.mktemp("session")
    models = {"target": str(folder / "llama.gguf"), "draft": str(folder / "draft.gguf")}
    (folder / "llama.gguf").symlink_to(tiny_llama)
    (folder / "draft.gguf").symlink_to(tiny_draft)
    turns = (600 if one_chat else 2000) if long else (20 if one_chat else 25)
    return play(folder, long=long, turns=turns, looks=20 if long else 4, one_chat=one_chat, **models)


# What the database holds.


def rows_of(thread: Thread) -> list[list[Any]]:
    """As the driver has them: Known.as_rows."""
    followers: dict[int | None, list[int]] = {}
    for entry in thread.entries.values():
        followers.setdefault(entry.parent, []).append(entry.id)
    rows: list[list[Any]] = []
    left = [(id_, -1) for id_ in sorted(followers.get(None, []), reverse=True)]
    while left:
        id_, before = left.pop()
        left += [(follower, len(rows)) for follower in sorted(followers.get(id_, []), reverse=True)]
        entry = thread.entries[id_]
        rows.append([entry.role, entry.text, [document.text for document in entry.documents], before])
    return rows


def test_the_database_holds_exactly_what_was_said(played: Played) -> None:
    """Every message of every branch of every chat, and the branch that was shown last."""
    with Store(played.database) as store:
        kept = {info.id: store.load(info.id) for info in store.chats(limit=sys.maxsize)}
    expected = {chat["id"]: chat for chat in played.result["chats"]}
    assert kept.keys() == expected.keys()
    for id_, chat in kept.items():
        assert rows_of(chat.thread) == expected[id_]["rows"]
        assert [entry.text for entry in chat.thread.path()] == expected[id_]["shown"]


def test_the_database_is_whole(played: Played) -> None:
    """By SQLite's own judgement, and in what refers to what."""
    database = sqlite3.connect(played.database)
    assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert database.execute("PRAGMA foreign_key_check").fetchall() == []
    assert database.execute("SELECT count(*) FROM versions").fetchone() == (played.result["versions"],)
    missing = """SELECT count(*) FROM entries, json_each(CAST(entries.documents AS TEXT)) AS used
        WHERE json_extract(used.value, '$.sha256') NOT IN (SELECT digest FROM documents)"""
    assert database.execute(missing).fetchone() == (0,)
    database.close()


def test_the_session_was_what_it_is_meant_to_be(played: Played) -> None:
    """The other tests say nothing of a session in which nothing happened."""
    counts = played.counts
    if played.result["plan"]["one_chat"]:
        assert counts["overflows"] >= 2
    assert all(counts.get(name) for name in ("regenerations", "rewrites", "files"))
    assert counts.get("edits", 0) + counts.get("edits left", 0)
    if played.long:
        assert counts["tokens"] > 100 * counts["turns"]
        assert counts["overflows"] > counts["turns"] / 5
        assert all(
            counts.get(name) for name in ("stops", "edits", "rewrites stopped", "continuations", "branches", "pastes")
        )


# What grows.


@pytest.mark.parametrize("name", ["rss", "engine_rss"])
def test_memory_stays_what_it_was(played: Played, name: str) -> None:
    """Under 5 % more from the warm-up to the end. A short session is warming up all the time: it may take half as much again,
    which leaves no room for a megabyte for each answer."""
    first, last = played.ends(name)
    assert last < first * (1.05 if played.long else 1.5), (first, last, _grown(played))


@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("descriptors", 2),
        ("engine_descriptors", 0),
        ("threads", 3),
        ("engine_threads", 0),
        ("children", 0),
        ("timers", 3),
    ],
)
def test_what_is_opened_is_closed(played: Played, name: str, most: int) -> None:
    """`most`: so many more there may be for a moment, such as the threads that wait for something to do."""
    first, *others = played.values(name)
    assert max(others) <= first + most, (played.values(name), _grown(played))


def test_widgets_that_are_gone_are_gone(played: Played) -> None:
    """Those that live are those on the screen and what is still mounted of the chat: at most as many as a screen full of
    messages has."""
    assert max(played.values("on_screen")) <= (1000 if not played.result["plan"]["one_chat"] else 3000)
    first = played.settled[0]
    for look in played.settled:
        assert look["widgets"] <= look["on_screen"] + 20, _grown(played)
        # Each has a task of its own.
        assert look["tasks"] - look["on_screen"] <= first["tasks"] - first["on_screen"] + 2


def test_chats_that_were_left_are_gone(played: Played) -> None:
    """Where their messages lie in the file is known of the chat that is open, which is an empty one at each look."""
    if not played.result["plan"]["one_chat"]:
        assert max(look["objects"].get("localspec.chat.store._Place", 0) for look in played.settled) == 0


def test_files_are_few_and_the_log_is_bounded(played: Played) -> None:
    """No file is left beside those that have a name in the program, whatever was stopped."""
    last = played.looks[-1]
    names = {name for name in last["files"] if "." in name and not name.startswith("cache/states/")}
    assert names <= _NAMES
    assert last["log"] <= _LOG_BYTES
    # What was said, and by each message what it takes to find it and to tell how it was made; the rest is the log of SQLite.
    said = sum(len(row[1].encode()) for chat in played.result["chats"] for row in chat["rows"])
    messages = sum(len(chat["rows"]) for chat in played.result["chats"])
    assert last["bytes"][STORE_FILE] <= 6 * said + 2000 * messages + 500_000


# What gets slower.


def test_an_answer_takes_as_much_work_as_it_did(played: Played) -> None:
    """By counts: what a new chat asks, in the same words, is the same to do after all those chats as it was; in a long chat
    the context is full, and what is read stays within it."""
    for look in played.settled:
        assert look["stream"] <= _CONTEXT + 1
        assert look["prompt"] <= _CONTEXT
        assert look["rows"] <= 33 * look["steps"]
    # The probe's answer is drawn piece by piece, and saved once a second: how often depends on how fast it comes.
    for name, more in (("statements", 60), ("database", 100), ("mounted", 40)):
        first, last = played.ends(name)
        assert last <= 2 * first + more, (name, played.values(name))


@pytest.mark.parametrize("name", ["app_ms", "engine_ms"])
def test_a_step_takes_the_processor_as_long_as_it_did(played: Played, name: str) -> None:
    """Medians of the first and of the last looks, of the processor's time by step. Wide: another program that fills the
    caches makes it half as much again; with two or three looks it may be anything but several times as much."""
    first, last = played.ends(name)
    assert last < first * (2 if played.long else 5), played.values(name)


def _grown(played: Played) -> list[tuple[str, int, int]]:
    """Of which kinds there are more objects than after the warm-up: the most."""
    first, last = played.settled[0]["objects"], played.settled[-1]["objects"]
    kinds = sorted(last, key=lambda name: first.get(name, 0) - last[name])
    return [(name, first.get(name, 0), last[name]) for name in kinds[:20]]
