"""The open chat and what the store has of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from localspec.chat.messages import Document, Message
from localspec.chat.store import Store
from localspec.engine.errors import UserError
from localspec.engine.step import Finish
from localspec.tui.open_chat import SAVE_SECONDS, OpenChat


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "chats.db") as opened:
        yield opened


def saved(chat: OpenChat) -> list[tuple[str, str]]:
    """The branch that somebody who opens the chat now would see."""
    assert chat.store
    assert chat.id is not None
    with Store(chat.store.path) as other:
        return [(entry.role, entry.text) for entry in other.load(chat.id).thread.path()]


def answered(chat: OpenChat, words: str, answer: str) -> int:
    """The answer's number."""
    entry = chat.ask(words)
    chat.grow(answer, 0.0)
    chat.finish(Finish.STOP, {"tokens": 2})
    return entry.id


def test_a_message_is_saved_before_it_is_answered(store: Store) -> None:
    chat = OpenChat(store, model="m")
    assert store.chats() == []
    chat.ask("Why?", [Document("a.txt", "text")])
    assert saved(chat) == [("user", "Why?")]
    assert [(info.title, info.model) for info in store.chats()] == [("Why?", "m")]
    assert chat.messages()[-1].content.endswith("Why?")


def test_a_growing_answer_is_saved_every_second_and_at_the_end(store: Store) -> None:
    chat = OpenChat(store)
    chat.ask("Why?")
    chat.grow("a", 0.0)
    assert saved(chat)[-1] == ("assistant", "a")
    chat.grow("b", SAVE_SECONDS / 2)
    assert saved(chat)[-1] == ("assistant", "a")
    chat.grow("c", SAVE_SECONDS)
    assert saved(chat)[-1] == ("assistant", "abc")
    chat.grow("d", SAVE_SECONDS * 1.5)
    chat.finish(Finish.STOP, {"tokens": 4})
    assert saved(chat)[-1] == ("assistant", "abcd")
    assert chat.id is not None
    entry = store.load(chat.id).thread.path()[-1]
    assert (entry.finish, entry.figures) == ("stop", {"tokens": 4})


def test_a_message_without_an_answer_is_taken_back_and_the_branch_before_is_shown(store: Store) -> None:
    chat = OpenChat(store)
    answered(chat, "one", "first")
    chat.ask("two")
    taken = chat.take_back()
    assert taken
    assert taken[1]
    assert taken[1].text == "two"
    assert [entry.text for entry in chat.thread.path()] == ["one", "first"]
    assert saved(chat) == [("user", "one"), ("assistant", "first")]


def test_a_first_message_that_is_taken_back_leaves_no_chat(store: Store) -> None:
    chat = OpenChat(store)
    chat.ask("never mind")
    chat.take_back()
    assert store.chats() == []
    answered(chat, "Why?", "So.")
    assert [info.title for info in store.chats()] == ["Why?"]


def test_another_answer_is_a_branch_and_nothing_comes_of_one_without_a_word(store: Store) -> None:
    chat = OpenChat(store)
    first = answered(chat, "one", "first")
    second = chat.answer_again(first)
    assert chat.messages() == [Message("user", "one")]
    chat.grow("second", 0.0)
    chat.finish(Finish.STOP, None)
    assert [chat.branches(id_) for id_ in (first, second.id)] == ["1/2", "2/2"]
    assert saved(chat)[-1] == ("assistant", "second")
    chat.answer_again(second.id)
    assert chat.take_back()
    assert chat.thread.leaf == second.id
    shown = chat.show_branch(second.id, -1)
    assert shown
    assert shown.text == "first"
    assert saved(chat)[-1] == ("assistant", "first")
    assert chat.show_branch(first, -1) is None


def test_an_edited_message_begins_a_branch(store: Store) -> None:
    chat = OpenChat(store)
    answered(chat, "one", "first")
    chat.ask_instead(1, "uno")
    assert chat.messages() == [Message("user", "uno")]
    assert chat.writing
    assert chat.writing.edits == 1
    chat.take_back()
    assert [entry.text for entry in chat.thread.path()] == ["one", "first"]
    chat.ask_instead(1, "uno")
    chat.grow("primo", 0.0)
    chat.finish(Finish.STOP, None)
    assert saved(chat) == [("user", "uno"), ("assistant", "primo")]


def test_an_answer_goes_on_where_it_ended(store: Store) -> None:
    chat = OpenChat(store)
    first = answered(chat, "one", "first")
    chat.go_on(first)
    assert chat.messages() == [Message("user", "one"), Message("assistant", "first")]
    chat.grow(" and more", 0.0)
    chat.finish(Finish.STOP, {"tokens": 3})
    assert saved(chat)[-1] == ("assistant", "first and more")
    assert chat.thread.entries[first].figures == {"tokens": 5}
    chat.go_on(first)
    chat.take_back()
    assert chat.thread.entries[first].text == "first and more"


def test_an_answer_that_others_follow_goes_on_in_a_branch(store: Store) -> None:
    chat = OpenChat(store)
    first = answered(chat, "one", "first")
    answered(chat, "two", "second")
    entry = chat.go_on(first)
    chat.grow("!", 0.0)
    chat.finish(Finish.STOP, None)
    assert saved(chat) == [("user", "one"), ("assistant", "first!")]
    assert entry.id != first
    assert chat.thread.entries[first].text == "first"


def test_a_person_may_write_the_models_words(store: Store) -> None:
    chat = OpenChat(store)
    first = answered(chat, "one", "first")
    chat.write_instead(first, "better")
    assert saved(chat)[-1] == ("assistant", "better")
    assert chat.thread.entries[first].text == "first"


class Broken:
    """Stands for a store; refuses everything while `full`."""

    def __init__(self, store: Store) -> None:
        self.store, self.full = store, True

    def __getattr__(self, name: str) -> object:
        if self.full and name != "generation":
            raise UserError("The disk is full.")
        return getattr(self.store, name)


def test_a_store_that_cannot_be_written_is_told_once_and_tried_again(store: Store) -> None:
    sentences: list[str] = []
    broken = Broken(store)
    chat = OpenChat(broken, sentences.append)  # type: ignore[arg-type]
    answered(chat, "one", "first")
    assert len(sentences) == 1
    assert "The disk is full." in sentences[0]
    assert chat.troubled
    broken.full = False
    answered(chat, "two", "second")
    assert not chat.troubled
    chat.store = store
    assert [text for _, text in saved(chat)] == ["one", "first", "two", "second"]


def test_a_new_chat_has_what_was_set_last_and_another_one_its_own(store: Store) -> None:
    chat = OpenChat(store)
    answered(chat, "one", "first")
    chat.configure("Be brief.", {"temp": 0.5})
    first = chat.id
    assert first is not None
    assert chat.messages()[0] == Message("system", "Be brief.")
    chat.begin()
    assert (chat.system, chat.settings, chat.id) == ("Be brief.", {"temp": 0.5}, None)
    chat.configure(None, {})
    answered(chat, "two", "second")
    chat.load(first)
    assert (chat.system, chat.settings) == ("Be brief.", {"temp": 0.5})
    assert [entry.text for entry in chat.thread.path()] == ["one", "first"]


def test_a_title_given_before_the_first_message_stays(store: Store) -> None:
    chat = OpenChat(store)
    chat.rename("Bicycles")
    chat.ask("Why do they stay upright?")
    chat.refresh_title()
    assert (chat.title, store.chats()[0].title) == ("Bicycles", "Bicycles")
    chat.begin()
    chat.ask("And boats?")
    assert store.chats()[0].title == "And boats?"


def test_what_could_not_be_saved_is_tried_again_before_another_chat(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Store, chat: int, entry: object) -> None:
        raise UserError("The disk is full.")

    chat = OpenChat(store)
    answered(chat, "Why?", "Because.")
    with monkeypatch.context() as patch:
        patch.setattr(Store, "save", full)
        answered(chat, "Really?", "Yes.")
    id_ = chat.id
    chat.begin()
    assert id_ is not None
    assert [entry.text for entry in store.load(id_).thread.path()] == ["Why?", "Because.", "Really?", "Yes."]
