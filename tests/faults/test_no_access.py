"""Files and folders that may not be read or written: a sentence each, and nothing that was typed or written is lost."""

from __future__ import annotations

import contextlib
import logging
import os
import subprocess
from pathlib import Path

import pytest
from kept_chat import opened, prompt, said, saved, shown, unsent
from modes import bound_by_modes, without
from small_disk import mounted

import hub_server
from command import call
from hub_fetch import NAME, Fetch
from localspec.chat.kept_states import KeptStates
from localspec.chat.store import STORE_FILE, Store
from localspec.chat.thread import Entry
from localspec.engine.engine import Engine, EngineSettings, Options
from localspec.engine.measuring import load_curve, save_curve
from localspec.logs import LOG_FILE, log_to_file
from localspec.settings import find_folders
from localspec.tui.history import History
from localspec.tui.unsent import UNSENT_FILE, Draft, Unsent
from rewriting import Answers
from scripted import finished, send, until
from tiny_checks import GREEDY, PROMPT, write


def fill(path: Path) -> bytes:
    """A file with one chat; its bytes."""
    with Store(path) as store:
        store.save(store.create("model"), Entry(1, None, "user", "old"))
    return path.read_bytes()


# --- the chats --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [0o500, 0o600, 0o000])
async def test_a_folder_without_access_and_then_with_it(mode: int, tmp_path: Path) -> None:
    """The app starts, says so, and saves everything when it may."""
    data = tmp_path / "data"
    fill(data / STORE_FILE)
    with contextlib.ExitStack() as stack:
        stack.enter_context(without(data, mode))
        async with opened(data, ["first"]) as (pilot, _):
            app = pilot.app
            await send(pilot, "one")
            await finished(pilot, 1)
            await until(pilot, lambda: "This chat is not saved" in said(app))
            await pilot.press(*"two")
            assert shown(app) == ["one", "first"]
            assert prompt(app).text == "two"
            stack.close()
            await until(pilot, lambda: "The chat is saved again." in said(app))
    assert saved(data) == ["one", "first"]
    assert unsent(data) == "two"
    with Store(data / STORE_FILE) as store:
        assert len(store.chats()) == 2


@pytest.mark.parametrize("mode", [0o400, 0o000, 0o644])
def test_a_file_of_ones_own_is_made_usable(mode: int, tmp_path: Path) -> None:
    """A copy from a read-only medium is read-only itself, and is this user's all the same."""
    path = tmp_path / "data" / STORE_FILE
    fill(path)
    with without(path, mode), Store(path) as store:
        assert store.create("model") == 2
        assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
@pytest.mark.parametrize("mode", [0o444, 0o400])
async def test_a_file_of_somebody_else_is_used_once_it_is_given_back(mode: int, tmp_path: Path) -> None:
    """As after a session with sudo. Opened for reading only, it could not be written before the next start."""
    path = tmp_path / "data" / STORE_FILE
    fill(path)
    os.chown(path, 65534, 65534)
    with contextlib.ExitStack() as stack:
        path.chmod(mode)
        stack.enter_context(bound_by_modes())
        async with opened(path.parent, ["first"]) as (pilot, _):
            await until(pilot, lambda: "This chat is not saved yet" in said(pilot.app))
            await send(pilot, "one")
            await finished(pilot, 1)
            stack.close()
            os.chown(path, 0, 0)
            await until(pilot, lambda: "The chat is saved again." in said(pilot.app))
    assert saved(path.parent) == ["one", "first"]


async def test_access_that_is_lost_while_an_answer_is_written(tmp_path: Path) -> None:
    """The database is open and goes on; where it cannot, that is said, and the words are saved later."""
    data = tmp_path / "data"
    async with opened(data, ["first"], ["second"]) as (pilot, _):
        await send(pilot, "one")
        await finished(pilot, 1)
        with without(data, 0o000):
            await send(pilot, "two")
            await finished(pilot, 2)
            assert shown(pilot.app) == ["one", "first", "two", "second"]
    assert saved(data) == ["one", "first", "two", "second"]


@pytest.mark.parametrize(("file", "folder"), [(0o600, 0o500), (0o600, 0o000)])
@pytest.mark.parametrize("command", ["list", "show 1", "export 1", "search old", "rm 1"])
def test_the_command_line_says_it_in_one_sentence(file: int, folder: int, command: str) -> None:
    """Nothing is written."""
    path = find_folders().data / STORE_FILE
    before = fill(path)
    with without(path.parent, folder):
        outcome = call("sessions", *command.split())
    assert (outcome.code, outcome.out) == (1, "")
    assert "permission" in outcome.sentence
    assert path.read_bytes() == before


async def test_a_disk_that_can_only_be_read(tmp_path: Path) -> None:
    """As with a memory card, or a disk that the system has found damaged: the app can be used, and says what it cannot."""
    disk = tmp_path / "disk"
    disk.mkdir()
    with mounted(disk, "size=4m"):
        before = fill(disk / STORE_FILE)
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        async with opened(disk, ["first"]) as (pilot, _):
            app = pilot.app
            await until(pilot, lambda: "This chat is not saved yet" in said(app))
            await send(pilot, "one")
            await finished(pilot, 1)
            assert shown(app) == ["one", "first"]
            assert (disk / STORE_FILE).read_bytes() == before
            subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)
            await until(pilot, lambda: "The chat is saved again." in said(app))
        assert saved(disk) == ["one", "first"]


# --- what was not sent ------------------------------------------------------------------------------------------------


def test_unsent_words_that_may_not_be_read_stay(tmp_path: Path) -> None:
    """They are there when they may be read again, beside what was typed meanwhile."""
    before = Unsent(tmp_path)
    before.keep(Draft("old"))
    before.close()
    with without(tmp_path / UNSENT_FILE, 0o000):
        kept = Unsent(tmp_path)
        assert kept.take() == Draft()
        assert kept.keep(Draft("new"))
        kept.close()
    assert unsent(tmp_path) == "old\nnew"


async def test_words_that_cannot_be_written_down_are_said_to_be(tmp_path: Path) -> None:
    """Once; what was typed stays in the prompt."""
    data = tmp_path / "data"
    async with opened(data) as (pilot, _):
        with without(data, 0o500):
            await pilot.press(*"words")
            await until(pilot, lambda: "What you type cannot be written down" in said(pilot.app))
            assert prompt(pilot.app).text == "words"
    assert unsent(data) == "words"


# --- settings, models and files of one's own --------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [["settings"], ["run", "hello"], ["models"]])
def test_settings_that_may_not_be_read_are_one_sentence(arguments: list[str]) -> None:
    config = find_folders().config / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text("temp = 0.5\n")
    with without(config, 0o000):
        outcome = call(*arguments)
    if outcome.code != 0:
        assert outcome.code in (1, 2)
        assert outcome.sentence


def test_a_model_that_may_not_be_read_is_one_sentence(tiny_llama: Path, tmp_path: Path) -> None:
    model = tmp_path / "model.gguf"
    model.write_bytes(tiny_llama.read_bytes())
    with without(model, 0o000):
        outcome = call("run", "-m", model, "hello")
    assert outcome.code == 1
    assert str(model) in outcome.sentence


def test_a_folder_for_models_that_may_not_be_written_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It names the folder; nothing is left in it."""
    folder = tmp_path / "models"
    folder.mkdir()
    with hub_server.serving() as hub:
        hub_server.isolate_hub(monkeypatch, tmp_path / "home", hub.url)
        hub.add("user/repo", {NAME: hub_server.long_content(100_000)})
        fetch = Fetch(folder)
        with without(folder, 0o500):
            sentence = fetch.refusal()
    assert sentence.startswith(f"{NAME} could not be saved in {folder} (Permission denied)")
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(("file", "folder"), [(0o400, 0o700), (0o000, 0o700), (0o600, 0o500)])
def test_a_text_that_may_not_be_replaced_is_not_rewritten(
    file: int, folder: int, tiny_llama: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before a model is loaded and time is spent."""
    path = tmp_path / "texts" / "text.md"
    path.parent.mkdir()
    path.write_text("a text\n")
    answers = Answers(str.upper)
    monkeypatch.setattr("localspec.rewrite._Writer.ask", lambda _, request, on_prompt: answers(request, on_prompt))
    with without(path.parent, folder), without(path, file):
        outcome = call("rewrite", "--quiet", "-m", tiny_llama, "-i", "Shout.", "--in-place", path)
    assert outcome.code in (1, 2)
    assert (outcome.out, answers.requests) == ("", [])
    assert str(path) in outcome.sentence or str(path.parent) in outcome.sentence
    assert path.read_text() == "a text\n"
    assert list(path.parent.iterdir()) == [path]


async def test_an_export_into_a_folder_without_access_is_one_sentence(tmp_path: Path) -> None:
    place = tmp_path / "elsewhere"
    place.mkdir()
    async with opened(tmp_path / "data", ["first"]) as (pilot, _):
        await send(pilot, "one")
        await finished(pilot, 1)
        with without(place, 0o500):
            await send(pilot, f"/export {place}/chat.md")
            await until(pilot, lambda: "chat.md cannot" in said(pilot.app))
    assert list(place.iterdir()) == []


# --- what can be made again -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [0o500, 0o000])
def test_a_cache_without_access_is_done_without(
    mode: int, tiny_llama: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Costs and states: the answer is the same."""
    folder = tmp_path / "cache"
    folder.mkdir()
    costs = folder / "costs.json"
    save_curve(costs, "old", {1: 1.0, 2: 2.0, 5: 3.0})
    states = KeptStates(folder)
    with Engine(EngineSettings(tiny_llama, context_length=1024, threads=1)) as engine:
        answer = write(engine, Options(GREEDY, "lookup", max_tokens=4), [7, *PROMPT * 11])[0]
        with without(folder, mode), caplog.at_level(logging.WARNING):
            assert not states.save(1, engine)
            assert states.load(1, engine) == 0
            save_curve(costs, "new", {1: 1.0, 2: 2.0, 5: 3.0})
            assert write(engine, Options(GREEDY, "lookup", max_tokens=4), [7, *PROMPT * 11])[0] == answer
    assert load_curve(costs, "old")
    assert load_curve(costs, "new") is None
    assert list(folder.iterdir()) == [costs]


def test_a_log_and_a_history_without_access_are_done_without(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Nothing is said on the screen, and what was sent can be sent again as long as the app runs."""
    logger = logging.getLogger("localspec.no-access")
    folder = tmp_path / "folder"
    folder.mkdir()
    with without(folder, 0o500):
        log_to_file(folder / "logs", logger.name)
        logger.error("something")
        history = History(folder / "history.jsonl")
        history.add("sent")
        assert history.older("") == "sent"
    assert list(folder.iterdir()) == []
    assert not (folder / "logs" / LOG_FILE).exists()
    assert "something" not in "".join(capfd.readouterr())
    for handler in list(logger.handlers):
        handler.close()
        logger.removeHandler(handler)
