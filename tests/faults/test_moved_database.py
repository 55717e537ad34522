"""The file of the chats is deleted, moved away or replaced while the app has it open: what is said goes into the one that has
its name, and not into one that nobody finds again."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from kept_chat import opened, said, saved, shown

from localspec.chat.database import MovedError
from localspec.chat.messages import Document
from localspec.chat.store import STORE_FILE, Store
from localspec.chat.thread import Entry
from localspec.engine.step import Finish
from localspec.tui.version_history import VersionHistory
from scripted import finished, send, until


def delete(data: Path) -> None:
    for path in data.glob("chats*"):
        path.unlink()


def delete_everything(data: Path) -> None:
    shutil.rmtree(data)


def move(data: Path) -> None:
    data.rename(data.with_name("elsewhere"))


def put_a_backup_there(data: Path) -> None:
    other = data.with_name("backup.db")
    with Store(other) as store:
        store.save(store.create("m"), Entry(1, None, "user", "from the backup"))
    for ending in ("-wal", "-shm"):
        Path(f"{data / STORE_FILE}{ending}").unlink()
    os.replace(other, data / STORE_FILE)  # noqa: PTH105


WAYS = [delete, delete_everything, move, put_a_backup_there]


@pytest.mark.parametrize("lose", WAYS)
async def test_the_whole_chat_is_in_the_file_that_is_there(lose: Callable[[Path], None], tmp_path: Path) -> None:
    """With what was said before, and the name of the chat; what else is in it stays."""
    data = tmp_path / "data"
    async with opened(data, ["first"], ["second"]) as (pilot, _):
        await send(pilot, "one")
        await finished(pilot, 1)
        await send(pilot, "/rename A name")
        lose(data)
        await send(pilot, "two")
        await finished(pilot, 2)
        assert shown(pilot.app) == ["one", "first", "two", "second"]
        await until(pilot, lambda: (data / STORE_FILE).exists() and len(saved(data)) == 4)
        await until(pilot, lambda: "not saved" not in said(pilot.app).split("The chats in")[-1].split("LOCALSPEC")[-1])
    assert saved(data) == ["one", "first", "two", "second"]
    with Store(data / STORE_FILE) as store:
        chats = store.chats()
        assert chats[0].title == "A name"
        assert len(chats) == (2 if lose is put_a_backup_there else 1)


@pytest.mark.parametrize("lose", WAYS)
def test_versions_of_a_document_are_saved_anew(lose: Callable[[Path], None], tmp_path: Path) -> None:
    """All of them, and the decisions."""
    data, document = tmp_path / "data", Document("d.txt", "one too three")
    with Store(data / STORE_FILE) as store:
        history = VersionHistory(store, document)
        for result in ("one two three", "1 two 3"):
            history.begin("Again.")
            history.grow(result)
            history.finish(Finish.STOP)
        lose(data)
        history.decide([0], False)
        assert history.save() or history.save()
    with Store(data / STORE_FILE) as store:
        assert [version.result for version in VersionHistory(store, document).versions] == ["one two three", "1 two 3"]
        assert VersionHistory(store, document).accepted[0] is False


def test_a_write_with_an_old_number_is_refused_once(tmp_path: Path) -> None:
    """The number may be that of another chat now."""
    with Store(tmp_path / "data" / STORE_FILE) as store:
        number = store.create("m")
        store.save(number, Entry(1, None, "user", "old"))
        put_a_backup_there(tmp_path / "data")
        with pytest.raises(MovedError, match="deleted, moved or replaced"):
            store.save(number, Entry(2, 1, "assistant", "new"))
        assert store.generation == 1
        assert [info.title for info in store.chats()] == ["from the backup"]
        assert len(store.load(1).thread.entries) == 1
