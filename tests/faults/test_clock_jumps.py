"""A clock that is wrong, or is put right: nothing is lost, and the order is that in which things happened."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from kept_chat import opened, prompt, saved, shown
from kept_chat import said as screen

from command import call, read_json
from localspec.chat.clock import EARLIEST
from localspec.chat.kept_states import KeptStates
from localspec.chat.store import STORE_FILE, Store
from localspec.chat.thread import Entry
from localspec.engine.errors import UserError
from localspec.settings import find_folders
from localspec.tui.app import ChatApp
from scripted import HOLD, ScriptedBackend, chat, finished, send, until

DAY = 24 * 3600.0
NOW = EARLIEST + 1000 * DAY
JUMPS = (0.0, -9000 * DAY, 5 * DAY, 20000 * DAY, -3600.0, 1e11, 0.0)
"""Since the true time: back to before the program, ahead by decades, to a year that no calendar has."""


class Clock:
    """`now` is what the system says."""

    def __init__(self) -> None:
        self.now = NOW


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(time, "time", lambda: made.now)
    return made


def begin(store: Store, words: str) -> int:
    number = store.create("model")
    store.save(number, Entry(1, None, "user", words))
    return number


def test_chats_are_in_the_order_in_which_they_were_written(clock: Clock) -> None:
    """Also those that are gone on with, also after another start, and on the command line."""
    path = find_folders().data / STORE_FILE
    numbers = []
    for jump in JUMPS:
        clock.now = NOW + jump
        with Store(path) as store:
            numbers.append(begin(store, f"at {jump}"))
    clock.now = NOW
    with Store(path) as store:
        assert [info.id for info in store.chats()] == numbers[::-1]
        clock.now = 0.0
        store.save(numbers[2], Entry(2, 1, "assistant", "more"))
        assert next(iter(store.chats())).id == numbers[2]
    for arguments in (["list"], ["show", "1"], ["export", "1", "--json"]):
        outcome = call("sessions", *arguments)
        assert (outcome.code, outcome.err) == (0, "")
    assert next(entry["id"] for entry in read_json(call("sessions", "list", "--json").out)) == numbers[2]


def test_turns_are_in_the_order_in_which_they_were_written(clock: Clock, tmp_path: Path) -> None:
    """Times are shown and nothing more."""
    with Store(tmp_path / STORE_FILE) as store:
        number = store.create("model")
        for id_, jump in enumerate(JUMPS, 1):
            clock.now = NOW + jump
            store.save(number, Entry(id_, id_ - 1 or None, "user" if id_ % 2 else "assistant", f"turn {id_}"))
    with Store(tmp_path / STORE_FILE) as store:
        texts = [entry.text for entry in store.load(number).thread.path()]
    assert texts == [f"turn {id_}" for id_ in range(1, len(JUMPS) + 1)]


@pytest.mark.parametrize("deleted", [-9000.0, 0.0, 20000.0])
@pytest.mark.parametrize("back", [-9000.0, 0.0, 29.0, 20000.0])
def test_what_was_deleted_can_be_brought_back(deleted: float, back: float, clock: Clock, tmp_path: Path) -> None:
    """A clock that jumps does not make a chat a month old, however often the app is started meanwhile."""
    path = tmp_path / STORE_FILE
    with Store(path) as store:
        number = begin(store, "kept")
        begin(store, "another")
        clock.now = NOW + deleted * DAY
        store.delete(number)
    for days in (back, deleted, back, 0.0):
        clock.now = NOW + days * DAY
        with Store(path) as store:
            assert len(store.chats()) == 1
    with Store(path) as store:
        store.restore(number)
        assert store.load(number).thread.entries[1].text == "kept"


def test_a_month_is_a_month_all_the_same(clock: Clock, tmp_path: Path) -> None:
    """With a clock that is right, what was deleted goes."""
    path = tmp_path / STORE_FILE
    with Store(path) as store:
        number = begin(store, "gone")
        store.delete(number)
    for days, there in ((29, True), (31, True), (32, False)):
        clock.now = NOW + days * DAY
        with Store(path) as store:
            if there:
                store.restore(number)
                store.delete(number)
                with store.writing() as raw:
                    raw.execute("UPDATE chats SET deleted_at = ? WHERE id = ?", (NOW, number))
                begin(store, "another")
            else:
                with pytest.raises(UserError, match="There is no chat"):
                    store.restore(number)


async def test_the_app_goes_on_while_the_clock_jumps(clock: Clock, tmp_path: Path) -> None:
    """What grows is saved every second by a clock that only rises; the last chat is opened again; undo is undo."""
    async with opened(tmp_path, ["first"], ["a part ", HOLD, "and more"], ["third"]) as (pilot, backend):
        await send(pilot, "question")
        await finished(pilot, 1)
        clock.now = 0.0
        await send(pilot, "two")
        await until(pilot, lambda: saved(tmp_path)[-1] == "a part ")
        clock.now = NOW + 20000 * DAY
        backend.go.set()
        await finished(pilot, 2)
        clock.now = NOW - 5 * DAY
        await pilot.press("ctrl+n")
        await until(pilot, lambda: not shown(pilot.app))
        await send(pilot, "three")
        await finished(pilot, 1)
        await pilot.press(*"typed")
        assert prompt(pilot.app).text == "typed"
    assert saved(tmp_path) == ["three", "third"]
    clock.now = NOW - 9000 * DAY
    app = ChatApp(lambda report: ScriptedBackend(), tmp_path, goes_on=True)
    async with app.run_test(size=(100, 30)) as pilot:
        await until(pilot, lambda: chat(app)._loaded)
        assert shown(app) == ["three", "third"]
        assert prompt(app).text == "typed"
        await pilot.press("ctrl+r")
        await until(pilot, lambda: "question" in screen(app))
    app.worker.join()
    app.close_store()


def test_states_are_kept_whatever_the_time(clock: Clock, tmp_path: Path) -> None:
    """A file from the future, or from long ago, is no half-written one."""
    states = KeptStates(tmp_path)
    for number, jump in enumerate(JUMPS):
        states.path(number).write_bytes(b"x")
        clock.now = NOW + jump
        states._make_room(states.path(number))
    assert len(list(tmp_path.iterdir())) == len(JUMPS)
