"""The page about costs says what the last audit of the loaded model has found."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from test_backend import Report
from textual.app import App

from command import call
from localspec.chat.service import Wanted
from localspec.engine.engine import EngineSettings, Options
from localspec.settings import find_folders
from localspec.tui.backend import Load, engine_loader, process_loader
from localspec.tui.screens.costs import CostsScreen
from scripted import seen

CURVE = {width: 10.0 + width for width in (1, 2, 3, 4, 5, 6, 8, 9, 12, 17, 33)}
SAID = "Audited 12 days ago, on 2026-05-12: none of 384 tokens would have been another by plain decoding."


async def shown(curve: dict[int, float], audit: str | None, height: int) -> str:
    """The words on the page, in a terminal of so many lines."""
    app = App[None]()
    async with app.run_test(size=(80, height)) as pilot:
        app.push_screen(CostsScreen(curve, audit))
        await pilot.pause()
        return " ".join(seen(app).replace("│", " ").split())


@pytest.mark.parametrize("curve", [{}, CURVE])
async def test_the_verdict_is_seen_without_scrolling(curve: dict[int, float]) -> None:
    """However many bars there are."""
    assert SAID in await shown(curve, SAID, 24)


@pytest.mark.parametrize("curve", [{}, CURVE])
async def test_without_an_audit_the_page_says_how_to_make_one(curve: dict[int, float]) -> None:
    """With or without a curve."""
    said = await shown(curve, None, 60)
    assert "has not been looked at" in said
    assert "localspec doctor --audit" in said


@pytest.mark.parametrize("own_process", [True, False])
def test_an_audit_on_the_command_line_is_known_in_the_app(
    tiny_llama: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_process: bool
) -> None:
    """As soon as it is made, for the model opened in the same way and for no other."""
    monkeypatch.setenv("LOCALSPEC_THREADS", "1")
    question = tmp_path / "question.jsonl"
    question.write_text(json.dumps({"question_id": 1, "category": "letters", "turns": ["the cat and the cat and the"]}))
    loader: Callable[[Wanted], Load] = engine_loader
    if own_process:

        def loader(wanted: Wanted) -> Load:
            return process_loader(wanted, tmp_path / "log")

    for threads, known in ((1, True), (2, False)):
        wanted = Wanted(EngineSettings(tiny_llama, threads=threads), Options(max_tokens=8), cache=find_folders().cache)
        backend = loader(wanted)(Report())
        try:
            if known:
                assert backend.last_audit() is None
                made = call("doctor", "-m", tiny_llama, "--audit", "--prompts", question, "--max-tokens", 16, "--json")
                assert made.document["audit"]["wide_tokens"] > 0
            said = backend.last_audit()
            assert bool(said) is known
            assert not known or (said == made.document["last_audit"] and said.startswith("Audited just now: "))
        finally:
            backend.close()
