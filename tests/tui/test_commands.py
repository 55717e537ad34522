"""What is a slash command, and what is text."""

import pytest

from localspec.tui.commands import Call, Command, Unknown, completions, parse


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("/help", Command.HELP),
        ("/?", Command.HELP),
        ("/new \n", Command.NEW),
        ("/quit", Command.QUIT),
        ("/exit", Command.QUIT),
        ("/BYE", Command.QUIT),
        ("/regen", Command.REGENERATE),
        ("/resume", Command.CHATS),
        ("/export", Command.EXPORT),
    ],
)
def test_commands_are_known_by_all_their_words(text: str, command: Command) -> None:
    assert parse(text) == Call(command)


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("/export my chat.md", Call(Command.EXPORT, "my chat.md")),
        ("/read ~/a b.txt ", Call(Command.ATTACH, "~/a b.txt")),
        ("/system Be brief.\nBe kind.", Call(Command.SYSTEM, "Be brief.\nBe kind.")),
        ("/set  temp  0.7", Call(Command.SET, "temp  0.7")),
    ],
)
def test_what_follows_is_the_argument(text: str, call: Call) -> None:
    assert parse(text) == call


@pytest.mark.parametrize(
    "text",
    [
        "hello",
        "/usr/bin/env what is this?",
        "/etc/hosts is where names are",
        "/",
        "/ new",
        "// a comment",
        "//help",
        " /help",
        "\n/new",
        "either/or",
        "a /help",
        "/notes.md is mine",
    ],
)
def test_other_text_is_a_message(text: str) -> None:
    assert parse(text) is None


def test_an_unknown_command_suggests_the_nearest_or_the_list() -> None:
    near, far = parse("/hlep"), parse("/xyzzy now")
    assert isinstance(near, Unknown)
    assert near.sentence == "There is no command /hlep: did you mean /help?"
    assert isinstance(far, Unknown)
    assert far.sentence == "There is no command /xyzzy: /help names them all."


def test_words_after_a_command_are_not_dropped_silently() -> None:
    found = parse("/new but first explain this")
    assert isinstance(found, Unknown)
    assert "/new" in found.sentence


@pytest.mark.parametrize(("text", "usage"), [("/rename", "/rename TEXT"), ("/set temp", "/set NAME VALUE")])
def test_a_missing_argument_is_asked_for(text: str, usage: str) -> None:
    found = parse(text)
    assert isinstance(found, Unknown)
    assert usage in found.sentence


def test_no_word_means_two_commands() -> None:
    words = [word for command in Command for word in command.words]
    assert len(words) == len(set(words))


def test_completion_finds_words_and_other_words_and_puts_the_whole_word_first() -> None:
    assert {command for _, command in completions("/")} == set(Command)
    assert completions("/Re") == [
        ("/regenerate", Command.REGENERATE),
        ("/read", Command.ATTACH),
        ("/rewrite", Command.REWRITE),
        ("/resume", Command.CHATS),
        ("/rename", Command.RENAME),
    ]
    assert completions("/set")[0] == ("/set", Command.SET)
    assert [word for word, _ in completions("/set")] == ["/set", "/settings"]


@pytest.mark.parametrize("text", ["", "/x", "/new x", "//", " /n", "/usr/b"])
def test_nothing_is_completed_where_there_is_no_command(text: str) -> None:
    assert completions(text) == []
