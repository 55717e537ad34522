"""Other models for the same chat: chosen by name or in the list, remembered, and back again where loading fails."""

from __future__ import annotations

import threading
import tomllib
from pathlib import Path

import pytest

from localspec.chat.store import STORE_FILE, Store
from localspec.chat.thread import Entry
from localspec.settings import Settings, find_folders
from localspec.tui.widgets.prompt import Prompt
from scripted import HOLD, chat, finished, seen, send, status_says, until
from shelves import Engines, install, shelf_app

SMALL, LARGE = (80, 24), (120, 40)
START = Settings(model="one", draft="none")


@pytest.fixture(autouse=True)
def shelf() -> None:
    """Three models that nobody looks into."""
    install("one", "two", "small")


def make_default(model: str) -> None:
    """In config.toml."""
    config = find_folders().config
    config.mkdir(parents=True)
    (config / "config.toml").write_text(f'model = "{model}"\ndraft = "none"\n', "utf-8")


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["small", "large"])
async def test_another_model_reads_the_chat_and_goes_on(size: tuple[int, int]) -> None:
    """/model NAME loads it; the next question goes to it with the whole conversation, and what was typed stays."""
    engines = Engines()
    app = shelf_app(engines, START)
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: "one is ready" in seen(app))
        await send(pilot, "Why?")
        await finished(pilot, 1)
        await send(pilot, "/model two")
        await until(pilot, lambda: status_says(app, "two answers from now on."))
        assert engines.named("one")[0].closed.is_set()
        await pilot.press(*"half a")
        await send(pilot, "And then?")
        await finished(pilot, 2)
        [two] = engines.named("two")
        assert [message.content for message in two.asked[0]] == ["Why?", "It says so.", "And then?"]
        assert status_says(app, "two  ")
    app.worker.join()


async def test_the_draft_model_changes_alone_and_can_be_left_out() -> None:
    """/draft NAME keeps the target; /draft none drafts without a model."""
    engines = Engines()
    app = shelf_app(engines, START)
    async with app.run_test() as pilot:
        await until(pilot, lambda: "one is ready" in seen(app))
        await send(pilot, "/draft small")
        await until(pilot, lambda: status_says(app, "one with small answers from now on."))
        await send(pilot, "/draft none")
        await until(pilot, lambda: status_says(app, "one answers from now on."))
        assert [(engine.target, engine.draft) for engine in engines.loaded] == [
            ("one", None),
            ("one", "small"),
            ("one", None),
        ]
    app.worker.join()


async def test_a_model_that_cannot_be_loaded_leaves_all_as_it_was() -> None:
    """The sentence is shown, the model before is loaded again, and neither the chat nor the typed words have changed."""
    engines = Engines(refused={"two": "two.gguf is broken [/b]; download it again."})
    app = shelf_app(engines, START)
    async with app.run_test() as pilot:
        await until(pilot, lambda: "one is ready" in seen(app))
        await send(pilot, "Why?")
        await finished(pilot, 1)
        await send(pilot, "/model two")
        chat(app).query_one(Prompt).text = "typed meanwhile"
        await until(pilot, lambda: len(engines.named("one")) == 2)
        await until(pilot, lambda: "two.gguf is broken [/b]; download it again. one is loaded again." in flat(app))
        assert chat(app).query_one(Prompt).text == "typed meanwhile"
        await pilot.press("enter")
        await finished(pilot, 2)
        assert [message.content for message in engines.named("one")[1].asked[0]][-1] == "typed meanwhile"
        assert app.chat.settings == {}
    app.worker.join()


def flat(app: object) -> str:
    """The screen with every line end a blank."""
    return " ".join(seen(app).split())  # type: ignore[arg-type]


async def test_an_incompatible_draft_model_leaves_the_pair_as_it_was() -> None:
    """The same for a draft model."""
    engines = Engines(refused={"small": "small has another vocabulary than one; choose another draft model."})
    app = shelf_app(engines, START)
    async with app.run_test() as pilot:
        await until(pilot, lambda: "one is ready" in seen(app))
        await send(pilot, "/draft small")
        await until(pilot, lambda: "another vocabulary" in flat(app) and len(engines.loaded) == 2)
        await until(pilot, lambda: chat(app)._loaded is not None)
        assert engines.loaded[1].draft is None
    app.worker.join()


async def test_an_answer_that_is_being_written_is_stopped_and_kept() -> None:
    """It is said, what is written stays, and the other model answers what comes next."""
    engines = Engines(scripts={"one": [["Half an ", HOLD, "answer."]]})
    app = shelf_app(engines, START)
    async with app.run_test() as pilot:
        await until(pilot, lambda: "one is ready" in seen(app))
        await send(pilot, "Why?")
        await until(pilot, lambda: "Half an" in seen(app))
        engines.wait_for = threading.Event()
        await send(pilot, "/model two")
        await until(pilot, lambda: status_says(app, "The answer is stopped, because other models are loaded"))
        await finished(pilot, 1)
        assert "Half an" in seen(app)
        engines.wait_for.set()
        await until(pilot, lambda: engines.named("two") and chat(app)._loaded)
        await send(pilot, "Go on")
        await finished(pilot, 2)
        assert engines.named("two")[0].asked[0][1].content == "Half an "
    app.worker.join()


async def test_the_last_of_several_choices_counts() -> None:
    """A loading that is no longer wanted is given up, and nothing is said of it."""
    engines = Engines()
    app = shelf_app(engines, START)
    async with app.run_test() as pilot:
        await until(pilot, lambda: "one is ready" in seen(app))
        engines.wait_for = threading.Event()
        await send(pilot, "/model two")
        await until(pilot, lambda: chat(app)._in_force.model == "two")
        await send(pilot, "/model small")
        await until(pilot, lambda: chat(app)._in_force.model == "small")
        engines.wait_for.set()
        await until(pilot, lambda: status_says(app, "small answers from now on."))
        assert [engine.target for engine in engines.loaded] == ["one", "small"]
    app.worker.join()


async def test_the_choice_belongs_to_the_chat(tmp_path: Path) -> None:
    """A new chat goes on with it; another chat has its own; and it is there again after the app was left."""
    engines = Engines()
    app = shelf_app(engines, START, data=tmp_path)
    async with app.run_test() as pilot:
        await until(pilot, lambda: "one is ready" in seen(app))
        await send(pilot, "First")
        await finished(pilot, 1)
        await pilot.press("ctrl+n")
        await send(pilot, "/model two")
        await until(pilot, lambda: status_says(app, "two answers"))
        await send(pilot, "Second")
        await finished(pilot, 1)
        await chat(app).open_chat(1)
        await until(pilot, lambda: len(engines.named("one")) == 2 and chat(app)._loaded)
        await pilot.press("ctrl+n")
        await until(pilot, lambda: app.chat.id is None)
        assert chat(app)._in_force.model == "one"
        await chat(app).open_chat(2)
        await until(pilot, lambda: len(engines.named("two")) == 2 and chat(app)._loaded)
    app.worker.join()
    app.close_store()
    with Store(tmp_path / STORE_FILE) as store:
        assert (store.load(1).settings, store.load(2).settings) == ({}, {"model": "two", "draft": "none"})
    given = shelf_app(engines, START, data=tmp_path, goes_on=True)
    async with given.run_test() as pilot:
        # A model that is named on the command line is what the person wants now.
        await until(pilot, lambda: status_says(given, "one"))
    given.worker.join()
    given.close_store()
    make_default("one")
    again = shelf_app(engines, START, data=tmp_path, goes_on=True)
    async with again.run_test() as pilot:
        await until(pilot, lambda: status_says(again, "two"))
    again.worker.join()
    again.close_store()


async def test_a_model_of_an_old_chat_that_is_gone_is_no_obstacle(tmp_path: Path) -> None:
    """The chat opens with the model of the start, and says so."""
    with Store(tmp_path / STORE_FILE) as store:
        number = store.create("lost")
        store.save(number, Entry(1, None, "user", "Hello?"))
        store.configure(number, None, {"model": "lost"})
    make_default("one")
    engines = Engines(refused={"lost": "No model called lost is installed."})
    app = shelf_app(engines, START, data=tmp_path, goes_on=True)
    async with app.run_test() as pilot:
        await until(pilot, lambda: "No model called lost is installed. one is loaded again." in flat(app))
        await until(pilot, lambda: chat(app)._loaded is not None)
        assert app.chat.settings == {"model": "lost"}
    app.worker.join()
    app.close_store()


async def test_a_default_goes_into_config_toml_and_holds_for_new_chats() -> None:
    """f5 in the list writes model and draft, and leaves the rest of the file alone."""
    config = find_folders().config
    config.mkdir(parents=True)
    (config / "config.toml").write_text("# mine\ntop_k = 20\n", "utf-8")
    engines = Engines()
    app = shelf_app(engines, START)
    async with app.run_test() as pilot:
        await until(pilot, lambda: "one is ready" in seen(app))
        screen = chat(app)
        wanted = Settings(model="two", draft="small")
        await screen.use(wanted, "default")
        await until(pilot, lambda: status_says(app, "two with small answers"))
        assert tomllib.loads((config / "config.toml").read_text()) == {"top_k": 20, "model": "two", "draft": "small"}
        assert (app.chat.settings, screen._start.model) == ({}, "two")
    app.worker.join()


async def test_names_are_completed_and_wrong_ones_explained() -> None:
    """Installed models first, then the pairs of the catalog; a wrong name is one sentence and costs nothing."""
    engines = Engines()
    app = shelf_app(engines, START)
    async with app.run_test() as pilot:
        await until(pilot, lambda: "one is ready" in seen(app))
        await pilot.press(*"/model tw")
        await until(pilot, lambda: "installed" in seen(app))
        await pilot.press("tab")
        assert chat(app).query_one(Prompt).text == "/model two"
        chat(app).query_one(Prompt).text = ""
        await pilot.press(*"/model qwen3-1")
        await until(pilot, lambda: "with qwen3-0.6b" in seen(app))
        chat(app).query_one(Prompt).text = ""
        await pilot.press(*"/draft n")
        await until(pilot, lambda: "no draft model" in seen(app))
        await pilot.press("escape")
        await send(pilot, "/model threee")
        await until(pilot, lambda: status_says(app, "No model called threee is installed"))
        assert len(engines.loaded) == 1
    app.worker.join()
