"""Answers to a rewriting that a test makes up, step by step, as an engine would."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from localspec.chat.rewrite import Event, OnPrompt, PartDone, PartFailed, Request, Rewriting, Wrote
from localspec.engine.step import Finish, Step, closing_step

DRIVER = """
import sys
import localspec.rewrite
from localspec.cli import cli
from rewriting import Answers

answers, wait_at = Answers(str.upper, size=2000), int(sys.argv[1])

def ask(writer, request, on_prompt):
    if len(answers.requests) == wait_at:
        print("there", flush=True)
        sys.stdin.read()
    return answers(request, on_prompt)

localspec.rewrite._Writer.ask = ask
cli(sys.argv[2:])
"""
"""The command, with answers in capital letters, that waits at the request whose number is its first argument."""


def steps_of(text: str, finish: Finish = Finish.STOP, size: int = 5) -> Iterator[Step]:
    """An answer in steps of so many characters."""
    for at in range(0, len(text), size):
        last = at + size >= len(text)
        yield Step((1, 2), text[at : at + size], "lookup", 1, 1, 2, 0.0, 1.0, 0.1, 0.1, finish if last else None)
    if not text:
        yield closing_step(finish)


class Answers:
    """Answers every request with what `write` makes of its document, and remembers the requests."""

    def __init__(self, write: Callable[[str], str] = lambda document: document, size: int = 5) -> None:
        self.write, self.size = write, size
        self.requests: list[Request] = []
        self.interrupt_at: int | None = None
        """The request that is interrupted in its middle."""
        self.closed = 0

    def __call__(self, request: Request, on_prompt: OnPrompt) -> Iterator[Step]:
        self.requests.append(request)
        on_prompt(0, 10)
        on_prompt(10, 10)
        text = self.write(request.document).removeprefix(request.begun)
        try:
            if self.interrupt_at == len(self.requests) - 1:
                yield from list(steps_of(text[: len(text) // 2], size=self.size))[:-1]
                yield closing_step(Finish.INTERRUPTED)
                return
            yield from steps_of(text, size=self.size)
        finally:
            self.closed += 1


def estimate(text: str) -> int:
    """Tokens, about."""
    return len(text) // 4 + 1


def result(events: Sequence[Event]) -> str:
    """The text that a rewriting has given, after a look at whether its steps told the same."""
    parts, written = [], ""
    for event in events:
        if isinstance(event, Wrote):
            written += event.text
        elif isinstance(event, PartDone):
            assert written in (event.text, "")
            parts.append(event.text)
            written = ""
        elif isinstance(event, PartFailed):
            parts.append(event.text)
            written = ""
    return "".join(parts)


def rewritten(source: str, answers: Answers, context: int = 2000, instruction: str = "Do it.") -> str:
    """`source` rewritten, no part of it in vain."""
    events = list(Rewriting(source, instruction, answers, estimate, context))
    # A part that failed has its source text, and would pass for a copy.
    assert [event.reason for event in events if isinstance(event, PartFailed)] == []
    return result(events)
