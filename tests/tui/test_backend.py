"""The engine behind the app."""

from collections.abc import Callable
from pathlib import Path

import pytest

from localspec.engine.engine import Engine, EngineSettings, Options
from localspec.engine.errors import UserError
from localspec.engine.sampling import Sampling
from localspec.engine.step import Finish
from localspec.tui.backend import Backend, engine_loader

OPTIONS = Options(sampling=Sampling(temperature=0.0), max_tokens=12)


class Report:
    """Everything that loading reports."""

    def __init__(self) -> None:
        self.loaded: dict[str, float] = {}
        self.fetched: list[tuple[str, int, int]] = []

    def fetching(self, phase: str, done: int, total: int) -> None:
        self.fetched.append((phase, done, total))

    def loading(self, what: str, share: float) -> bool:
        self.loaded[what] = share
        return True

    def cancelled(self) -> bool:
        return False


def ignore(done: int, total: int) -> None:
    """Nobody watches the prompt being read."""


def write(backend: Backend, words: str) -> str:
    return "".join(step.text for step in backend.ask(words, ignore))


def test_a_pair_is_loaded_with_progress_and_answers(tiny_llama: Path, tiny_draft: Path) -> None:
    report = Report()
    backend = engine_loader(EngineSettings(tiny_llama, tiny_draft), OPTIONS, None)(report)
    try:
        assert (backend.target, backend.draft) == ("llama", "draft")
        assert report.loaded == {"target": 1.0, "draft": 1.0}
        assert backend.context_length == 2048
        assert backend.context_used == 0
        read: list[tuple[int, int]] = []
        steps = list(backend.ask("Hello", lambda done, total: read.append((done, total))))
        assert steps[-1].finish is Finish.LENGTH
        assert read[-1][0] == read[-1][1] > 0
        assert backend.context_used == read[-1][1] + 12
    finally:
        backend.close()


def test_settings_and_options_may_be_found_out_while_loading(tiny_llama: Path) -> None:
    report = Report()

    def prepare(progress: Callable[[str, int, int], None], cancelled: Callable[[], bool]) -> EngineSettings:
        progress("downloading", 1, 2)
        assert not cancelled()
        return EngineSettings(tiny_llama)

    def options(engine: Engine) -> Options:
        return Options(max_tokens=engine.context_length // 1024)

    backend = engine_loader(prepare, options, None)(report)
    try:
        assert report.fetched == [("downloading", 1, 2)]
        assert backend.draft is None
        assert sum(len(step.tokens) for step in backend.ask("Hello", ignore)) == 2
    finally:
        backend.close()


def test_a_new_conversation_answers_like_the_first_time(tiny_llama: Path) -> None:
    backend = engine_loader(EngineSettings(tiny_llama), OPTIONS, "Be brief.")(Report())
    try:
        first = write(backend, "Hello")
        assert write(backend, "Hello") != first
        backend.restart()
        assert write(backend, "Hello") == first
    finally:
        backend.close()


def test_a_stopped_answer_ends_and_the_next_one_is_whole(tiny_llama: Path) -> None:
    backend = engine_loader(EngineSettings(tiny_llama), Options(sampling=Sampling(temperature=0.0)), None)(Report())
    try:
        steps = []
        for step in backend.ask("Hello", ignore):
            steps.append(step)
            if len(steps) == 3:
                backend.stop()
        assert steps[-1].finish is Finish.INTERRUPTED
        assert len(steps) <= 5
        assert next(iter(backend.ask("Go on", ignore))).tokens
    finally:
        backend.close()


def test_a_turn_stopped_before_the_first_word_is_forgotten(tiny_llama: Path) -> None:
    backend = engine_loader(EngineSettings(tiny_llama), OPTIONS, None)(Report())
    try:
        whole = write(backend, "Hello")
        backend.restart()
        stopped = list(backend.ask("Something else " * 60, lambda done, total: backend.stop()))
        assert [step.finish for step in stopped] == [Finish.INTERRUPTED]
        assert write(backend, "Hello") == whole
    finally:
        backend.close()


def test_a_failure_while_finding_the_options_frees_the_engine(
    tiny_llama: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[Engine] = []
    close = Engine.close
    monkeypatch.setattr(Engine, "close", lambda engine: (closed.append(engine), close(engine)))

    def options(engine: Engine) -> Options:
        raise UserError("Temperature 99 makes no sense; give a number from 0 to 10.")

    with pytest.raises(UserError, match="Temperature 99"):
        engine_loader(EngineSettings(tiny_llama), options, None)(Report())
    assert len(closed) == 1
