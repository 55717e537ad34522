"""What is a slash command, and what is text."""

import pytest

from localspec.tui.commands import Command, Unknown, parse


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("/help", Command.HELP),
        ("/?", Command.HELP),
        (" /new \n", Command.NEW),
        ("/quit", Command.QUIT),
        ("/exit", Command.QUIT),
        ("/BYE", Command.QUIT),
    ],
)
def test_commands_are_known_by_all_their_words(text: str, command: Command) -> None:
    assert parse(text) is command


@pytest.mark.parametrize("text", ["hello", "/usr/bin/env what is this?", "/", "/ new", "either/or", "a /help"])
def test_other_text_is_a_prompt(text: str) -> None:
    assert parse(text) is None


def test_an_unknown_command_suggests_the_nearest_or_names_all() -> None:
    near, far = parse("/hlep"), parse("/xyzzy now")
    assert isinstance(near, Unknown)
    assert near.sentence == "There is no command /hlep: did you mean /help?"
    assert isinstance(far, Unknown)
    assert far.sentence == "There is no command /xyzzy: there are /help, /new, /quit."


def test_words_after_a_command_are_not_dropped_silently() -> None:
    found = parse("/new but first explain this")
    assert isinstance(found, Unknown)
    assert "/new" in found.sentence
