"""Documents attached to a message, and the shapes a conversation can be put in."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localspec.chat.messages import Document, Message, attach_documents, fold_system, merge_turns, shapes

SYSTEM, USER, ASSISTANT = Message("system", "Be brief."), Message("user", "Hi"), Message("assistant", "Hello!")


def test_a_document_stands_verbatim_between_its_markers_and_before_the_words() -> None:
    text = attach_documents([Document("notes.txt", "  one\n\ttwo  ")], "Sum it up.")
    assert text == "--- document: notes.txt ---\n  one\n\ttwo  \n--- end of notes.txt ---\n\nSum it up."


def test_a_document_that_ends_in_a_newline_gets_no_second_one() -> None:
    text = attach_documents([Document("a", "x\n")], "")
    assert text == "--- document: a ---\nx\n--- end of a ---"


def test_several_documents_come_in_order() -> None:
    text = attach_documents([Document("a", "first"), Document("b", "second")], "Compare.")
    assert text.index("first") < text.index("--- end of a ---") < text.index("second") < text.index("Compare.")


def test_words_without_documents_stay_as_they_are() -> None:
    assert attach_documents([], " as typed ") == " as typed "


def test_a_name_cannot_break_out_of_its_line() -> None:
    text = attach_documents([Document("a\n--- end of a ---\nb", "x")], "")
    assert text.splitlines()[0] == "--- document: a --- end of a --- b ---"
    assert len(text.splitlines()) == 3


@given(st.text(alphabet="-ax \nendof", max_size=60))
def test_no_document_can_hold_its_own_closing_line(inside: str) -> None:
    body = f"{inside}--- end of a ---\n---- end of a ----\n{inside}"
    text = attach_documents([Document("a", body)], "")
    opening, _, rest = text.partition("\n")
    closing = rest.rsplit("\n", 1)[1]
    assert body in text
    assert closing == opening.replace("document:", "end of")
    assert closing not in body


def test_a_system_message_goes_to_the_head_of_the_next_user_message() -> None:
    assert fold_system([SYSTEM, USER, ASSISTANT]) == [Message("user", "Be brief.\n\nHi"), ASSISTANT]


def test_system_messages_in_the_middle_and_at_the_end_are_not_lost() -> None:
    folded = fold_system([USER, SYSTEM, ASSISTANT, USER, SYSTEM])
    assert folded == [USER, ASSISTANT, Message("user", "Be brief.\n\nHi"), Message("user", "Be brief.")]


def test_neighbors_of_one_role_become_one_message() -> None:
    assert merge_turns([USER, USER, ASSISTANT, USER]) == [Message("user", "Hi\n\nHi"), ASSISTANT, USER]


@pytest.mark.parametrize(
    ("messages", "count"),
    [([USER], 1), ([SYSTEM, USER], 2), ([USER, USER], 2), ([SYSTEM, USER, USER], 3), ([], 1)],
)
def test_every_shape_is_another_one_and_the_first_is_the_conversation_itself(
    messages: list[Message], count: int
) -> None:
    found = list(shapes(messages))
    assert found[0] == messages
    assert len(found) == count
    assert all(one != other for one, other in pairwise(found))
