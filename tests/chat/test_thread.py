"""A chat as a tree: branches beside each other, and nothing lost."""

from __future__ import annotations

import pytest

from localspec.chat.messages import Document, Message
from localspec.chat.thread import Thread


def chat(*texts: str) -> Thread:
    """Messages one behind the other, a person's first."""
    thread = Thread()
    for number, text in enumerate(texts):
        thread.add("assistant" if number % 2 else "user", text, after=thread.leaf)
    return thread


def shown(thread: Thread) -> list[str]:
    return [entry.text for entry in thread.path()]


def test_an_empty_thread_shows_nothing():
    assert Thread().path() == Thread().messages() == []


def test_messages_follow_each_other():
    thread = chat("Hi", "Hello", "Why?")
    assert shown(thread) == ["Hi", "Hello", "Why?"]
    assert thread.messages() == [Message("user", "Hi"), Message("assistant", "Hello"), Message("user", "Why?")]
    assert [entry.parent for entry in thread.path()] == [None, 1, 2]


def test_the_model_reads_the_documents_of_a_message_before_its_words():
    thread = Thread()
    entry = thread.add("user", "Sum it up", [Document("notes.md", "rain\n")], after=None)
    assert entry.documents == (Document("notes.md", "rain\n"),)
    assert entry.content.index("notes.md") < entry.content.index("rain") < entry.content.index("Sum it up")
    assert thread.messages() == [Message("user", entry.content)]


def test_another_answer_is_a_branch_and_the_old_one_stays():
    thread = chat("Hi", "Hello", "Why?", "Because")
    other = thread.add("assistant", "Howdy", after=1)
    assert shown(thread) == ["Hi", "Howdy"]
    assert thread.siblings(2) == thread.siblings(other.id) == [2, other.id]
    assert thread.siblings(1) == [1]
    thread.show(2)
    assert shown(thread) == ["Hi", "Hello", "Why?", "Because"]


def test_another_first_message_is_a_new_beginning():
    thread = chat("Hi", "Hello")
    first = thread.add("user", "Hey", after=None)
    assert shown(thread) == ["Hey"]
    assert thread.siblings(1) == [1, first.id]
    thread.show(1)
    assert shown(thread) == ["Hi", "Hello"]


def test_a_branch_is_shown_along_its_newest_messages():
    thread = chat("Hi", "Hello", "one", "1")
    thread.add("user", "two", after=2)
    thread.add("assistant", "2", after=5)
    thread.show(3)
    assert shown(thread) == ["Hi", "Hello", "one", "1"]
    thread.show(1)
    assert shown(thread) == ["Hi", "Hello", "two", "2"]


def test_an_answer_grows_and_ends():
    thread = chat("Hi", "")
    before = thread.entries[2]
    assert thread.change(2, text="Hel") == thread.entries[2]
    assert (thread.entries[2].text, thread.entries[2].finish, thread.entries[2].figures) == ("Hel", None, None)
    thread.change(2, text="Hello", finish="stop", figures={"steps": 3})
    thread.change(2)
    assert (thread.entries[2].text, thread.entries[2].finish, thread.entries[2].figures) == (
        "Hello",
        "stop",
        {"steps": 3},
    )
    assert thread.change(2, text="").text == ""
    assert (before.text, thread.entries[2].parent, thread.leaf) == ("", 1, 2)


def test_the_last_message_can_be_taken_back():
    thread = chat("Hi", "Hello", "Why?")
    thread.remove(3)
    assert shown(thread) == ["Hi", "Hello"]
    with pytest.raises(ValueError, match="message 1 has answers"):
        thread.remove(1)
    thread.remove(2)
    thread.remove(1)
    assert (thread.entries, thread.leaf) == ({}, None)


def test_taking_back_a_message_elsewhere_leaves_the_branch_that_is_shown():
    thread = chat("Hi", "Hello")
    other = thread.add("assistant", "Howdy", after=1)
    thread.show(2)
    thread.remove(other.id)
    assert shown(thread) == ["Hi", "Hello"]
    assert thread.siblings(2) == [2]


def test_ids_rise_in_the_order_of_writing():
    thread = chat("Hi", "Hello", "Why?")
    thread.remove(3)
    assert thread.add("user", "How?", after=1).id == 3
    assert thread.add("user", "Who?", after=None).id == 4
