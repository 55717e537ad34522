"""What a model thinks, told from what it answers."""

import pytest

from localspec.tui.thinking import Thought, may_become_thoughts, split_thoughts, without_thoughts


@pytest.mark.parametrize("name", ["think", "thinking", "reasoning", "THINK"])
def test_a_block_at_the_beginning_is_thinking(name: str) -> None:
    text = f"\n<{name}>\nso and so\n</{name}>\n\nThe answer."
    assert split_thoughts(text) == Thought("so and so", "The answer.", text.index("The"), False)
    assert without_thoughts(text) == "The answer."


def test_a_block_that_is_still_open_has_no_answer_behind_it() -> None:
    thought = split_thoughts("<think>so far")
    assert (thought.thoughts, thought.body, thought.open) == ("so far", "", True)


def test_several_blocks_are_one() -> None:
    thought = split_thoughts("<think>one</think>\n<think>two</think>end")
    assert (thought.thoughts, thought.body) == ("one\n\ntwo", "end")


def test_an_opening_tag_in_the_prompt_is_thought_of() -> None:
    thought = split_thoughts("I wonder.\n</think>\n\nThe answer.")
    assert (thought.thoughts, thought.body) == ("I wonder.", "The answer.")


@pytest.mark.parametrize(
    "text", ["A <think>tag</think> in the text.", "Write </think> at the end.", "<thinker>x</thinker>", "  plain", ""]
)
def test_a_tag_anywhere_else_is_text(text: str) -> None:
    assert split_thoughts(text) == Thought("", text, 0, False)


def test_an_empty_block_is_nothing() -> None:
    assert split_thoughts("<think>\n\n</think>\n\nHi") == Thought("", "Hi", 19, False)


def test_the_beginning_of_a_tag_is_not_shown_yet() -> None:
    assert [text for text in ("", "<", " <th", "<think", "<thinks", "<b", "a<") if may_become_thoughts(text)] == [
        "<",
        " <th",
        "<think",
    ]
