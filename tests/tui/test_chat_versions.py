"""The commands for the versions of a message and for its blocks of code."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_chat_messages import ask, opened, shown

from scripted import chat, finished, send, status_says, until

CODE = "Two:\n\n```python\none = 1\n```\n\nand\n\n```\ntwo\n```\n"


async def test_branch_says_which_versions_there_are_and_shows_them(tmp_path: Path) -> None:
    """Without a number it says, with one it shows; a number that is none changes nothing."""
    async with opened(tmp_path, ["first"], ["second"]) as (pilot, _):
        await ask(pilot, "one", 1)
        await send(pilot, "/branch")
        await until(pilot, lambda: status_says(pilot.app, "No message here has more than one version"))
        await send(pilot, "/regenerate")
        await until(pilot, lambda: shown(pilot) == ["one", "second"])
        await finished(pilot, 1)
        await send(pilot, "/branch")
        await until(pilot, lambda: status_says(pilot.app, "Message 2 is version 2 of 2: /branch 1 shows another."))
        await send(pilot, "/branch 1")
        await until(pilot, lambda: shown(pilot) == ["one", "first"])
        await until(pilot, lambda: status_says(pilot.app, "Message 2: version 1 of 2."))
        await send(pilot, "/branch 3")
        await until(pilot, lambda: status_says(pilot.app, "Message 2 is version 1 of 2: /branch 2 shows another."))
        assert shown(pilot) == ["one", "first"]


@pytest.mark.parametrize(("command", "copied"), [("/code", "two"), ("/code 1", "one = 1"), ("/code 2", "two")])
async def test_code_copies_the_last_block_or_the_one_with_a_number(command: str, copied: str, tmp_path: Path) -> None:
    """Nothing but the code gets into the clipboard."""
    async with opened(tmp_path, [CODE]) as (pilot, _):
        await ask(pilot, "show", 1)
        await send(pilot, command)
        await until(pilot, lambda: pilot.app.clipboard == copied)


async def test_a_block_that_is_not_there_is_a_sentence(tmp_path: Path) -> None:
    """It says which numbers there are, or that there is no code."""
    async with opened(tmp_path, ["words"], [CODE]) as (pilot, _):
        await ask(pilot, "talk", 1)
        await send(pilot, "/code")
        await until(pilot, lambda: status_says(pilot.app, "There is no block of code in it."))
        await ask(pilot, "show", 2)
        await send(pilot, "/code 3")
        await until(pilot, lambda: status_says(pilot.app, "a number from 1 to 2"))
        assert pilot.app.clipboard == ""


async def test_the_key_on_a_selected_message_goes_from_block_to_block(tmp_path: Path) -> None:
    """The first, the second, and the first again."""
    async with opened(tmp_path, [CODE]) as (pilot, _):
        await ask(pilot, "show", 1)
        await pilot.press("ctrl+up")
        await until(pilot, lambda: chat(pilot.app)._transcript.chosen is not None)
        for copied in ("one = 1", "two", "one = 1"):
            await pilot.press("b")
            await until(pilot, lambda copied=copied: pilot.app.clipboard == copied)
