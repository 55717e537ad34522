"""What the app does with its folders at the start."""

from __future__ import annotations

from pathlib import Path

from localspec.chat.kept_states import FOLDER
from localspec.chat.store import STORE_FILE, Store
from localspec.chat.thread import Thread
from localspec.tui.app import ChatApp
from scripted import ScriptedBackend


def test_nothing_that_the_model_has_read_of_a_deleted_chat_stays(tmp_path: Path) -> None:
    data, cache = tmp_path / "data", tmp_path / "cache"
    data.mkdir(mode=0o700)
    (cache / FOLDER).mkdir(parents=True)
    with Store(data / STORE_FILE) as store:
        for words in ("one", "two"):
            store.save(store.create("model"), Thread().add("user", words, after=None))
        store.delete(1)
    for number in (1, 2):
        (cache / FOLDER / f"chat-{number}.state").write_bytes(b"read")
    app = ChatApp(lambda report: ScriptedBackend(), data, cache)
    app.close_store()
    assert [file.name for file in (cache / FOLDER).iterdir()] == ["chat-2.state"]
