"""The list of models: what is installed, what the catalog offers, and what can be done with each."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from textual.pilot import Pilot

import tiny
from hub_server import Content, HubServer, model_content
from localspec.hub.machine import laptop
from localspec.settings import Settings, find_folders
from localspec.tui.app import ChatApp
from localspec.tui.screens.models import ModelsScreen
from localspec.tui.widgets.model_list import ModelList
from scripted import chat, loaded, said, seen, status_says, until
from shelves import DRAFT, PAIR, REPOSITORY, TARGET, Engines, hold, install, shelf_app, stock

SIZES = pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=["small", "large"])
START = Settings(model="one", draft="none")


@pytest.fixture
def models(tmp_path: Path) -> tuple[Path, Path]:
    """A target and its draft model, as they would come from the hub."""
    target = tiny.llama(tmp_path / f"{TARGET}.gguf", chat_template=tiny.CHAT_TEMPLATE)
    return target, tiny.llama(tmp_path / f"{DRAFT}.gguf", layers=1, width=32)


@pytest.fixture
def engines(hub: HubServer, models: tuple[Path, Path]) -> Iterator[Engines]:
    """The hub has the pair, and a model called one is installed."""
    stock(hub, *(Content(file.read_bytes()) for file in models))
    install("one", content=models[0].read_bytes())
    yield Engines()


async def opened(pilot: Pilot[None], app: ChatApp) -> ModelsScreen:
    """The list, with verdicts."""
    await until(pilot, lambda: chat(app)._loaded)
    await pilot.press("f7")
    await until(pilot, lambda: "GB free" in seen(app))
    assert isinstance(app.screen, ModelsScreen)
    return app.screen


async def find(pilot: Pilot[None], words: str) -> None:
    """Search, and go to the first that is found."""
    await pilot.press(*["slash" if letter == "/" else "colon" if letter == ":" else letter for letter in words], "down")
    await until(pilot, lambda: pilot.app.screen.query_one(ModelList).chosen is not None)


@SIZES
async def test_everything_is_listed_with_what_there_is_to_know(engines: Engines, size: tuple[int, int]) -> None:
    """Installed models first, then the pairs with verdict and bytes; details of the marked one; the search finds."""
    app = shelf_app(engines, START, machine=laptop(8))
    async with app.run_test(size=size) as pilot:
        screen = await opened(pilot, app)
        assert screen.query_one(ModelList).chosen.name == "one"  # type: ignore[union-attr]
        await until(pilot, lambda: "one target fits 0 MB" in said(app))
        await find(pilot, "tiny-8m")
        await until(pilot, lambda: "why this draft tiny-1m: 8 times smaller." in said(app))
        for words in ("license MIT", "context 2,048 tokens", "good at nothing [at all]"):
            assert words in said(app)
        await pilot.press("up", *["backspace"] * 7, *"70b")
        await until(pilot, lambda: "llama-3.3-70b does not fit" in said(app))
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is chat(app))
    app.worker.join()


@SIZES
async def test_a_pair_is_downloaded_used_and_deleted(engines: Engines, size: tuple[int, int]) -> None:
    """p fetches both files; enter answers with them; what is loaded is not deleted, what is not is, after a question."""
    app = shelf_app(engines, START)
    async with app.run_test(size=size) as pilot:
        await opened(pilot, app)
        await find(pilot, PAIR)
        await pilot.press("p")
        await until(pilot, lambda: f"{PAIR} is here." in seen(app))
        folder = find_folders().models
        assert {path.name for path in folder.glob("*.gguf")} == {"one.gguf", f"{TARGET}.gguf", f"{DRAFT}.gguf"}
        await until(pilot, lambda: app.screen.query_one(ModelList).chosen.is_here)  # type: ignore[union-attr,attr-defined]
        await pilot.press("enter")
        await until(pilot, lambda: status_says(app, f"{PAIR} answers from now on."))
        assert app.chat.settings == {"model": PAIR}
        await pilot.press("f7")
        await until(pilot, lambda: "GB free" in seen(app))
        await find(pilot, "one")
        await pilot.press("delete")
        await until(pilot, lambda: "Delete one?" in seen(app))
        await pilot.press("enter")
        await until(pilot, lambda: "Delete one?" not in seen(app))
        assert (folder / "one.gguf").exists()
        await pilot.press("delete")
        await until(pilot, lambda: "Delete one?" in seen(app))
        await pilot.press("down", "enter")
        await until(pilot, lambda: "one deleted, which frees" in seen(app))
        assert not (folder / "one.gguf").exists()
    app.downloads.close()  # type: ignore[union-attr]
    app.worker.join()


async def test_what_is_loaded_is_not_deleted(engines: Engines) -> None:
    """One sentence says what to do first."""
    app = shelf_app(engines, START)
    async with app.run_test() as pilot:
        await opened(pilot, app)
        await pilot.press("delete")
        await until(pilot, lambda: "one is loaded: use another model before you delete it." in seen(app))
        assert (find_folders().models / "one.gguf").exists()
    app.worker.join()


async def test_what_is_being_loaded_is_not_deleted(engines: Engines) -> None:
    """Neither it nor the one before, which comes back where that fails; the draft model of a pair is part of it."""
    target, draft = install(TARGET, DRAFT)
    for path in (target, draft):
        path.write_bytes((find_folders().models / "one.gguf").read_bytes())
    app = shelf_app(engines, START)
    async with app.run_test() as pilot:
        await loaded(pilot)
        engines.wait_for = threading.Event()
        await chat(app).use(Settings(model=PAIR), "chat")
        await pilot.press("f7")
        await until(pilot, lambda: "GB free" in seen(app))
        for words in (TARGET, DRAFT, "one"):
            await pilot.press("up", *["backspace"] * 20)
            await find(pilot, words.lower())
            await pilot.press("delete")
            sentence = f"{words} is being loaded: use another model before you delete it."
            await until(pilot, lambda sentence=sentence: sentence in said(app))  # type: ignore[misc]
        engines.wait_for.set()
        await until(pilot, lambda: chat(app)._loaded)
        # The one before is free now.
        await pilot.press("delete")
        await until(pilot, lambda: "Delete one?" in seen(app))
        await pilot.press("down", "enter")
        await until(pilot, lambda: "one deleted, which frees" in seen(app))
        assert target.exists() and draft.exists()
    app.worker.join()


@SIZES
async def test_an_installed_model_answers_or_drafts(engines: Engines, size: tuple[int, int]) -> None:
    """Enter takes it with the draft model that goes with it, d makes it the draft model, f5 the default."""
    target, draft = install(TARGET, DRAFT)
    tiny.llama(target)
    tiny.llama(draft, layers=1, width=32)
    app = shelf_app(engines, START)
    async with app.run_test(size=size) as pilot:
        await opened(pilot, app)
        await find(pilot, "8m-q8")
        await pilot.press("enter")
        await until(pilot, lambda: status_says(app, f"{TARGET} with {DRAFT} answers from now on."))
        await pilot.press("f7")
        await until(pilot, lambda: "GB free" in seen(app))
        await find(pilot, "one")
        await pilot.press("d")
        await until(pilot, lambda: status_says(app, f"{TARGET} with one answers from now on."))
        await pilot.press("f7")
        await until(pilot, lambda: "GB free" in seen(app))
        await find(pilot, "one")
        await pilot.press("f5")
        await until(pilot, lambda: status_says(app, "one with") or status_says(app, "one answers"))
        assert 'model = "one"' in (find_folders().config / "config.toml").read_text()
    app.worker.join()


@SIZES
async def test_a_download_is_stopped_and_goes_on_later(hub: HubServer, size: tuple[int, int]) -> None:
    """x keeps the part and says so; p fetches only the rest."""
    big, small = model_content(3_000_017), model_content(70_000, seed=8)
    stock(hub, big, small)
    install("one")
    go = hold(hub, 1_500_000)
    app = shelf_app(Engines(), START)
    async with app.run_test(size=size) as pilot:
        await opened(pilot, app)
        await find(pilot, PAIR)
        await pilot.press("p")
        await until(pilot, lambda: "of 3 MB" in seen(app) and "pulling" in seen(app))
        part = find_folders().models / f"{TARGET}.gguf.part"
        await until(pilot, lambda: part.exists() and part.stat().st_size >= 1_000_000)
        await pilot.press("x")
        await until(pilot, lambda: "is stopped; what has come is kept" in said(app))
        go.set()
        kept = part.stat().st_size
        served = hub.served
        await pilot.press("p")
        await until(pilot, lambda: f"{PAIR} is here." in seen(app))
        assert hub.served - served <= big.size + small.size - kept + (1 << 18)
        assert (find_folders().models / f"{TARGET}.gguf").stat().st_size == big.size
    app.downloads.close()  # type: ignore[union-attr]
    app.worker.join()


async def test_a_reference_is_pulled_and_used(engines: Engines) -> None:
    """user/repo:QUANT is a row of its own; enter asks, fetches and loads."""
    app = shelf_app(engines, START)
    async with app.run_test() as pilot:
        await opened(pilot, app)
        await find(pilot, f"{REPOSITORY}/{DRAFT}.gguf")
        await until(pilot, lambda: "On the hub" in seen(app))
        await pilot.press("enter")
        await until(pilot, lambda: "Only download it" in seen(app))
        await pilot.press("enter")
        await until(pilot, lambda: (find_folders().models / f"{DRAFT}.gguf").exists())
        await until(pilot, lambda: status_says(app, f"{DRAFT} answers from now on."))
    app.downloads.close()  # type: ignore[union-attr]
    app.worker.join()


async def test_a_hub_that_cannot_be_reached_is_one_sentence(engines: Engines, monkeypatch: pytest.MonkeyPatch) -> None:
    """Offline the list is there all the same, and a download says what is the matter."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    app = shelf_app(engines, START)
    async with app.run_test() as pilot:
        await opened(pilot, app)
        await find(pilot, PAIR)
        await pilot.press("p")
        await until(pilot, lambda: "HF_HUB_OFFLINE" in seen(app))
        assert not app.downloads.running  # type: ignore[union-attr]
    app.worker.join()


async def test_a_file_that_is_no_model_and_a_gated_one_are_explained(hub: HubServer, engines: Engines) -> None:
    """Neither is loaded, and both say why in the list."""
    install("broken", content=b"no model at all")
    hub.add("maker/gated-GGUF", {"x-Q8_0.gguf": Content(b"x" * 100)}, token="t", gated=True)
    app = shelf_app(engines, START)
    async with app.run_test() as pilot:
        screen = await opened(pilot, app)
        await find(pilot, "broken")
        await pilot.press("enter")
        await until(pilot, lambda: "cannot be used" in seen(app) and "broken.gguf" in said(app))
        assert app.screen is screen
        await pilot.press("up", *["backspace"] * 6)
        await find(pilot, "maker/gated-GGUF")
        await pilot.press("p")
        await until(pilot, lambda: "HF_TOKEN" in said(app))
    app.downloads.close()  # type: ignore[union-attr]
    app.worker.join()


async def test_a_broken_catalog_is_one_sentence(engines: Engines) -> None:
    """And what is installed is listed and can be used all the same."""
    (find_folders().config / "catalog.toml").write_text("[models\n", "utf-8")
    install("two", content=(find_folders().models / "one.gguf").read_bytes())
    app = shelf_app(engines, START)
    async with app.run_test() as pilot:
        await loaded(pilot)
        await pilot.press("f7")
        await until(pilot, lambda: "it is not TOML" in said(app) and "GB free" in seen(app))
        await find(pilot, "two")
        await pilot.press("enter")
        await until(pilot, lambda: status_says(app, "two answers from now on."))
    app.worker.join()
