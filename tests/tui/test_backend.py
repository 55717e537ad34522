"""The engine behind the app: in a process of its own, and in this one."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest

from localspec.chat.messages import Message
from localspec.chat.service import Wanted
from localspec.engine.engine import Engine, EngineSettings, Options
from localspec.engine.errors import UserError
from localspec.engine.process import EngineDied
from localspec.engine.sampling import Sampling
from localspec.engine.step import Finish, Step
from localspec.engine.stop import Stop
from localspec.tui.backend import AnswerOptions, Backend, EngineBackend, ProcessBackend, engine_loader, process_loader

OPTIONS = Options(Sampling(temperature=0.0), max_tokens=12)
LONG = AnswerOptions(max_tokens=100_000)
HELLO = Message("user", "Hello")


class Report:
    """Everything that loading reports."""

    def __init__(self) -> None:
        self.loaded: dict[str, float] = {}
        self.fetched: list[tuple[str, int, int]] = []
        self.deaths: list[str] = []
        self.goes_on = True

    def fetching(self, phase: str, done: int, total: int) -> None:
        self.fetched.append((phase, done, total))

    def loading(self, what: str, share: float) -> bool:
        self.loaded[what] = share
        return self.goes_on

    def cancelled(self) -> bool:
        return not self.goes_on

    def gone(self, sentence: str) -> None:
        self.deaths.append(sentence)


def ignore(done: int, total: int) -> None:
    """Nobody watches the prompt being read."""


def prepare(target: Path, progress: Callable[[str, int, int], None], cancelled: Callable[[], bool]) -> EngineSettings:
    """What finds a model to load; a function of a module, which a child can be given."""
    progress("downloading", 1, 2)
    assert not cancelled()
    return EngineSettings(target)


def few(engine: Engine) -> Options:
    return Options(max_tokens=engine.context_length // 1024)


def nonsense(engine: Engine) -> Options:
    raise UserError("Temperature 99 makes no sense; give a number from 0 to 10.")


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("logs") / "localspec.log"


@pytest.fixture(scope="module")
def report() -> Report:
    return Report()


@pytest.fixture(scope="module")
def child(tiny_llama: Path, tiny_draft: Path, log: Path, report: Report) -> Iterator[ProcessBackend]:
    backend = process_loader(Wanted(EngineSettings(tiny_llama, tiny_draft), OPTIONS), log)(report)
    assert isinstance(backend, ProcessBackend)
    yield backend
    backend.close()


@pytest.fixture(scope="module")
def here(tiny_llama: Path, tiny_draft: Path) -> Iterator[Backend]:
    backend = engine_loader(Wanted(EngineSettings(tiny_llama, tiny_draft), OPTIONS))(Report())
    yield backend
    backend.close()


@pytest.fixture(params=["child", "here"])
def backend(request: pytest.FixtureRequest) -> Backend:
    """Both must do the same."""
    backend: Backend = request.getfixturevalue(request.param)
    return backend


def tokens(steps: Sequence[Step]) -> list[int]:
    return [token for step in steps for token in step.tokens]


def test_a_pair_is_loaded_with_progress(child: ProcessBackend, report: Report, log: Path) -> None:
    assert report.loaded == {"target": 1.0, "draft": 1.0}
    assert child.pid != os.getpid()
    assert "llama_model_loader" in log.read_text()
    assert report.deaths == []


def test_a_pair_answers(backend: Backend) -> None:
    assert (backend.target, backend.draft, backend.context_length) == ("llama", "draft", 2048)
    read: list[tuple[int, int]] = []
    steps = list(backend.answer([HELLO], lambda done, total: read.append((done, total))))
    assert steps[-1].finish is Finish.LENGTH
    assert read[-1][0] == read[-1][1] > 0
    assert backend.context_used == read[-1][1] + 12
    assert backend.left_out == 0
    assert backend.cost_curve()[1] > 0


def test_answers_are_the_same_in_both_processes(child: Backend, here: Backend) -> None:
    messages = [Message("system", "Be brief."), HELLO, Message("assistant", "Hello ab"), Message("user", "Go on 🙂")]
    for goes_on, seen in ((False, messages), (True, messages[:3])):
        there, ours = (list(one.answer(seen, ignore, goes_on=goes_on)) for one in (child, here))
        assert tokens(there) == tokens(ours)
        assert len(tokens(there)) == 12
        assert "".join(step.text for step in there) == "".join(step.text for step in ours)
        assert {step.pieces for step in there if step.pieces}
    sampled = AnswerOptions(temp=1.0, seed=3, max_tokens=30)
    there, ours = (list(one.answer(messages, ignore, options=sampled)) for one in (child, here))
    assert tokens(there) == tokens(ours)


def test_a_stopped_answer_ends_and_the_next_one_is_whole(backend: Backend) -> None:
    whole = tokens(list(backend.answer([HELLO], ignore)))
    steps, stop = [], Stop()
    for step in backend.answer([HELLO], ignore, options=LONG, stop=stop):
        steps.append(step)
        if len(steps) == 3:
            stop.ask()
    assert steps[-1].finish is Finish.INTERRUPTED
    assert tokens(list(backend.answer([HELLO], ignore))) == whole


def test_a_stop_while_the_prompt_is_read_ends_the_answer_before_its_first_word(backend: Backend) -> None:
    whole = tokens(list(backend.answer([HELLO], ignore)))
    other = Message("user", "Something else " * 60)
    stop = Stop()
    stopped = list(backend.answer([other], lambda done, total: stop.ask(), stop=stop))
    assert [step.finish for step in stopped] == [Finish.INTERRUPTED]
    assert tokens(list(backend.answer([HELLO], ignore))) == whole


def test_an_answer_that_nobody_reads_to_its_end_is_no_part_of_the_next(backend: Backend) -> None:
    whole = tokens(list(backend.answer([HELLO], ignore)))
    answer = backend.answer([HELLO], ignore, options=LONG)
    next(answer)
    answer.close()  # type: ignore[attr-defined]
    assert tokens(list(backend.answer([HELLO], ignore))) == whole


def test_what_cannot_be_answered_is_one_sentence(backend: Backend) -> None:
    with pytest.raises(UserError, match="shorten the text, or choose a larger --ctx"):
        list(backend.answer([Message("user", "too long " * 400)], ignore))
    assert tokens(list(backend.answer([HELLO], ignore)))


def test_turns_that_do_not_fit_are_left_out_and_counted(backend: Backend) -> None:
    turns = [Message("user", "word " * 100), Message("assistant", "word " * 100)] * 3
    seen: list[int] = []
    assert tokens(list(backend.answer([*turns, HELLO], lambda done, total: seen.append(backend.left_out))))
    assert seen[0] == backend.left_out > 0


@pytest.mark.parametrize("kind", ["child", "here"])
def test_what_to_load_may_be_found_out_while_loading(kind: str, tiny_llama: Path, log: Path) -> None:
    report = Report()
    wanted = Wanted(partial(prepare, tiny_llama), few)
    backend = (process_loader(wanted, log) if kind == "child" else engine_loader(wanted))(report)
    try:
        assert report.fetched == [("downloading", 1, 2)]
        assert backend.draft is None
        assert len(tokens(list(backend.answer([HELLO], ignore)))) == 2
    finally:
        backend.close()


def test_loading_that_fails_is_one_sentence(tmp_path: Path, log: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF but not really")
    report = Report()
    for settings, options, says in (
        (EngineSettings(broken), OPTIONS, "broken.gguf"),
        (EngineSettings(tmp_path / "none.gguf"), OPTIONS, "none.gguf"),
    ):
        with pytest.raises(UserError, match=says):
            process_loader(Wanted(settings, options), log)(report)
    assert report.deaths == []


def test_loading_can_be_given_up(tiny_llama: Path, log: Path) -> None:
    report = Report()
    report.goes_on = False
    with pytest.raises(UserError):
        process_loader(Wanted(EngineSettings(tiny_llama), OPTIONS), log)(report)
    assert report.deaths == []


def test_an_engine_that_dies_is_one_sentence_and_can_be_loaded_again(tiny_llama: Path, log: Path) -> None:
    report = Report()
    load = process_loader(Wanted(EngineSettings(tiny_llama), OPTIONS), log)
    backend = load(report)
    assert isinstance(backend, ProcessBackend)
    assert backend.pid
    whole = tokens(list(backend.answer([HELLO], ignore)))
    answer = backend.answer([HELLO], ignore, options=LONG)
    next(answer)
    os.kill(backend.pid, signal.SIGKILL)
    with pytest.raises(EngineDied) as died:
        list(answer)
    assert str(died.value).endswith("your chat is untouched: press ctrl+r to start it again.")
    with pytest.raises(EngineDied):
        list(backend.answer([HELLO], ignore))
    backend.close()
    again = load(report)
    try:
        assert tokens(list(again.answer([HELLO], ignore))) == whole
        assert report.deaths == [str(died.value)]
    finally:
        again.close()


def test_what_cannot_be_sent_to_a_process_is_loaded_in_this_one(tiny_llama: Path, log: Path) -> None:
    backend = process_loader(Wanted(EngineSettings(tiny_llama), lambda engine: OPTIONS), log)(Report())
    try:
        assert isinstance(backend, EngineBackend)
        assert tokens(list(backend.answer([HELLO], ignore)))
    finally:
        backend.close()


def test_options_that_make_no_sense_keep_nothing_loaded(tiny_llama: Path, log: Path) -> None:
    with pytest.raises(UserError, match="Temperature 99"):
        process_loader(Wanted(EngineSettings(tiny_llama), nonsense), log)(Report())
