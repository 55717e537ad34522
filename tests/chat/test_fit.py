"""What of a conversation the model reads when the context is too small for all of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from localspec.chat.fit import fit
from localspec.chat.messages import Document, Message, attach_documents

SYSTEM = Message("system", "s")
TURN_OVERHEAD = 3


class Counter:
    """Counts as a tokenizer would: a token for each character, some for each message; and how often it was asked."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, messages: Sequence[Message]) -> int:
        self.calls += 1
        return sum(TURN_OVERHEAD + len(message.content) for message in messages)


def with_document(words: str) -> Message:
    return Message("user", attach_documents([Document("notes", "x")], words))


def has_document(message: Message) -> bool:
    return message.content.startswith("--- document: notes ---")


texts = st.text("abc", max_size=60)
questions = st.builds(Message, st.just("user"), texts) | st.builds(with_document, texts)
turns = st.tuples(questions, st.lists(st.builds(Message, st.just("assistant"), texts), max_size=2)).map(
    lambda turn: [turn[0], *turn[1]]
)
conversations = st.builds(
    lambda system, turns: [*system, *(message for turn in turns for message in turn)],
    st.sampled_from([[], [SYSTEM]]),
    st.lists(turns, min_size=1, max_size=12),
)
limits = st.integers(0, 400)


def last_turn(messages: Sequence[Message]) -> list[Message]:
    place = max(place for place, message in enumerate(messages) if message.role == "user")
    return list(messages[place:])


def smallest(messages: Sequence[Message]) -> list[Message]:
    return [*(message for message in messages if message.role == "system"), *last_turn(messages)]


def is_part_of(part: Sequence[Message], whole: Sequence[Message]) -> bool:
    rest = iter(whole)
    return all(any(message is other for other in rest) for message in part)


@given(conversations, limits)
def test_what_fits_is_left_alone_and_what_cannot_fit_too(messages, limit):
    kept, left_out = fit(messages, Counter(), limit)
    if Counter()(messages) <= limit or Counter()(smallest(messages)) > limit:
        assert (kept, left_out) == (messages, 0)
    else:
        assert left_out > 0


@given(conversations, limits)
def test_what_can_fit_does_and_nothing_is_changed_or_moved(messages, limit):
    kept, left_out = fit(messages, Counter(), limit)
    assert left_out == len(messages) - len(kept)
    assert is_part_of(kept, messages)
    if left_out:
        assert Counter()(kept) <= limit


@given(conversations, limits)
def test_the_system_prompt_and_the_last_turn_stay(messages, limit):
    kept, _ = fit(messages, Counter(), limit)
    assert [m for m in kept if m.role == "system"] == [m for m in messages if m.role == "system"]
    assert kept[-len(last_turn(messages)) :] == last_turn(messages)


@given(conversations, limits)
def test_an_answer_goes_with_its_question(messages, limit):
    kept, _ = fit(messages, Counter(), limit)
    ids = {id(message) for message in kept}
    for before, message in pairwise(messages):
        if message.role == "assistant":
            assert (id(before) in ids) == (id(message) in ids)


@given(conversations, limits)
def test_the_oldest_go_first_and_documents_last(messages, limit):
    kept, _ = fit(messages, Counter(), limit)
    ids = {id(message) for message in kept}
    asked = [message for message in messages if message.role == "user"]
    for wanted in (False, True):
        stays = [id(message) in ids for message in asked[:-1] if has_document(message) is wanted]
        assert stays == sorted(stays)
    gone = [message for message in asked if id(message) not in ids]
    if any(map(has_document, gone)):
        assert all(has_document(message) for message in kept if message.role == "user" and message is not asked[-1])
        # No document has to go for the sake of room that is only convenient.
        newest = max(place for place, m in enumerate(messages) if id(m) not in ids and m.role == "user")
        end = next((p for p in range(newest + 1, len(messages)) if messages[p].role == "user"), len(messages))
        with_one_more = [m for p, m in enumerate(messages) if id(m) in ids or newest <= p < end]
        if has_document(messages[newest]):
            assert Counter()(with_one_more) > limit


@given(st.lists(texts, min_size=2, max_size=60), st.integers(100, 400))
def test_no_more_than_a_quarter_and_a_turn_is_left_out_too_early(questions, limit):
    messages = [Message("user", text) for text in questions]
    kept, left_out = fit(messages, Counter(), limit)
    if left_out:
        assert Counter()(messages[left_out - 1 :]) > limit - max(1, limit // 4)
        assert kept == messages[left_out:]


def test_the_same_turns_stay_out_while_the_chat_grows_by_a_quarter_of_the_limit():
    limit, turn = 1000, 10
    messages = [Message("user", "x" * (turn - TURN_OVERHEAD)) for _ in range(1000)]
    begins = [fit(messages[:length], Counter(), limit)[1] for length in range(101, 1000)]
    assert begins == sorted(begins)
    changes = sum(before != after for before, after in pairwise(begins))
    assert changes == (1000 - 101) * turn // (limit // 4)


@given(st.integers(2, 500), st.integers(20, 4000))
def test_counting_is_rare(turns, limit):
    counter = Counter()
    fit([Message("user", "a" * 10) for _ in range(turns)], counter, limit)
    assert counter.calls <= 2 + math.ceil(math.log2(turns))


def test_words_that_only_look_like_a_document_are_no_document():
    liar = Message("user", "--- document: notes ---\nand then nothing" + "x" * 40)
    turns = [liar, Message("user", "second"), Message("user", "last")]
    kept, _ = fit(turns, Counter(), 30)
    assert kept == turns[1:]


def test_an_answer_to_be_continued_stays_with_its_question():
    messages = [Message("user", "old"), Message("user", "new"), Message("assistant", "half a sen")]
    assert fit(messages, Counter(), 20) == (messages[1:], 1)


def test_no_messages_are_no_problem():
    assert fit([], Counter(), 0) == ([], 0)
    assert fit([SYSTEM], Counter(), 0) == ([SYSTEM], 0)
