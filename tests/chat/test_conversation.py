"""What stays of a turn, however its answer ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from localspec.chat.conversation import Conversation
from localspec.chat.messages import Document
from localspec.engine.engine import Engine, EngineSettings, Options
from localspec.engine.errors import ContextFullError, UserError
from localspec.engine.llama.library import lib
from localspec.engine.sampling import Sampling
from localspec.engine.step import Finish, Step

GREEDY = Sampling(temperature=0.0)
OPTIONS = Options(GREEDY, max_tokens=12)
LONG = "Something else " * 60


class Scripted:
    """An engine that answers with given steps, and then perhaps breaks; all else is the real one's."""

    def __init__(self, engine: Engine, *steps: Step, error: Exception | None = None) -> None:
        self.target, self._steps, self._error = engine.target, steps, error
        self.asked: list[Options] = []

    def generate(
        self, prompt: list[int], options: Options, on_prompt: object, *, documents: object, stop: object
    ) -> Iterator[Step]:
        self.asked.append(options)
        yield from self._steps
        if self._error:
            raise self._error


def step(text: str, finish: Finish | None = None) -> Step:
    return Step((1,), text, "none", 0, 0, 1, 0.0, 1.0, 0.0, 0.0, finish)


@pytest.fixture(scope="module")
def engine(tiny_llama: Path) -> Iterator[Engine]:
    with Engine(EngineSettings(tiny_llama, threads=1)) as engine:
        yield engine


@pytest.fixture
def scripted(engine: Engine) -> Callable[..., Conversation]:
    """A conversation of one turn, whose next answer is made of given steps."""

    def conversation(*steps: Step, error: Exception | None = None) -> Conversation:
        conversation = Conversation(engine)
        list(conversation.ask("Hello", OPTIONS))
        assert [message.role for message in conversation.messages] == ["user", "assistant"]
        conversation.engine = Scripted(engine, *steps, error=error)  # type: ignore[assignment]
        return conversation

    return conversation


def turns(conversation: Conversation) -> list[tuple[str, str]]:
    """Those behind the first."""
    return [(message.role, message.content) for message in conversation.messages[2:]]


def test_an_answer_is_the_next_turn(engine: Engine) -> None:
    conversation = Conversation(engine, "Be brief.")
    first = "".join(step.text for step in conversation.ask("Hello", OPTIONS, [Document("notes", "one")]))
    list(conversation.ask("Go on", OPTIONS))
    messages = conversation.messages
    assert [message.role for message in messages] == ["user", "assistant", "user", "assistant"]
    assert "notes" in messages[0].content and messages[0].content.endswith("Hello")
    assert (messages[1].content, messages[2].content) == (first, "Go on")
    assert conversation.totals.finish is Finish.LENGTH


def test_stop_strings_of_the_template_join_those_of_the_options(scripted: Callable[..., Conversation]) -> None:
    conversation = scripted(step("", Finish.STOP))
    list(conversation.ask("Go on", Options(GREEDY, stop=("END",))))
    (asked,) = conversation.engine.asked  # type: ignore[attr-defined]
    assert asked.stop == ("END", *conversation.template.stop_strings)


def test_what_was_written_before_a_stop_stays(engine: Engine) -> None:
    conversation, text = Conversation(engine), ""
    for number, written in enumerate(conversation.ask("Hello", Options(GREEDY))):
        text += written.text
        if number == 3:
            engine.stop()
    assert text
    assert [message.content for message in conversation.messages] == ["Hello", text]


def test_a_turn_stopped_while_its_prompt_is_read_is_taken_back(engine: Engine) -> None:
    conversation = Conversation(engine)
    steps = list(conversation.ask(LONG, OPTIONS, on_prompt=lambda done, total: engine.stop()))
    assert [step.finish for step in steps] == [Finish.INTERRUPTED]
    assert conversation.messages == []


def test_a_turn_that_does_not_fit_is_taken_back(engine: Engine) -> None:
    conversation = Conversation(engine)
    with pytest.raises(ContextFullError):
        list(conversation.ask(LONG * 10, OPTIONS))
    assert conversation.messages == []


def test_a_turn_whose_pass_fails_is_taken_back(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    conversation = Conversation(engine)
    list(conversation.ask("Hello", OPTIONS))
    with monkeypatch.context() as patch, pytest.raises(Exception, match="llama_decode failed with -3"):
        patch.setattr(lib, "llama_decode", lambda context, batch: -3)
        list(conversation.ask("Go on", OPTIONS))
    assert turns(conversation) == []
    list(conversation.ask("Go on", OPTIONS))
    assert [role for role, _ in turns(conversation)] == ["user", "assistant"]


@pytest.mark.parametrize("error", [UserError("No."), RuntimeError("broken")])
def test_what_was_written_before_a_failure_stays(scripted: Callable[..., Conversation], error: Exception) -> None:
    conversation = scripted(step("some"), step("thing"), error=error)
    with pytest.raises(type(error)):
        list(conversation.ask("Go on", OPTIONS))
    assert turns(conversation) == [("user", "Go on"), ("assistant", "something")]
    conversation = scripted(step(""), error=error)
    with pytest.raises(type(error)):
        list(conversation.ask("Go on", OPTIONS))
    assert turns(conversation) == []


def test_an_answer_that_nobody_reads_on_keeps_what_was_read(scripted: Callable[..., Conversation]) -> None:
    for text, kept in (("", []), ("some", [("user", "Go on"), ("assistant", "some")])):
        conversation = scripted(step(text), step("more"))
        answer = conversation.ask("Go on", OPTIONS)
        next(answer)
        answer.close()
        assert turns(conversation) == kept


def test_a_model_with_nothing_to_say_has_answered(scripted: Callable[..., Conversation]) -> None:
    conversation = scripted(step("", Finish.STOP))
    list(conversation.ask("Go on", OPTIONS))
    assert turns(conversation) == [("user", "Go on"), ("assistant", "")]


def test_an_empty_turn_is_refused(engine: Engine) -> None:
    conversation = Conversation(engine)
    with pytest.raises(UserError, match="The prompt is empty"):
        next(conversation.ask("  ", OPTIONS))
    assert conversation.messages == []
