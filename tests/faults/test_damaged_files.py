"""Files that a disk, a crash or another program has damaged: one sentence, never a traceback or a further loss."""

from __future__ import annotations

import contextlib
import json
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from damages import DAMAGES

from command import execute
from localspec.chat.kept_states import KeptStates
from localspec.chat.messages import Document
from localspec.chat.store import STORE_FILE, Store
from localspec.chat.thread import Entry
from localspec.chat.versions import Version, Versions, rewritten_lately
from localspec.engine.engine import Engine, EngineSettings, Options
from localspec.engine.errors import UserError
from localspec.engine.measuring import load_curve, save_curve
from localspec.settings import find_folders
from localspec.tui.app import ChatApp
from localspec.tui.history import History
from localspec.tui.unsent import UNSENT_FILE, Draft, Unsent
from scripted import ScriptedBackend, seen, until
from tiny_checks import GREEDY, PROMPT, write

Scale = Callable[[int, int], int]


# --- the chats --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def chats(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with everything in it that a file can have."""
    path = tmp_path_factory.mktemp("whole") / STORE_FILE
    document = Document("notes.md", "a text that is attached " * 100)
    with Store(path) as store:
        for number in range(6):
            chat = store.create("model", "Be brief.")
            for id_ in range(1, 12):
                role = "user" if id_ % 2 else "assistant"
                text = f"message {id_} of chat {number} with wörds, 词 and 🦊 " * 8
                entry = Entry(id_, id_ - 1 or None, role, text, (document,) if id_ == 1 else (), "stop", {"tokens": 3})  # type: ignore[arg-type]
                store.save(chat, entry)
            store.configure(chat, "Be very brief.", {"temp": 0.5})
        Versions(store, document).add(Version(0, "Better.", document.text, "a better text " * 100, "stop", (1, 2)))
        store.delete(2)
        assert store.chats("message 3")
    with contextlib.closing(sqlite3.connect(path)) as raw:
        raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        raw.execute("PRAGMA journal_mode = DELETE")
    return path


def use(path: Path) -> tuple[int, list[str]]:
    """Everything that is done with a file; how much of it could not be, and the texts that were read. Raises whatever is no
    sentence for a person."""
    refused, texts = 0, list[str]()

    def attempt(act: Callable[[], object]) -> None:
        nonlocal refused
        try:
            act()
        except UserError as error:
            assert str(error).endswith(".")
            assert "\n" not in str(error)
            refused += 1

    def load(store: Store, chat: int) -> None:
        thread = store.load(chat).thread
        thread.path()
        texts.extend(entry.text for entry in thread.entries.values())

    try:
        store = Store(path)
    except UserError:
        return 1, []
    with store:
        attempt(lambda: store.restore(2))
        attempt(store.chats)
        attempt(lambda: store.chats("message 5 wörds"))
        for chat in range(1, 7):
            attempt(lambda chat=chat: load(store, chat))  # type: ignore[misc]
        attempt(lambda: Versions(store, Document("notes.md", "a text that is attached " * 100)).load())
        attempt(lambda: rewritten_lately(store))
        attempt(lambda: store.save(1, Entry(50, 11, "user", "something new")))
        attempt(lambda: store.rename(1, ""))
        attempt(lambda: store.delete(3))
    return refused, texts


def test_a_damaged_database_is_a_sentence(chats: Path, tmp_path: Path, scale: Scale) -> None:
    """Bits, pages and ends: whatever is wrong, reading and writing end with a result or with a sentence."""
    whole, dice, refused = chats.read_bytes(), random.Random(1), 0
    path = tmp_path / STORE_FILE
    assert use(shutil.copy(chats, path))[0] == 0
    kinds = len(DAMAGES)
    for number in range(scale(150, 5000)):
        for file in tmp_path.iterdir():
            file.unlink()
        path.write_bytes(DAMAGES[number % kinds](dice, whole))
        try:
            refused += bool(use(path)[0])
        except Exception as error:
            raise AssertionError(f"damage {number}: {DAMAGES[number % kinds].__name__}") from error
    assert refused > 20


@pytest.mark.parametrize("beside", ["-wal", "-shm"])
def test_what_lies_beside_it_is_damaged(chats: Path, tmp_path: Path, beside: str, scale: Scale) -> None:
    """What the database had before is there in any case: a log of changes is used as far as it is whole."""
    live = tmp_path / "live" / STORE_FILE
    live.parent.mkdir()
    shutil.copy(chats, live)
    with Store(live) as store:
        for id_ in range(20, 40):
            store.save(1, Entry(id_, id_ - 1 if id_ > 20 else 11, "user", f"later {id_}"))
        files = {name: Path(f"{live}{name}").read_bytes() for name in ("", "-wal", "-shm")}
    dice = random.Random(2)
    for number in range(scale(40, 1000)):
        folder = tmp_path / str(number)
        folder.mkdir()
        for name, data in files.items():
            damaged = DAMAGES[number % len(DAMAGES)](dice, data) if name == beside else data
            Path(f"{folder / STORE_FILE}{name}").write_bytes(damaged)
        refused, texts = use(folder / STORE_FILE)
        later = [text for text in texts if text.startswith("later")]
        if number % len(DAMAGES) in (1, 4) or beside == "-shm":
            assert refused == 0
            # As far as it goes, and nothing out of order.
            assert later == [f"later {id_}" for id_ in range(20, 20 + len(later))]
        if beside == "-shm":
            assert len(later) == 20
        shutil.rmtree(folder)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE entries SET parent = id",
        "UPDATE entries SET parent = 11 WHERE id = 1",
        "UPDATE entries SET role = 'system' WHERE id = 3",
        "UPDATE entries SET role = x'00ff' WHERE id = 3",
        "UPDATE entries SET text = x'00ff' WHERE id = 3",
        "UPDATE entries SET id = 'three' WHERE id = 3",
        "UPDATE entries SET figures = '[]' WHERE id = 3",
        "UPDATE entries SET finish = x'00' WHERE id = 3",
        "UPDATE chats SET settings = '[]'",
        "UPDATE chats SET system = x'00'",
        "DROP TABLE entries",
        "DROP TABLE documents",
        "ALTER TABLE chats RENAME COLUMN leaf TO leave",
    ],
)
def test_values_that_cannot_be_are_one_sentence(chats: Path, tmp_path: Path, change: str) -> None:
    """A message behind itself would be read for ever, and a number is no name."""
    path = Path(shutil.copy(chats, tmp_path))
    with contextlib.closing(sqlite3.connect(path)) as raw, raw:
        raw.execute("PRAGMA ignore_check_constraints = ON")
        raw.execute(change)
    with pytest.raises(UserError, match=r"the file is damaged; move it"), Store(path) as store:
        store.load(1)


def test_a_list_is_shown_whatever_one_of_it_says(chats: Path, tmp_path: Path) -> None:
    """Times and titles that are none: the others are not to be hidden by them."""
    path = find_folders().data / STORE_FILE
    path.parent.mkdir(parents=True)
    shutil.copy(chats, path)
    with contextlib.closing(sqlite3.connect(path)) as raw, raw:
        raw.execute("UPDATE chats SET updated = 1e300, created = -1e300 WHERE id = 1")
        raw.execute("UPDATE chats SET updated = x'00', title = x'ff00' WHERE id = 3")
        raw.execute("UPDATE chats SET title = CAST(x'ff41fe' AS TEXT) WHERE id = 4")
    with Store(path) as store:
        assert len(store.chats()) == 5
        assert store.load(1).info.updated == 0.0
    for arguments in (["list"], ["list", "--json"], ["search", "message"]):
        done = execute("sessions", *arguments)
        assert (done.code, done.err) == (0, "")


def test_of_a_damaged_text_the_rest_can_be_read(chats: Path, tmp_path: Path) -> None:
    """A bit in a letter makes it no UTF-8 any more; that is no reason to hide the other letters."""
    path = Path(shutil.copy(chats, tmp_path))
    with contextlib.closing(sqlite3.connect(path)) as raw, raw:
        raw.execute("UPDATE entries SET text = CAST(x'68656cff6c6f' AS TEXT) WHERE chat = 1 AND id = 2")
    with Store(path) as store:
        assert store.load(1).thread.entries[2].text == "hel\ufffdlo"


# --- what was not sent ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data", [b"{", b"[]", b'{"text": 1', b'{"text": "x"}', b"\xff\xfe\x00", b"[" * 100_000, bytes(300)]
)
async def test_what_was_not_sent_and_is_damaged_is_set_aside(data: bytes, tmp_path: Path) -> None:
    """Somebody may make out their words in it; the sentence says where it is, and new words have a file of their own."""
    (tmp_path / UNSENT_FILE).write_bytes(data)
    app = ChatApp(lambda report: ScriptedBackend(), tmp_path)
    async with app.run_test(size=(200, 24)) as pilot:
        await until(pilot, lambda: "cannot be read; it is kept in" in seen(app))
        await until(pilot, lambda: f"{UNSENT_FILE}.damaged" in seen(app))
        await pilot.press(*"new")
    app.worker.join()
    app.close_store()
    assert (tmp_path / f"{UNSENT_FILE}.damaged").read_bytes() == data
    assert Unsent(tmp_path).take() == Draft("new")


def test_every_damaged_file_has_a_name_of_its_own(tmp_path: Path) -> None:
    """None takes the place of another, and none is read again."""
    for number in (1, 2, 3):
        (tmp_path / UNSENT_FILE).write_text(f"{{ {number}")
        unsent = Unsent(tmp_path)
        assert unsent.take() == Draft()
        assert len(unsent.damaged) == 1
        unsent.close()
    kept = sorted(path.read_text() for path in tmp_path.glob("*.damaged*"))
    assert kept == ["{ 1", "{ 2", "{ 3"]


def test_an_empty_one_says_nothing(tmp_path: Path) -> None:
    """There is nothing to be kept of it."""
    (tmp_path / UNSENT_FILE).touch()
    unsent = Unsent(tmp_path)
    assert (unsent.take(), unsent.damaged) == (Draft(), [])
    unsent.close()
    assert list(tmp_path.iterdir()) == []


# --- what can be made again -------------------------------------------------------------------------------------------

OPTIONS = Options(GREEDY, "lookup", max_tokens=8)
LONG = [7, *PROMPT * 11]


@pytest.fixture(scope="module")
def engine(tiny_llama: Path) -> Iterator[Engine]:
    with Engine(EngineSettings(tiny_llama, context_length=1024, threads=1)) as engine:
        yield engine


def test_a_damaged_state_is_read_anew(engine: Engine, tmp_path: Path, scale: Scale) -> None:
    """Bits, ends, other versions and files of something else: it is dropped, and the answer is the same."""
    states = KeptStates(tmp_path)
    answer = write(engine, OPTIONS, LONG)
    assert states.save(1, engine)
    held = list(engine.target_context.tokens)
    path, dice = states.path(1), random.Random(4)
    whole = path.read_bytes()
    newer = whole.replace(b"caches-1", b"caches-2", 1)
    damaged = [b"", b"\0", whole[:18], whole[:25], dice.randbytes(5000), newer, whole * 2]
    damaged += [DAMAGES[number % len(DAMAGES)](dice, whole) for number in range(scale(60, 2000))]
    # Where the lengths are, all bits.
    heading = whole.index(b"localspec-state-1\n")
    for place in [*range(18, 24), *range(heading - 8, heading + 40)]:
        damaged.append(whole[:place] + bytes([whole[place] ^ 1 << dice.randrange(8)]) + whole[place + 1 :])
    for data in damaged:
        path.write_bytes(data)
        again = KeptStates(tmp_path)
        if data == whole:
            continue
        assert again.load(1, engine) == 0
        assert not path.exists()
        assert engine.target_context.tokens in ([], held)
    assert write(engine, OPTIONS, LONG)[0] == answer[0]
    assert states.save(1, engine)
    assert KeptStates(tmp_path).load(1, engine) == len(engine.target_context.tokens)


def test_a_folder_in_the_place_of_a_state(engine: Engine, tmp_path: Path) -> None:
    """It stays, and the chat is answered."""
    states = KeptStates(tmp_path)
    states.path(1).mkdir()
    write(engine, OPTIONS, LONG)
    assert not states.save(1, engine)
    assert states.load(1, engine) == 0
    assert sorted(tmp_path.iterdir()) == [states.path(1)]


@pytest.mark.parametrize("data", [b"", b"\0" * 100, b"[1, 2]\n\xff\n{\n", b'"whole"\n"half', b"[" * 100_000])
def test_a_damaged_history_has_what_can_be_read(data: bytes, tmp_path: Path) -> None:
    """And what is sent is added to it."""
    file = tmp_path / "history.jsonl"
    file.write_bytes(data)
    history = History(file)
    history.add("new")
    assert History(file).older("") == "new"


@pytest.mark.parametrize("data", [b"", b"\xff", b"[]", b"{", b'{"key": 1}', b"[" * 100_000, b'{"key": {"1": "x"}}'])
def test_damaged_costs_are_measured_again(data: bytes, tmp_path: Path) -> None:
    """The file is written anew."""
    file = tmp_path / "costs.json"
    file.write_bytes(data)
    assert load_curve(file, "key") is None
    save_curve(file, "key", {1: 1.0, 2: 2.0, 5: 3.0})
    assert load_curve(file, "key") is not None
    assert json.loads(file.read_text()).keys() == {"key"}
