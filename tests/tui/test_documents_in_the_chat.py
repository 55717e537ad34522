"""Documents of the chat: how long they are, what can be done with one, and what happens with one that is too long."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual import events
from textual.pilot import Pilot

from localspec.chat.messages import Document
from localspec.tui.app import ChatApp
from localspec.tui.screens.choice import ChoiceScreen, LineScreen
from localspec.tui.screens.rewrite import RewriteScreen
from localspec.tui.screens.viewer import ViewerScreen
from localspec.tui.widgets.chips import Chip, Chips
from localspec.tui.widgets.prompt import Prompt
from scripted import ScriptedBackend, SlowLoad, app_with, chat, finished, seen, send, status_says, until

SIZES = [(80, 24), (120, 40)]
TEXT = "some [bold] words of a document\n" * 50


async def paste(pilot: Pilot[None], text: str = TEXT) -> None:
    """Wait until the model has counted it."""
    prompt = chat(pilot.app).query_one(Prompt)
    before = len(prompt.chips)
    prompt.post_message(events.Paste(text))
    await until(pilot, lambda: len(prompt.chips) > before and prompt.chips[len(prompt.chips) - 1].exact)


@pytest.mark.parametrize("size", SIZES)
async def test_tokens_are_estimated_before_the_model_is_there_and_counted_afterwards(size: tuple[int, int]) -> None:
    """With the share of the context."""
    load = SlowLoad(ScriptedBackend())
    app = ChatApp(load)
    async with app.run_test(size=size) as pilot:
        chat(app).query_one(Prompt).post_message(events.Paste(TEXT))
        await until(pilot, lambda: "pasted 1  300 words, ~400 tokens " in seen(app))
        load.go.set()
        # The scripted model has a token for every word.
        await until(pilot, lambda: "pasted 1  300 words, 300 tokens, 30 % of the context" in seen(app))
    app.worker.join()


@pytest.mark.parametrize("size", SIZES)
async def test_a_document_is_viewed_renamed_and_removed_by_keys(size: tuple[int, int]) -> None:
    """From the prompt with f6, through the menu or by a letter."""
    app, _ = app_with()
    async with app.run_test(size=size) as pilot:
        await paste(pilot)
        await pilot.press("f6")
        await until(pilot, lambda: "▸  pasted 1" in seen(app) and "w rewrite" in seen(app))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, ChoiceScreen) and "View" in seen(app))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, ViewerScreen) and "some [bold] words" in seen(app))
        await pilot.press("escape")
        await pilot.press("n")
        await until(pilot, lambda: isinstance(app.screen, LineScreen))
        await pilot.press(*["backspace"] * 8, *"[x] notes", "enter")
        await until(pilot, lambda: " [x] notes  300 words, 300 tokens" in seen(app))
        await pilot.press("delete")
        await until(pilot, lambda: status_says(app, "[x] notes is taken away; ctrl+z brings it back."))
        assert chat(app).query_one(Prompt).has_focus
        await pilot.press("ctrl+z")
        assert chat(app).query_one(Prompt).documents == (Document("[x] notes", TEXT),)
    app.worker.join()


async def test_a_document_is_removed_with_the_mouse() -> None:
    """A click opens the menu, another one chooses."""
    app, _ = app_with()
    async with app.run_test(size=(80, 24)) as pilot:
        await paste(pilot)
        await pilot.click(Chips, offset=(3, 0))
        await until(pilot, lambda: isinstance(app.screen, ChoiceScreen) and "Remove" in seen(app))
        row = next(y for y, line in enumerate(seen(app).splitlines()) if "Remove" in line)
        column = seen(app).splitlines()[row].index("Remove")
        await pilot.click(offset=(column, row))
        await until(pilot, lambda: not chat(app).query_one(Prompt).documents)
    app.worker.join()


async def test_keys_go_through_several_documents_and_letters_elsewhere_are_text() -> None:
    """Down from the last one is the prompt."""
    app, _ = app_with()
    async with app.run_test(size=(80, 24)) as pilot:
        await paste(pilot)
        await paste(pilot, TEXT.upper())
        await pilot.press("f6", "up", "delete")
        await until(pilot, lambda: len(chat(app).query_one(Prompt).documents) == 1)
        assert chat(app).query_one(Prompt).documents[0].name == "pasted 2"
        await pilot.press("down", "v")
        assert chat(app).query_one(Prompt).text == "v"
    app.worker.join()


@pytest.mark.parametrize("size", SIZES)
async def test_what_is_too_long_says_so_at_once_and_when_it_is_sent(size: tuple[int, int]) -> None:
    """Nothing is sent, and what works is offered: rewriting in parts, a part, a larger context."""
    app, backend = app_with(["fine"])
    async with app.run_test(size=size) as pilot:
        await paste(pilot, "one sentence of words.\n\n" * 300)
        await until(pilot, lambda: "1,200 tokens, 120 %, too long" in seen(app))
        assert status_says(app, "too long to be read at once")
        await send(pilot, "Sum it up.")
        await until(pilot, lambda: isinstance(app.screen, ChoiceScreen) and "Nothing was sent." in seen(app))
        assert "--ctx 2048" in seen(app)
        assert backend.asked == []
        await pilot.press("p")
        await until(pilot, lambda: isinstance(app.screen, LineScreen) and "Which part, 1 to 2?" in seen(app))
        await pilot.press("enter")
        await until(pilot, lambda: "part 1 of 2" in seen(app))
        await pilot.press("enter")
        await finished(pilot, 1)
        assert backend.words()[0].endswith("Sum it up.")
        assert 600 <= len(backend.words()[0].split()) < 1000
    app.worker.join()


async def test_what_is_too_long_can_be_rewritten_or_left() -> None:
    """The words that were written stay in the prompt."""
    app, _ = app_with()
    async with app.run_test(size=(80, 24)) as pilot:
        await paste(pilot, "one sentence of words.\n\n" * 300)
        await send(pilot, "Sum it up.")
        await until(pilot, lambda: isinstance(app.screen, ChoiceScreen))
        await pilot.press("c")
        await until(pilot, lambda: status_says(app, "localspec --ctx 2048"))
        assert chat(app).query_one(Prompt).text == "Sum it up."
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, ChoiceScreen))
        await pilot.press("w")
        await until(pilot, lambda: isinstance(app.screen, RewriteScreen))
    app.worker.join()


async def test_a_dropped_file_is_attached_and_the_name_of_one_is_text(tmp_path: Path) -> None:
    """In quotes, as a URL, or two at a time, as terminals paste them."""
    app, _ = app_with()
    for name in ("a b.txt", "c.txt"):
        (tmp_path / name).write_text(f"text of {name}")
    async with app.run_test(size=(80, 24)) as pilot:
        prompt = chat(app).query_one(Prompt)
        for dropped in (f"'{tmp_path}/a b.txt' {tmp_path}/c.txt ", f"file://{tmp_path}/a%20b.txt"):
            prompt.post_message(events.Paste(dropped))
            names = ["a b.txt"] if dropped.startswith("file") else ["a b.txt", "c.txt"]
            await until(pilot, lambda names=names: sorted(doc.name for doc in prompt.documents) == names)
            assert prompt.chips[0].document.path is not None
            prompt.put("")
        prompt.post_message(events.Paste("c.txt"))
        await until(pilot, lambda: prompt.text == "c.txt")
        assert prompt.documents == ()
    app.worker.join()


async def test_a_megabyte_on_one_line_is_viewed() -> None:
    """To its very end."""
    app, _ = app_with()
    async with app.run_test(size=(80, 24)) as pilot:
        prompt = chat(app).query_one(Prompt)
        prompt.chips.insert(0, Chip.of(Document("long", "x" * 1_000_000 + " the end")))
        await pilot.press("f6", "v")
        await until(pilot, lambda: isinstance(app.screen, ViewerScreen) and "xxxx" in seen(app))
        await pilot.press("end")
        await until(pilot, lambda: "the end" in seen(app))
    app.worker.join()
