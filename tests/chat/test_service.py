"""Messages in, steps out: what the model is given to read, and where it goes on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from localspec.chat.answer_options import AnswerOptions
from localspec.chat.messages import Message
from localspec.chat.service import Answerer, Wanted
from localspec.engine.engine import Engine, EngineSettings, Options
from localspec.engine.errors import UserError
from localspec.engine.sampling import Sampling
from localspec.engine.step import Finish, Step
from localspec.engine.stop import Stop

GREEDY = Sampling(temperature=0.0)
LENGTH = 24
OPTIONS = Options(GREEDY, drafter="none", max_tokens=LENGTH)
HELLO = Message("user", "Hello")


@pytest.fixture(scope="module")
def engine(tiny_llama: Path) -> Iterator[Engine]:
    with Engine(EngineSettings(tiny_llama, threads=1, context_length=512)) as engine:
        yield engine


@pytest.fixture
def answerer(engine: Engine) -> Answerer:
    return Answerer(engine, OPTIONS, None)


def ignore(done: int, total: int) -> None:
    """Nobody watches the prompt being read."""


def written(steps: Sequence[Step]) -> tuple[list[int], str]:
    return [token for step in steps for token in step.tokens], "".join(step.text for step in steps)


def prompt(engine: Engine) -> str:
    """What the last answer began with, special tokens left out."""
    return engine.target.vocabulary.text(list(engine.stream[: engine.prompt_tokens]))


def test_the_system_prompt_of_the_start_is_for_chats_without_one(engine: Engine) -> None:
    answerer = Answerer(engine, OPTIONS, "Be brief.")
    for messages, read in (
        ([HELLO], "system\nBe brief.\nuser\nHello\nassistant\n"),
        ([Message("system", "Be long."), HELLO], "system\nBe long.\nuser\nHello\nassistant\n"),
        ([Message("system", ""), HELLO], "user\nHello\nassistant\n"),
    ):
        next(answerer.answer(messages, ignore))
        assert prompt(engine) == read


def test_options_of_one_answer_are_not_those_of_the_next(answerer: Answerer) -> None:
    whole = written(list(answerer.answer([HELLO], ignore)))
    short = list(answerer.answer([HELLO], ignore, options=AnswerOptions(max_tokens=3)))
    assert written(short)[0] == whole[0][:3]
    hot = AnswerOptions(temp=2.0, top_k=0, top_p=1.0, min_p=0.0, repeat_penalty=1.2, seed=7)
    drawn = [written(list(answerer.answer([HELLO], ignore, options=hot))) for _ in range(2)]
    assert drawn[0] == drawn[1] != whole
    assert written(list(answerer.answer([HELLO], ignore))) == whole


def test_options_that_make_no_sense_are_one_sentence(answerer: Answerer) -> None:
    with pytest.raises(UserError, match="temperature 99"):
        next(answerer.answer([HELLO], ignore, options=AnswerOptions(temp=99.0)))
    with pytest.raises(UserError, match="is not a drafter"):
        next(answerer.answer([HELLO], ignore, options=AnswerOptions(drafter="magic")))


def test_a_cut_off_answer_goes_on_with_the_same_tokens(answerer: Answerer) -> None:
    """Also where its text does not become these tokens again: a random model writes few whole characters."""
    tokens, text = written(list(answerer.answer([HELLO], ignore)))
    vocabulary = answerer.engine.target.vocabulary
    assert vocabulary.tokenize(text, special=False) != tokens
    begun: list[int] = []
    so_far = ""
    for _ in range(LENGTH // 4):
        messages = [HELLO, Message("assistant", so_far)]
        more = written(list(answerer.answer(messages, ignore, goes_on=True, options=AnswerOptions(max_tokens=4))))
        begun, so_far = begun + more[0], so_far + more[1]
    assert begun == tokens


def test_a_stopped_answer_goes_on_as_if_it_had_not_been(answerer: Answerer) -> None:
    tokens, _ = written(list(answerer.answer([HELLO], ignore)))
    steps: list[Step] = []
    stop = Stop()
    for step in answerer.answer([HELLO], ignore, stop=stop):
        steps.append(step)
        if len(steps) == 7:
            stop.ask()
    assert steps[-1].finish is Finish.INTERRUPTED
    begun, text = written(steps)
    more = list(answerer.answer([HELLO, Message("assistant", text)], ignore, goes_on=True))
    assert (begun + written(more)[0])[:LENGTH] == tokens
    assert answerer.engine.reused_tokens >= answerer.engine.prompt_tokens - 2


@pytest.mark.parametrize("stopped", [True, False])
def test_half_a_character_is_written_again(answerer: Answerer, monkeypatch: pytest.MonkeyPatch, stopped: bool) -> None:
    """Its text is a replacement character, which stays where it is; the model does not read it."""
    halves = list("ab😀".encode())[:-1]
    end = Step((), "\ufffd", "none", 0, 0, 0, 0.0, 0.0, 0.0, 0.0, Finish.INTERRUPTED)
    cut = replace(
        end, tokens=tuple(halves), text="ab" if stopped else "ab\ufffd", finish=None if stopped else Finish.LENGTH
    )
    generate = answerer.engine.generate
    monkeypatch.setattr(answerer.engine, "generate", lambda *_, **__: iter([cut, end] if stopped else [cut]))
    _, text = written(list(answerer.answer([HELLO], ignore)))
    monkeypatch.setattr(answerer.engine, "generate", generate)
    assert text == "ab\ufffd"
    tokens, rest = written(list(answerer.answer([HELLO, Message("assistant", text)], ignore, goes_on=True)))
    engine = answerer.engine
    assert prompt(engine).endswith("assistant\nab")
    read = list(engine.stream[: engine.prompt_tokens])
    # What has been written since goes on by its tokens.
    next(answerer.answer([HELLO, Message("assistant", text + rest)], ignore, goes_on=True))
    assert list(engine.stream[: engine.prompt_tokens]) == read + tokens


def test_an_answer_from_elsewhere_goes_on_behind_its_text(answerer: Answerer) -> None:
    text = "Hi <|im_end|> there, ab"
    next(answerer.answer([HELLO, Message("assistant", text)], ignore, goes_on=True))
    read = list(answerer.engine.stream[: answerer.engine.prompt_tokens])
    vocabulary = answerer.engine.target.vocabulary
    expected = "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n"
    assert read == vocabulary.tokenize(expected, special=True) + vocabulary.tokenize(text, special=False)


def test_only_an_answer_can_go_on(answerer: Answerer) -> None:
    for messages in ([HELLO], []):
        with pytest.raises(UserError, match="no answer to go on with"):
            next(answerer.answer(messages, ignore, goes_on=True))


def test_the_oldest_turns_make_room(engine: Engine) -> None:
    answerer = Answerer(engine, OPTIONS, "Be brief.")
    turns = [
        message
        for number in range(6)
        for message in (Message("user", f"question {number} " * 6), Message("assistant", f"answer {number} " * 4))
    ]
    seen: list[int] = []
    steps = list(answerer.answer([*turns, HELLO], lambda done, total: seen.append(answerer.left_out)))
    assert steps[-1].finish is Finish.LENGTH
    assert answerer.left_out > 0
    assert set(seen) == {answerer.left_out}
    assert answerer.left_out % 2 == 0
    read = prompt(engine)
    assert read.startswith("system\nBe brief.\nuser\nquestion")
    assert "question 0" not in read and "question 5" in read
    assert read.endswith("user\nHello\nassistant\n")
    list(answerer.answer([HELLO], ignore))
    assert answerer.left_out == 0


def test_what_was_read_of_a_chat_is_not_read_again_by_another_engine(tiny_llama: Path, tmp_path: Path) -> None:
    settings = EngineSettings(tiny_llama, threads=1)
    messages = [Message("user", "long " * 150)]
    answers = []
    for reused in (False, True):
        with Engine(settings) as engine:
            answerer = Answerer(engine, OPTIONS, None, tmp_path)
            answers.append(written(list(answerer.answer(messages, ignore, chat=7))))
            assert (engine.reused_tokens == engine.prompt_tokens - 1) == reused
            answerer.keep(lambda: False)
    assert answers[0] == answers[1]


def test_only_chats_of_the_store_are_kept_and_only_when_they_have_grown(
    tiny_llama: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved: list[int] = []
    save = Engine.save_state
    monkeypatch.setattr(
        Engine, "save_state", lambda engine, *args: saved.append(len(engine.stream)) or save(engine, *args)
    )
    with Engine(EngineSettings(tiny_llama, threads=1)) as engine:
        answerer = Answerer(engine, OPTIONS, None, tmp_path)
        for words, chat, times in (
            ("long " * 150, None, 0),
            ("long " * 150, 1, 1),
            ("long " * 150 + "again", 1, 1),
            ("long " * 250, 1, 2),
            ("other " * 120, 2, 3),
        ):
            list(answerer.answer([Message("user", words)], ignore, chat=chat))
            answerer.keep(lambda: False)
            assert len(saved) == times


def test_a_chat_that_could_not_be_read_is_not_kept_with_the_caches_of_another(tiny_llama: Path, tmp_path: Path) -> None:
    with Engine(EngineSettings(tiny_llama, threads=1, context_length=1024)) as engine:
        answerer = Answerer(engine, OPTIONS, None, tmp_path)
        list(answerer.answer([Message("user", "long " * 150)], ignore, chat=1))
        with pytest.raises(UserError, match="context"):
            next(answerer.answer([Message("user", "long " * 300)], ignore, chat=2))
        answerer.keep(lambda: False)
        assert not list(tmp_path.rglob("chat-2*"))
        list(answerer.answer([Message("user", "other " * 120)], ignore, chat=2))
        answerer.keep(lambda: False)
        assert list(tmp_path.rglob("chat-2*"))


def test_loading_frees_the_engine_when_its_options_make_no_sense(
    tiny_llama: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[Engine] = []
    close = Engine.close
    monkeypatch.setattr(Engine, "close", lambda engine: (closed.append(engine), close(engine)))

    class Report:
        def fetching(self, phase: str, done: int, total: int) -> None: ...

        def loading(self, what: str, share: float) -> bool:
            return True

        def cancelled(self) -> bool:
            return False

    def options(engine: Engine) -> Options:
        raise UserError("Temperature 99 makes no sense; give a number from 0 to 10.")

    with pytest.raises(UserError, match="Temperature 99"):
        Wanted(EngineSettings(tiny_llama), options).load(Report())
    assert len(closed) == 1
