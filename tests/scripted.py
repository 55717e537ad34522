"""A chat with an engine that says what the test tells it to, and a look at what stands on the screen."""

from __future__ import annotations

import html
import re
import threading
from collections.abc import Callable, Iterator, Sequence

from textual.app import App
from textual.pilot import Pilot

from localspec.chat.answer_options import AnswerOptions
from localspec.chat.messages import Message
from localspec.engine.errors import UserError
from localspec.engine.step import Finish, Step
from localspec.engine.stop import Stop
from localspec.tui.app import ChatApp
from localspec.tui.backend import Backend, LoadReport, PromptProgress
from localspec.tui.screens.chat import ChatScreen
from localspec.tui.widgets.answer import Answer
from localspec.tui.widgets.prompt import Prompt

HOLD = "\0hold"
"""In a script: wait here until `go` is set, or the answer is stopped."""

_CELL = 12.2
"""Width of a character in Textual's screenshots."""

STUBBORN = "\0stubborn"
"""The same, but a stop does not end the waiting: a native call that takes its time."""

Script = Sequence[str | Exception]
"""Pieces of text, one for each step; an exception is raised where it stands."""


def step(text: str, finish: Finish | None = None, *, drafted: int = 3) -> Step:
    """A step of two tokens, one of them drafted by lookup (or none, with `drafted` 0)."""
    drafter = "lookup" if drafted else "none"
    return Step((1, 2), text, drafter, drafted, min(1, drafted), 1 + drafted, 0.0, 1.0, 0.1, 0.1, finish)


class ScriptedBackend:
    """Answers the n-th question with the n-th script."""

    target = "big-model"
    draft = "small-model"
    context_length = 1000
    sampling = {"temp": 0.7, "top_k": 40, "top_p": 0.95, "min_p": 0.0, "repeat_penalty": 1.0}
    recommended: tuple[str, ...] = ()
    note: str = ""
    audit: str | None = None

    def __init__(self, *scripts: Script) -> None:
        self.scripts = scripts
        self.asked: list[list[Message]] = []
        self.goes_on: list[bool] = []
        self.chats: list[int | None] = []
        self.options: list[AnswerOptions | None] = []
        self.context_used = 0
        self.left_out = 0
        self.go = threading.Event()
        self.closed = threading.Event()
        self.killed = threading.Event()

    def answer(
        self,
        messages: Sequence[Message],
        on_prompt: PromptProgress,
        *,
        goes_on: bool = False,
        options: AnswerOptions | None = None,
        chat: int | None = None,
        stop: Stop | None = None,
    ) -> Iterator[Step]:
        self.asked.append(list(messages))
        self.chats.append(chat)
        self.goes_on.append(goes_on)
        self.options.append(options)
        stop = stop or Stop()
        script = self.scripts[len(self.asked) - 1]
        on_prompt(0, 10)
        on_prompt(10, 10)
        for number, piece in enumerate(script):
            if isinstance(piece, Exception):
                raise piece
            if piece in (HOLD, STUBBORN):
                while not self.go.wait(0.005) and not (piece == HOLD and stop.asked):
                    pass
                continue
            if stop.asked:
                break
            self.context_used += 2
            yield step(piece, Finish.STOP if number == len(script) - 1 else None)
        if stop.asked:
            yield Step((), "", "none", 0, 0, 0, 0.0, 0.0, 0.0, 0.0, Finish.INTERRUPTED)

    def count(self, text: str) -> int:
        """A token for every word."""
        return len(text.split())

    def cost_curve(self) -> dict[int, float]:
        return {1: 10.0, 2: 12.0, 5: 20.0}

    def last_audit(self) -> str | None:
        return self.audit

    def words(self) -> list[str]:
        """The last message of every question."""
        return [messages[-1].content for messages in self.asked]

    def kill(self) -> None:
        self.killed.set()

    def close(self) -> None:
        self.closed.set()


class SlowLoad:
    """Loading that takes until `go`: then the backend is there, or loading fails."""

    def __init__(self, result: Backend | Exception) -> None:
        self.result = result
        self.go = threading.Event()
        self.begun = threading.Event()
        self.given_up = threading.Event()

    def __call__(self, report: LoadReport) -> Backend:
        report.fetching("downloading", 45_000_000, 90_000_000)
        self.begun.set()
        while not self.go.wait(0.005):
            if not report.loading("target", 0.25):
                self.given_up.set()
                raise RuntimeError("loading was given up")
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


def app_with(*scripts: Script) -> tuple[ChatApp, ScriptedBackend]:
    """An app whose model is there at once."""
    backend = ScriptedBackend(*scripts)
    return ChatApp(lambda report: backend), backend


def failing_app(error: UserError) -> ChatApp:
    """An app whose model cannot be loaded."""

    def load(report: LoadReport) -> Backend:
        raise error

    return ChatApp(load)


def chat(app: App[None]) -> ChatScreen:
    """The chat's own screen, also under a dialog."""
    return next(screen for screen in app.screen_stack if isinstance(screen, ChatScreen))


async def until(pilot: Pilot[None], holds: Callable[[], object]) -> None:
    """Let the app work until `holds`. The limit only keeps a broken test from hanging."""
    for _ in range(2000):
        if holds():
            return
        await pilot.pause(0.01)
    raise AssertionError(f"this never came about; the screen:\n{seen(pilot.app)}")


async def loaded(pilot: Pilot[None]) -> None:
    """Wait until the model can answer. While it loads, the screen says what will be when it "is ready"."""
    await until(pilot, lambda: chat(pilot.app)._loaded)
    await pilot.pause()


async def send(pilot: Pilot[None], text: str) -> None:
    """Put `text` into the prompt and press enter."""
    chat(pilot.app).query_one(Prompt).text = text
    await pilot.press("enter")


async def finished(pilot: Pilot[None], answers: int) -> None:
    """Wait until so many answers are complete and laid out."""
    await until(pilot, lambda: [answer.complete for answer in chat(pilot.app).query(Answer)] == [True] * answers)
    await pilot.pause()


def status_says(app: App[None], words: str) -> bool:
    """Whether `words` stand in the two lines at the bottom."""
    return words in "\n".join(seen(app).splitlines()[-2:])


def said(app: App[None]) -> str:
    """All that is on the screen, line ends and frames left out: where a sentence is broken depends on the names in it."""
    return " ".join(seen(app).replace("│", " ").split())


def seen(app: App[None]) -> str:
    """What is on the screen, line by line."""
    lines: dict[float, dict[float, str]] = {}
    for attributes, text in re.findall(r"<text ([^>]*)>(.*?)</text>", app.export_screenshot(), re.DOTALL):
        place = dict(re.findall(r'\b(x|y)="([\d.]+)"', attributes))
        if "clip-path" in attributes:
            lines.setdefault(float(place["y"]), {})[float(place["x"])] = html.unescape(text).replace("\xa0", " ")
    rows = []
    for y in sorted(lines):
        row = ""
        for x in sorted(lines[y]):
            row = row.ljust(round(x / _CELL)) + lines[y][x]
        rows.append(row.rstrip())
    return "\n".join(rows)
