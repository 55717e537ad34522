"""Two apps and a `run` on one profile; models and settings that change while they are in use."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
import sharing
from sharing import CHANGES, MOMENTS
from terminals import Terminal
from test_native_crashes import OPTIONS, Report, written

import hub_server
import tiny
from command import PATIENCE, command, execute, surroundings
from hub_server import HubServer, model_content
from localspec.chat.service import Wanted
from localspec.chat.store import STORE_FILE, Store
from localspec.engine.errors import UserError
from localspec.engine.process import EngineDied
from localspec.hub.origins import ORIGINS_FILE, read_origins
from localspec.settings import find_folders
from localspec.tui.app import ChatApp
from localspec.tui.backend import process_loader
from localspec.tui.downloads import Downloads
from localspec.tui.widgets.prompt import Prompt
from localspec.whole_file import put_entry, read_entries
from scripted import chat, finished, loaded, seen, send, until

Scale = Callable[[int, int], int]
Start = Callable[..., Terminal]
NAME, SIZE = "model-Q4_0.gguf", 9_000_000


@pytest.fixture
def start(tiny_llama: Path) -> Iterator[Start]:
    """Begins an app of this profile in a terminal of its own, when its model is loaded."""
    opened: list[Terminal] = []

    def begin(*options: str) -> Terminal:
        words = command("-m", tiny_llama, "--temp", "0", "--drafter", "none", "--max-tokens", "12", *options)
        opened.append(Terminal(words, surroundings()))
        opened[-1].until(lambda: "context 0" in opened[-1].shown)
        return opened[-1]

    yield begin
    for terminal in opened:
        terminal.close()


def chats() -> list[list[tuple[str, str]]]:
    """Of every chat its messages, in the order in which they were written: who, and what."""
    try:
        with Store(find_folders().data / STORE_FILE) as store:
            threads = [store.load(info.id).thread for info in store.chats()]
    except UserError:
        return []
    return [[(entry.role, entry.text) for entry in thread.entries.values()] for thread in threads]


def answered(words: str) -> bool:
    """Whether there is a message of exactly these words, and an answer after it that has come to its end."""
    with Store(find_folders().data / STORE_FILE) as store:
        for info in store.chats():
            entries = store.load(info.id).thread.entries
            asked = [entry.id for entry in entries.values() if entry.text == words]
            if any(entry.parent in asked and entry.text and entry.finish for entry in entries.values()):
                return True
    return False


def say(app: Terminal, *messages: str) -> None:
    """Send one after the other, each when the one before is answered."""
    for words in messages:
        app.type(words.encode() + b"\r")
        app.until(lambda words=words: answered(words))  # type: ignore[misc]


@pytest.mark.terminal
def test_two_apps_and_a_run_on_one_profile(start: Start, tiny_llama: Path, scale: Scale) -> None:
    """No turn is lost or there twice, and each sees the other's chat."""
    turns = scale(3, 20)
    one, two = start(), start()
    words = command("run", "-m", tiny_llama, "--max-tokens", "400", "Hello")
    run = subprocess.Popen(words, env=surroundings(), stdout=subprocess.DEVNULL)
    said = {"one": [f"first {n}" for n in range(turns)], "two": [f"second {n}" for n in range(turns)]}
    for first, second in zip(said["one"], said["two"], strict=True):
        one.type(first.encode() + b"\r")
        two.type(second.encode() + b"\r")
        one.until(lambda first=first: answered(first))  # type: ignore[misc]
        two.until(lambda second=second: answered(second))  # type: ignore[misc]
    assert run.wait(PATIENCE) == 0
    found = sorted(chats(), key=lambda messages: messages[0])
    assert [[text for role, text in messages if role == "user"] for messages in found] == [said["one"], said["two"]]
    assert [[role for role, _ in messages] for messages in found] == [["user", "assistant"] * turns] * 2
    for app, other in ((one, "second 0"), (two, "first 0")):
        app.type(b"\x12")
        app.until(lambda app=app, other=other: other in app.shown)  # type: ignore[misc]
        app.type(b"\x1b")
    for app in (one, two):
        app.type(b"\x11")
        assert app.ended() == 0


@pytest.mark.terminal
def test_two_apps_in_the_same_chat_make_branches(start: Start) -> None:
    """Both go on where they have read it: whose words come second does not take the first one's place."""
    one = start()
    say(one, "where it begins")
    two = start("-c")
    two.until(lambda: "where it begins" in two.shown)
    say(one, "the first goes on")
    say(two, "the second goes on")
    say(one, "and again")
    (messages,) = chats()
    assert sorted(text for role, text in messages if role == "user") == sorted(
        ["where it begins", "the first goes on", "the second goes on", "and again"]
    )
    assert len(messages) == 8
    for app in (one, two):
        app.type(b"\x11")
        assert app.ended() == 0


# Files that all of them write.


@pytest.mark.parametrize("kind", ["costs", "audits", "settings", "origins"])
def test_what_two_write_into_one_file_is_all_there(kind: str, tmp_path: Path, scale: Scale) -> None:
    """And it is whole at every moment."""
    count, writers = scale(25, 300), ("a", "b")
    arguments = [sys.executable, sharing.__file__, kind, str(tmp_path)]
    processes = [subprocess.Popen([*arguments, writer, str(count)], env=surroundings()) for writer in writers]
    assert [process.wait(PATIENCE) for process in processes] == [0, 0]
    expected = {f"{writer}{number}" for writer in writers for number in range(count)}
    if kind == "origins":
        assert set(read_origins(tmp_path)) == expected
        assert {path.name for path in tmp_path.iterdir()} == {*expected, ORIGINS_FILE}
        return
    if kind == "settings":
        lines = (tmp_path / kind).read_text().splitlines()
        assert sorted(line.partition(" ")[0] for line in lines) == sorted(expected)
    else:
        assert set(json.loads((tmp_path / kind).read_text())) == expected
    assert [path.name for path in tmp_path.iterdir()] == [kind]


def test_nobody_waits_for_ever_for_one_that_was_stopped(tmp_path: Path) -> None:
    """A process in the middle of a change may be stopped, with ctrl+z for example: the others go on."""
    arguments = [sys.executable, sharing.__file__, "hold", str(tmp_path)]
    with subprocess.Popen(arguments, env=surroundings(), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == b"held\n"
        writing = threading.Thread(target=put_entry, args=(tmp_path / "costs", "mine", 1), daemon=True)
        writing.start()
        writing.join(PATIENCE)
        assert not writing.is_alive()
        assert read_entries(tmp_path / "costs") == {"mine": 1}
        holder.kill()


# Downloads.


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubServer]:
    """A hub on loopback, with one model."""
    with hub_server.serving() as server:
        hub_server.isolate_hub(monkeypatch, tmp_path_factory.mktemp("home"), server.url)
        server.add("user/repo", {NAME: model_content(SIZE)})
        yield server


def test_an_app_and_a_command_that_download_the_same_file(hub: HubServer) -> None:
    """It comes once; the second says that it waits, and has it then."""
    go, begun = threading.Event(), threading.Event()

    def sent() -> None:
        # Who comes first: up to 4 MiB are looked at beforehand, and by the other one as well.
        if hub.served > 5_500_000 and not begun.is_set():
            begun.set()
            go.wait(PATIENCE)

    hub.sent = sent
    downloads = Downloads(find_folders())
    download = downloads.pull("user/repo")
    assert begun.wait(PATIENCE)
    arguments = command("pull", "user/repo")
    with subprocess.Popen(arguments, env=surroundings(), stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        lines = []
        for line in process.stderr:
            lines.append(line)
            if "so this one waits for it" in line:
                go.set()
        assert process.wait(PATIENCE) == 0
    assert go.is_set(), lines
    limit = time.monotonic() + PATIENCE
    while download.is_running:
        assert time.monotonic() < limit
        time.sleep(0.01)
    downloads.close()
    assert download.sentence == "user/repo is here."
    assert (find_folders().models / NAME).stat().st_size == SIZE
    whole = [request for request in hub.asked("store") if request.headers.get("range", "-").endswith("-")]
    assert len(whole) == 1


@pytest.mark.parametrize(
    "content", [b"<html>no such page</html>", b"GGUF", b""], ids=["a page", "cut short", "nothing"]
)
def test_what_comes_as_promised_and_is_no_model_is_said(content: bytes, hub: HubServer) -> None:
    """By the command and by the app; and it can be deleted."""
    hub.add("user/other", {"m-Q4_0.gguf": hub_server.Content(content + b" " * 100)})
    outcome = execute("pull", "--quiet", "user/other")
    assert outcome.code == 1
    assert outcome.sentence.startswith("m-Q4_0 is here as the hub has it, but cannot be used (m-Q4_0.gguf ")
    downloads = Downloads(find_folders())
    download = downloads.pull("user/other")
    limit = time.monotonic() + PATIENCE
    while download.is_running:
        assert time.monotonic() < limit
        time.sleep(0.01)
    assert download.sentence == outcome.sentence
    assert not download.models
    assert execute("rm", "--yes", "m-Q4_0").code == 0


# Models.


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A model of one's own, which may be broken."""
    return tiny.llama(tmp_path / "model.gguf", chat_template=tiny.CHAT_TEMPLATE)


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """Another one of the same measures."""
    return tiny.llama(tmp_path / "other.gguf", seed=9, chat_template=tiny.CHAT_TEMPLATE)


def is_one_sentence(error: Exception) -> bool:
    words = str(error)
    return words.endswith(".") and "\n" not in words and "Traceback" not in words


def answer_of(path: Path, log: Path) -> str:
    """What a model says to HELLO, in a process of its own."""
    text: list[str] = []
    backend = process_loader(Wanted(partial(sharing.prepare, path), OPTIONS), log)(Report())
    try:
        written(backend, text)
    finally:
        backend.close()
    return "".join(text)


@pytest.mark.parametrize("how", CHANGES)
def test_a_model_that_changes_while_it_is_loaded(how: str, model: Path, other: Path, tmp_path: Path) -> None:
    """One that goes, or another under its name, changes nothing for who has it open. Content that is taken away ends the
    engine, with one sentence."""
    whole, log = answer_of(model, tmp_path / "log"), tmp_path / "log"
    backend, text = process_loader(Wanted(partial(sharing.prepare, model), OPTIONS), log)(Report()), list[str]()
    try:
        sharing.change(model, how, other)
        written(backend, text)
    except EngineDied as error:
        assert is_one_sentence(error)
        assert how in ("emptied", "cut")
    else:
        assert how not in ("emptied", "cut")
        if how != "overwritten":
            assert "".join(text) == whole
    finally:
        backend.close()
    if how in ("replaced", "overwritten"):
        assert answer_of(model, log) == answer_of(other, log) != whole
        return
    with pytest.raises(UserError) as caught:
        answer_of(model, log)
    assert is_one_sentence(caught.value)


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("how", CHANGES)
def test_a_model_that_changes_while_it_is_being_loaded(
    how: str, moment: str, model: Path, other: Path, tmp_path: Path
) -> None:
    """It answers, or one sentence says that it cannot; never something in between."""
    text, steps = list[str](), 0
    prepare = partial(sharing.prepare_badly, model, how, other, moment)
    try:
        backend = process_loader(Wanted(prepare, OPTIONS), tmp_path / "log")(Report())
        try:
            written(backend, text)
            steps = len(text)
        finally:
            backend.close()
    except UserError as error:
        assert is_one_sentence(error)
        assert how not in ("replaced", "overwritten")
    else:
        assert steps > 0
    assert not model.exists() or model.read_bytes() != tiny.llama(tmp_path / "again.gguf").read_bytes()


async def test_the_chat_outlives_its_model(model: Path, other: Path, tmp_path: Path) -> None:
    """The file loses its content in the middle of a chat: no word is lost, and a whole file goes on."""
    whole = model.read_bytes()
    app = ChatApp(process_loader(Wanted(partial(sharing.prepare, model), OPTIONS), tmp_path / "log"), tmp_path / "data")
    async with app.run_test(size=(100, 30)) as pilot:
        await loaded(pilot)
        await send(pilot, "Hello")
        await finished(pilot, 1)
        sharing.change(model, "emptied", other)
        await send(pilot, "and now")
        screen = chat(app)
        await until(pilot, lambda: screen._is_gone and screen._asked is None)
        assert "has stopped working" in seen(app)
        await pilot.press("ctrl+r")
        await until(pilot, lambda: "model.gguf is empty" in seen(app) and screen._is_gone)
        model.write_bytes(whole)
        await pilot.press("ctrl+r")
        await until(pilot, lambda: screen._loaded)
        words = [entry.text for entry in screen._chat.thread.path()]
        if "and now" not in words:
            assert screen.query_one(Prompt).text == "and now"
            await send(pilot, "and now")
            await until(pilot, lambda: screen._asked is None and len(screen._chat.thread.path()) == 4)
        assert [entry.text for entry in screen._chat.thread.path() if entry.role == "user"] == ["Hello", "and now"]
    app.worker.join()
    app.close_store()


# Settings.


def config() -> Path:
    """The person's file."""
    folder = find_folders().config
    folder.mkdir(parents=True, exist_ok=True)
    return folder / "config.toml"


@pytest.mark.terminal
def test_settings_that_change_while_two_apps_run(start: Start) -> None:
    """What a person or the other app has written stays, comments too; a file that is broken is not written over."""
    file = config()
    file.write_text("# mine\ntop_k = 20  # few\n")
    one, two = start(), start()
    file.write_text("# mine\ntop_k = 30  # more\nmin_p = 0.1\n")
    save_temperature(one, b"0.77")
    one.until(lambda: "temp = 0.77" in file.read_text())
    assert file.read_text() == "# mine\ntop_k = 30  # more\nmin_p = 0.1\ntemp = 0.77\n"
    save_temperature(two, b"0.88")
    two.until(lambda: "temp = 0.88" in file.read_text())
    assert file.read_text() == "# mine\ntop_k = 30  # more\nmin_p = 0.1\ntemp = 0.88\n"
    broken = "# mine\ntop_k = \n"
    file.write_text(broken)
    save_temperature(one, b"0.99")
    one.until(lambda: "is not TOML" in " ".join(one.shown.replace("│", " ").split()))
    assert file.read_text() == broken
    outcome = execute("models", "--json")
    assert outcome.code in (0, 1)
    assert "Traceback" not in outcome.err


def save_temperature(app: Terminal, number: bytes) -> None:
    """In the settings, as the default for all chats."""
    app.type(b"\x0f")
    app.until(lambda: "longest answer" in app.shown)

    def typed() -> bool:
        # Before the first field has the focus it goes nowhere, and Textual obeys ctrl+u behind the text of the same read.
        app.type(b"\x15")
        app.read(0.5)
        app.type(number)
        app.read(0.5)
        return number.decode() in app.shown

    app.until(typed)
    app.type(b"\x1b[15~")
