"""What was not sent stands in the prompt at the next start."""

from __future__ import annotations

from pathlib import Path

import pytest

from localspec.chat.messages import Document
from localspec.tui import unsent
from localspec.tui.app import ChatApp
from localspec.tui.widgets.prompt import Prompt
from scripted import ScriptedBackend, until


def app_over(data: Path) -> ChatApp:
    return ChatApp(lambda report: ScriptedBackend(), data)


async def test_a_typed_word_and_a_document_outlive_the_app(tmp_path: Path) -> None:
    app = app_over(tmp_path)
    async with app.run_test() as pilot:
        prompt = app.screen.query_one(Prompt)
        prompt.put("half a [bold]thought", [Document("notes.md", "a\r\nb")])
        await pilot.pause()
    app.worker.join()
    again = app_over(tmp_path)
    async with again.run_test() as pilot:
        prompt = again.screen.query_one(Prompt)
        await until(pilot, lambda: prompt.text == "half a [bold]thought")
        assert prompt.documents == (Document("notes.md", "a\r\nb"),)
        prompt.put("")
        await pilot.pause()
    again.worker.join()
    assert unsent.take(tmp_path) == ("", [])


def test_it_is_given_once_and_to_this_user_alone(tmp_path: Path) -> None:
    unsent.keep(tmp_path, "words", ())
    assert (tmp_path / unsent.UNSENT_FILE).stat().st_mode & 0o777 == 0o600
    assert unsent.take(tmp_path) == ("words", [])
    assert unsent.take(tmp_path) == ("", [])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("damaged", ["", "[]", "{", '{"text": "x"}', '{"text": "x", "documents": [1]}'])
def test_a_damaged_file_is_no_reason_not_to_start(damaged: str, tmp_path: Path) -> None:
    (tmp_path / unsent.UNSENT_FILE).write_text(damaged)
    assert unsent.take(tmp_path) == ("", [])


def test_a_folder_that_is_gone_is_no_reason_not_to_leave(tmp_path: Path) -> None:
    unsent.keep(tmp_path / "gone", "words", ())
    assert not (tmp_path / "gone").exists()
