"""What was not sent stands in the prompt at the next start."""

from __future__ import annotations

from pathlib import Path

import pytest

from localspec.chat.messages import Document
from localspec.tui.app import ChatApp
from localspec.tui.unsent import UNSENT_FILE, Draft, Unsent
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
    assert Unsent(tmp_path).take() == Draft()


DRAFT = Draft("words", (Document("a.txt", "text"),), {(3, 1): ("changed", ()), (None, 2): ("", (Document("b", "c"),))})


def left(folder: Path, draft: Draft) -> None:
    """An app was here, and has left this."""
    unsent = Unsent(folder)
    unsent.keep(draft)
    unsent.close()


def test_it_is_given_once_and_to_this_user_alone(tmp_path: Path) -> None:
    """Words, documents and edits come back as they were, and are gone when nothing of them is left."""
    left(tmp_path, DRAFT)
    assert (tmp_path / UNSENT_FILE).stat().st_mode & 0o777 == 0o600
    unsent = Unsent(tmp_path)
    assert unsent.take() == DRAFT
    unsent.keep(Draft())
    unsent.close()
    assert Unsent(tmp_path).take() == Draft()
    assert list(tmp_path.iterdir()) == []


def test_what_was_taken_is_still_there_after_a_crash(tmp_path: Path) -> None:
    """The app that took it has written it down before the old file goes."""
    left(tmp_path, DRAFT)
    crashed = Unsent(tmp_path)
    assert crashed.take() == DRAFT
    # The system takes the lock away from a process that is killed, and does nothing else.
    assert crashed._lock
    crashed._lock.close()
    assert Unsent(tmp_path).take() == DRAFT


def test_two_apps_keep_their_words_apart(tmp_path: Path) -> None:
    """What an app that still runs has written is not taken from it; afterwards nothing of either is lost."""
    first, second = Unsent(tmp_path), Unsent(tmp_path)
    first.keep(Draft("one"))
    second.keep(Draft("two"))
    third = Unsent(tmp_path)
    assert third.take() == Draft()
    first.close()
    second.close()
    assert sorted(third.take().text.split("\n")) == ["one", "two"]
    third.close()


@pytest.mark.parametrize("damaged", ["", "[]", "{", '{"text": "x"}', '{"text": "x", "documents": [1]}'])
def test_a_damaged_file_is_no_reason_not_to_start(damaged: str, tmp_path: Path) -> None:
    """It counts for nothing, and what comes after it is kept."""
    (tmp_path / UNSENT_FILE).write_text(damaged)
    unsent = Unsent(tmp_path)
    assert unsent.take() == Draft()
    assert unsent.keep(Draft("new"))
    unsent.close()
    assert Unsent(tmp_path).take() == Draft("new")


def test_a_folder_that_is_gone_is_no_reason_not_to_leave(tmp_path: Path) -> None:
    """Nothing is written, and nothing raised."""
    assert not Unsent(tmp_path / "gone").keep(Draft("words"))
    assert not (tmp_path / "gone").exists()


async def test_what_is_typed_is_written_down_while_the_app_runs(tmp_path: Path) -> None:
    """A second after it was typed, a crash does not lose it any more."""
    app = app_over(tmp_path)
    async with app.run_test() as pilot:
        await pilot.press(*"half")
        file = tmp_path / UNSENT_FILE
        await until(pilot, lambda: file.exists() and '"half"' in file.read_text())
    app.worker.join()
