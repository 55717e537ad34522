"""What is a slash command, and what is only text that begins with a slash."""

import difflib
import re
from dataclasses import dataclass
from enum import Enum


class Command(Enum):
    """A thing to do: the word for it, what it does, what is written after it, and other words for it."""

    HELP = ("/help", "keys, commands, and what the figures mean", "", ("/?",))
    NEW = ("/new", "begin a new chat")
    STOP = ("/stop", "stop the answer; what is written stays")
    REGENERATE = ("/regenerate", "answer the last message again", "", ("/regen",))
    EDIT = ("/edit", "change your last message and go on from there")
    CONTINUE = ("/continue", "go on with the last answer")
    COPY = ("/copy", "copy the last answer")
    CODE = ("/code", "copy the last block of code in the answer, or the one with this number", "[NUMBER]")
    BRANCH = ("/branch", "say which versions of the last message there are, or show one", "[NUMBER]")
    ATTACH = ("/attach", "attach a file", "PATH", ("/read",))
    REWRITE = ("/rewrite", "rewrite a document, and review what has changed", "[INSTRUCTION]")
    CHATS = ("/chats", "earlier chats: search, open, rename, delete", "", ("/resume",))
    RENAME = ("/rename", "give this chat a name", "TEXT")
    EXPORT = ("/export", "write this chat to a file", "[FILE]")
    SYSTEM = ("/system", "tell the model who to be, before all messages", "TEXT")
    SET = ("/set", "change one setting, such as: /set temp 0.7", "NAME VALUE")
    MODELS = ("/models", "see, download and delete models, and choose who answers")
    MODEL = ("/model", "answer with another model or pair; the chat stays", "[NAME]")
    DRAFT = ("/draft", "draft with another model, or with none", "NAME")
    SETTINGS = ("/settings", "see and change all settings")
    COLORS = ("/colors", "color the words by who drafted them")
    SPECULATION = ("/speculation", "show or hide the figures of speculation")
    COSTS = ("/costs", "what a pass of the model costs on this machine")
    THEME = ("/theme", "choose the colors of the screen")
    QUIT = ("/quit", "leave", "", ("/exit", "/bye"))

    def __init__(self, word: str, description: str, argument: str = "", aliases: tuple[str, ...] = ()) -> None:
        self.word = word
        self.description = description
        self.argument = argument
        """How what follows is written in the help: nothing, or in brackets where it may be left out."""
        self.aliases = aliases

    @property
    def words(self) -> tuple[str, ...]:
        """Everything it can be called."""
        return (self.word, *self.aliases)

    @property
    def usage(self) -> str:
        """How it is written."""
        return f"{self.word} {self.argument}".rstrip()

    @property
    def needs_argument(self) -> bool:
        """Whether it can do nothing alone."""
        return bool(self.argument) and not self.argument.startswith("[")


@dataclass(frozen=True)
class Call:
    """A command as it was written."""

    command: Command
    argument: str = ""
    """What stands after the word, without the blanks around it."""


@dataclass(frozen=True)
class Unknown:
    """A command that does not exist, or not like this."""

    sentence: str
    """What is wrong and what to write instead."""


_COMMANDS = {word: command for command in Command for word in command.words}
# One word at the very start, before a blank or the end: /usr/bin is a path, and text; so is //x, and what follows a blank.
_WORD = re.compile(r"/[\w?-]+(?=\s|$)")
_BEGINNING = re.compile(r"/[\w?-]*")
_SHOWN_CHARACTERS = 40


def parse(text: str) -> Call | Unknown | None:
    """What `text` asks the app to do; None for a message to the model."""
    found = _WORD.match(text)
    if not found:
        return None
    word, argument = found[0].lower(), text[found.end() :].strip()
    command = _COMMANDS.get(word)
    if command is None:
        near = difflib.get_close_matches(word, _COMMANDS, n=1)
        remedy = f"did you mean {near[0]}?" if near else "/help names them all."
        return Unknown(f"There is no command {found[0][:_SHOWN_CHARACTERS]}: {remedy}")
    if argument and not command.argument:
        return Unknown(f"{word} takes nothing after it: write {word} alone.")
    if command.needs_argument and len(argument.split()) < len(command.argument.split()):
        return Unknown(f"{word} needs something after it: write {command.usage}.")
    return Call(command, argument)


def completions(text: str) -> list[tuple[str, Command]]:
    """The commands that begin like `text`, each with the word that does, the one written in full first."""
    if not _BEGINNING.fullmatch(text):
        return []
    start = text.lower()
    found = []
    for command in Command:
        word = next((word for word in command.words if word.startswith(start)), None)
        if word:
            found.append((word, command))
    return sorted(found, key=lambda match: match[0] != start)
