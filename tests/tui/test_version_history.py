"""The versions of a text: each is kept while it is written, and nothing is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from localspec.chat.messages import Document
from localspec.chat.store import Store
from localspec.chat.versions import Versions
from localspec.engine.errors import UserError
from localspec.engine.step import Finish
from localspec.tui.version_history import VersionHistory

DOCUMENT = Document("notes.md", "one too three")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "chats.db"


def test_a_version_is_made_from_what_is_accepted_of_the_one_before(path: Path) -> None:
    """Back and forth; the document itself is version 0."""
    with Store(path) as store:
        history = VersionHistory(store, DOCUMENT)
        assert (history.at, history.text) == (0, DOCUMENT.text)
        history.begin("Fix it.")
        history.grow("ONE two three")
        history.finish(Finish.STOP)
        assert history.accepted == [True]
        history.decide([0], False)
        assert history.text == "one too three"
        history.decide([0], True)
        history.begin("Shout.")
        history.grow("ONE TWO THREE")
        history.finish(Finish.STOP)
        assert history.source == "ONE two three"
        assert history.go(-1)
        assert history.go(-1)
        assert not history.go(-1)
        assert history.text == DOCUMENT.text
    with Store(path) as store:
        again = VersionHistory(store, DOCUMENT)
        assert [version.result for version in again.versions] == ["ONE two three", "ONE TWO THREE"]
        assert again.at == 2


def test_decisions_are_kept(path: Path) -> None:
    """And are there after the next start."""
    with Store(path) as store:
        history = VersionHistory(store, DOCUMENT)
        history.add("1 too 3")
        assert history.accepted == [True, True]
        history.decide([1], False)
    with Store(path) as store:
        assert VersionHistory(store, DOCUMENT).accepted == [True, False]
        assert VersionHistory(store, DOCUMENT).text == "1 too three"


def test_what_was_being_written_when_the_program_died_is_there(path: Path) -> None:
    """It counts as broken off."""
    with Store(path) as store:
        history = VersionHistory(store, DOCUMENT)
        history.begin("Fix it.")
        history.grow("one two three")
    with Store(path) as store:
        again = VersionHistory(store, DOCUMENT)
        assert [(version.result, version.finish) for version in again.versions] == [("one two three", None)]


def test_a_version_without_a_word_is_none(path: Path) -> None:
    """Stopped before anything was written."""
    with Store(path) as store:
        history = VersionHistory(store, DOCUMENT)
        history.begin("Fix it.")
        history.grow(DOCUMENT.text)
        history.finish(Finish.INTERRUPTED)
        assert (history.versions, history.at) == ([], 0)
        assert Versions(store, DOCUMENT).load() == []


def test_a_store_that_fails_is_told_once_and_tried_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The work goes on."""
    said: list[str] = []
    with Store(path) as store:
        history = VersionHistory(store, DOCUMENT, said.append)
        with monkeypatch.context() as broken:
            broken.setattr(Versions, "add", lambda *_: (_ for _ in ()).throw(UserError("The disk is full.")))
            history.begin("Fix it.")
            history.grow("one two")
            history.finish(Finish.STOP)
            assert not history.save()
        assert said == ["The versions are not saved (The disk is full.); rewriting goes on, and saving is tried again."]
        assert history.save()
        assert [version.result for version in Versions(store, DOCUMENT).load()] == ["one two"]
        history.decide([0], False)
        assert [version.rejected for version in Versions(store, DOCUMENT).load()] == [(0,)]
