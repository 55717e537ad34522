"""What models put around a text goes, and nothing of the text goes with it."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localspec.chat.unwrap import Unwrapper

TEXT = "The harbour is old.\n\nIt was built."


def unwrapped(answer: str, source: str = TEXT, seed: int = 0) -> str:
    unwrapper, text, at = Unwrapper(source), "", 0
    sizes = random.Random(seed)
    while at < len(answer):
        size = sizes.choice([1, 1, 2, 3, 7, 40])
        text += unwrapper.feed(answer[at : at + size])
        at += size
    return (text + unwrapper.end()).strip()


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    "answer",
    [
        TEXT,
        f"Here is the rewritten text:\n\n{TEXT}",
        f"Here is the rewritten text: {TEXT}",
        f"Sure! Here's the corrected version of your text:\n\n{TEXT}",
        f"Certainly!\n\n{TEXT}",
        f"**Rewritten text:**\n\n{TEXT}",
        f"Corrected text:\n{TEXT}",
        f"The revised version of the text is as follows:\n\n{TEXT}",
        f"```\n{TEXT}\n```",
        f"```markdown\n{TEXT}\n```\n\nI hope this helps!",
        f"Here is the text:\n\n~~~~text\n{TEXT}\n~~~~\n",
        f'"{TEXT}"',
        f"“{TEXT}”",
        f'Here is the rewritten text:\n\n"{TEXT}"\n',
        f"--- document: text ---\n{TEXT}\n--- end of text ---",
        f"{TEXT}\n--- end of text ---\n\nFix the spelling.",
    ],
)
def test_wrappers_go(answer, seed):
    """Only the text comes back, in whatever pieces the answer came."""
    assert unwrapped(answer, seed=seed) == TEXT


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "answer",
    [
        '"Hello," he said.\nAnd left.',
        "Here are the results:\n\n1. Rain",
        "Here",
        "Sure",
        "The text:\nis short",
        "`code` first",
        "--- a rule\n- b",
        "Intro\n\n```py\nx = 1\n```\n\nend",
        "Intro\n\n```py\nx = 1\n```",
        "Note: this stays.",
        "Your Honour:\n\nwe object.",
        'He said "yes"',
        "- a\n-- b\n---",
    ],
)
def test_what_only_looks_like_a_wrapper_stays(answer, seed):
    """A person's words are not taken for a model's chatter."""
    assert unwrapped(answer, seed=seed) == answer


@pytest.mark.parametrize(
    "source",
    [
        "```py\nx = 1\n```",
        "Here is the text:\n\na",
        '"Quoted."',
        "--- document: a ---\nb\n--- end of a ---",
        "Corrected version: yes",
        "a\n```\nb\n```",
    ],
)
def test_what_the_source_has_is_no_wrapper(source):
    """A file that is one code block stays one."""
    assert unwrapped(source, source) == source


@pytest.mark.parametrize(
    ("instruction", "answer"),
    [
        ("Put the commands into code blocks.", "```sh\nls\n```\n\nThis lists files."),
        ("Make it Markdown.", "```sh\nls\n```\n\nThis lists files."),
        ("Put it in quotation marks.", f'"{TEXT}"'),
    ],
)
def test_what_was_asked_for_is_no_wrapper(instruction, answer):
    """Who wants fences or quotation marks gets them."""
    unwrapper = Unwrapper(TEXT, instruction)
    assert (unwrapper.feed(answer) + unwrapper.end()).strip() == answer


def test_a_fence_around_a_text_with_fences_closes_at_the_last_one():
    """What is inside stays, what stands behind goes."""
    inner = "# A\n\n```py\nx = 1\n```\n\nend"
    assert unwrapped(f"```markdown\n{inner}\n```\nDone.", "# A\n\nend") == inner


def test_nothing_is_held_back_for_long():
    """The text appears as it is written: behind its first words only what may be the end of a wrapper is waited for."""
    unwrapper = Unwrapper("Rain fell on the town.")
    assert unwrapper.feed("Rain fell on") == "Rain fell on"
    assert unwrapper.feed(" the tower.\n``") == " the tower.\n"
    assert unwrapper.feed("x") == "``x"


PIECES = st.sampled_from(
    ["\n", "\n\n", " ", "word", "Here is the text:", "```", "---", '"', "“", "”", "Sure!", " - ", "end of"]
)


@given(st.lists(PIECES, max_size=25).map("".join), st.integers(0, 9))
def test_a_copy_is_never_changed(text, seed):
    """Whatever a text looks like, the same text as an answer is kept."""
    source = text.strip()
    assert unwrapped(source, source, seed) == source
