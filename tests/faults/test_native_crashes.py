"""Native code that ends the process it runs in: one sentence, no word lost, and it can be started again."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import native_faults
import pytest
from faulty_command import WAYS, execute
from native_faults import DEATHS

from localspec.chat.messages import Message
from localspec.chat.service import Wanted
from localspec.chat.store import STORE_FILE, Store
from localspec.engine.engine import EngineSettings, Options
from localspec.engine.errors import NO_MEMORY, UserError
from localspec.engine.llama import model
from localspec.engine.process import EngineDied, Host, Link
from localspec.engine.sampling import Sampling
from localspec.engine.stop import Stop
from localspec.tui.app import ChatApp
from localspec.tui.backend import REMEDY, Backend, process_loader
from localspec.tui.widgets.prompt import Prompt
from scripted import chat, finished, seen, send, until

OPTIONS = Options(Sampling(temperature=0.0), drafter="none", max_tokens=12)
HELLO = Message("user", "Hello")
MOMENTS = ("load", "prompt", "step")

Inject = Callable[[str], Path]


@pytest.fixture
def inject(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Inject:
    """Have a fault come once, in processes that begin from here on; returns the file that is there when it has come."""

    def inject(fault: str) -> Path:
        once = tmp_path / "the fault has been"
        monkeypatch.setenv(native_faults.VARIABLE, fault)
        monkeypatch.setenv(native_faults.ONCE, str(once))
        once.unlink(missing_ok=True)
        return once

    return inject


class Report:
    """Where loading reports; remembers deaths."""

    def __init__(self) -> None:
        self.deaths: list[str] = []

    def fetching(self, phase: str, done: int, total: int) -> None:
        pass

    def loading(self, what: str, share: float) -> bool:
        return True

    def cancelled(self) -> bool:
        return False

    def gone(self, sentence: str) -> None:
        self.deaths.append(sentence)


def prepare(model: Path, progress: object, cancelled: object) -> EngineSettings:
    return EngineSettings(model)


def wanted(model: Path) -> Wanted:
    return Wanted(partial(native_faults.faulty, partial(prepare, model)), OPTIONS)


def written(backend: Backend, text: list[str]) -> None:
    for step in backend.answer([HELLO], lambda done, total: None):
        text.append(step.text)


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("kind", ["segfault", "real abort"])
def test_the_engine_dies_and_is_loaded_again(
    kind: str, moment: str, inject: Inject, tiny_llama: Path, tmp_path: Path
) -> None:
    once, report, before = inject(f"{kind}:{moment}"), Report(), []
    load = process_loader(wanted(tiny_llama), tmp_path / "log")
    with pytest.raises(EngineDied) as died:
        backend = load(report)
        try:
            written(backend, before)
        finally:
            backend.close()
    assert str(died.value) == f"The engine has stopped working (signal {DEATHS[kind]}, see the log file); {REMEDY}."
    assert once.exists()
    assert bool("".join(before)) == (moment == "step")
    # The log says where.
    assert "Fatal Python error" in (tmp_path / "log").read_text()
    again, after = load(report), []
    try:
        written(again, after)
    finally:
        again.close()
    assert "".join(after).startswith("".join(before))


@pytest.mark.parametrize("kind", sorted(set(DEATHS) - {"segfault", "real abort"}))
def test_every_kind_of_death_is_one_sentence(kind: str, inject: Inject, tiny_llama: Path, tmp_path: Path) -> None:
    inject(f"{kind}:step")
    backend = process_loader(wanted(tiny_llama), tmp_path / "log")(Report())
    text: list[str] = []
    try:
        with pytest.raises(EngineDied, match=f"signal {DEATHS[kind]}"):
            written(backend, text)
    finally:
        backend.close()
    assert "".join(text)


@pytest.mark.parametrize("moment", MOMENTS)
def test_memory_that_python_cannot_get_is_one_sentence_too(
    moment: str, inject: Inject, tiny_llama: Path, tmp_path: Path
) -> None:
    inject(f"memory:{moment}")
    load = process_loader(wanted(tiny_llama), tmp_path / "log")
    with pytest.raises(UserError) as caught:
        backend = load(Report())
        try:
            written(backend, [])
        finally:
            backend.close()
    assert str(caught.value) == NO_MEMORY


@pytest.mark.parametrize(("kind", "moment"), [("abort", "load"), ("segfault", "prompt"), ("real abort", "step")])
async def test_the_chat_goes_on(kind: str, moment: str, inject: Inject, tiny_llama: Path, tmp_path: Path) -> None:
    once = inject(f"{kind}:{moment}")
    app = ChatApp(process_loader(wanted(tiny_llama), tmp_path / "log"), tmp_path / "data")
    async with app.run_test(size=(100, 30)) as pilot:
        if moment != "load":
            await until(pilot, lambda: chat(app)._loaded)
            await send(pilot, "Hello")
        await until(pilot, lambda: once.exists() and "has stopped working" in seen(app))
        screen = chat(app)
        screen.query_one(Prompt).text = "half a thought"
        begun = screen._chat.thread.path()
        await until(pilot, lambda: screen._asked is None)
        await pilot.press("ctrl+r")
        await until(pilot, lambda: screen._loaded)
        assert screen.query_one(Prompt).text.startswith("half a thought")
        if moment == "step":
            assert [entry.text for entry in screen._chat.thread.path()] == [entry.text for entry in begun]
            assert begun[0].text == "Hello"
            assert begun[1].text
        answers = len(list(screen.query("Answer")))
        await send(pilot, "and again")
        await finished(pilot, answers + 1)
        if moment == "prompt":
            # Nothing was answered: the question is still there, one way or the other.
            assert "Hello" in seen(app)
    app.worker.join()
    app.close_store()
    with Store(tmp_path / "data" / STORE_FILE) as store:
        kept = [entry.text for entry in store.load(1).thread.path()]
    if moment == "step":
        assert kept[:2] == ["Hello", begun[1].text]


class Deaf:
    """A service that nobody can talk to any more."""

    def __init__(self, link: Link) -> None:
        pass

    def take(self, words: str) -> Iterator[int]:
        yield len(words)

    def stop(self) -> None:
        pass

    def idle(self, unwanted: Callable[[], bool]) -> None:
        pass

    def close(self) -> None:
        pass


def test_stopping_one_that_hears_nothing_does_not_wait_for_it(tmp_path: Path) -> None:
    """More is on its way than a pipe holds, and nobody reads it."""
    host = Host(Deaf, (), log_file=tmp_path / "log", remedy="again")
    list(host.start())
    assert list(host.call("take", "x" * 5_000_000)) == [5_000_000]
    os.kill(host.pid, signal.SIGSTOP)
    sentences, stop = list[str](), Stop()

    def ask() -> None:
        try:
            list(host.call("take", "x" * 5_000_000, stop=stop))
        except EngineDied as error:
            sentences.append(str(error))

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    stopping = threading.Thread(target=stop.ask, daemon=True)
    stopping.start()
    stopping.join(20)
    assert not stopping.is_alive()
    host.kill()
    asking.join(20)
    assert sentences == ["The engine has stopped working (it did not stop and was ended, see the log file); again."]
    host.close()


# The commands.


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("kind", "moment"), [("abort", "load"), ("real segfault", "step")])
def test_run(way: str, kind: str, moment: str, inject: Inject, tiny_llama: Path, own_folders: Path) -> None:
    inject(f"{kind}:{moment}")
    options = ("run", "-m", tiny_llama, "--temp", 0, "--drafter", "none", "--max-tokens", 12, "Hello")
    outcome = execute(*options, way=way)
    log = own_folders / "log" / "localspec.log"
    assert outcome.code == 1
    assert outcome.sentence.startswith(f"The engine has stopped working (signal {DEATHS[kind]}, see {log}); ")
    assert bool(outcome.out) == (moment == "step")
    assert "Fatal Python error" in log.read_text()
    if kind == "abort":
        assert "GGML_ASSERT(injected) failed" in log.read_text()
    again = execute(*options, way=way)
    assert (again.code, again.err) == (0, "")
    assert again.out.startswith(outcome.out)


@pytest.mark.parametrize(
    "command",
    [
        ("bench", "--limit", 1, "--max-tokens", 12, "--arms", "plain,lookup", "--json"),
        ("doctor", "--json"),
        ("run", "--json", "--max-tokens", 12, "Hello"),
    ],
)
def test_documents_are_whole_or_not_there(command: tuple[object, ...], inject: Inject, tiny_llama: Path) -> None:
    name, *options = command
    inject("terminate:load")
    outcome = execute(name, "-m", tiny_llama, *options)
    assert (outcome.code, outcome.out) == (1, "")
    assert "signal 6" in outcome.sentence


def test_memory_that_runs_out_in_a_command(inject: Inject, tiny_llama: Path) -> None:
    inject("memory:step")
    outcome = execute("run", "-m", tiny_llama, "--drafter", "none", "Hello")
    assert (outcome.code, outcome.sentence) == (1, NO_MEMORY)
    inject("kill:load")
    outcome = execute("run", "-m", tiny_llama, "--drafter", "none", "Hello")
    assert outcome.code == 1
    assert outcome.sentence.startswith("The engine has stopped working (signal 9, perhaps because memory ran out, see ")


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there is no such limit")
@pytest.mark.parametrize("megabytes", [100, 150, 200, 250, 300, 400])
def test_memory_that_really_runs_out(megabytes: int, tiny_llama: Path) -> None:
    """Somewhere between starting and answering, as some library notices: whatever that does then, there is a sentence."""
    options = ("run", "-m", tiny_llama, "--max-tokens", 12, "--quiet", "Hello")
    outcome = execute(*options, line=f'ulimit -v {1024 * megabytes}; exec "$@"')
    if outcome.code == 0:
        assert outcome.out
        assert outcome.err == ""
    else:
        assert outcome.code == 1
        assert outcome.sentence


def test_a_model_for_which_there_is_no_memory_is_not_damaged(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    lines = ["llama_model_load: error loading model: mmap failed: Cannot allocate memory"]
    monkeypatch.setattr(model, "recent_errors", lambda: lines)
    assert "There is not enough memory for a.gguf" in model._why_not_loaded(tmp_path / "a.gguf")


@pytest.mark.parametrize("place", ["in place", "elsewhere"])
def test_rewrite_loses_no_file(place: str, inject: Inject, tiny_llama: Path, tmp_path: Path) -> None:
    text = "Teh cat sat on teh mat.\n"
    source, out = tmp_path / "text.txt", tmp_path / "out.txt"
    source.write_text(text)
    options = ("--in-place",) if place == "in place" else ("-o", out)
    inject("real abort:step")
    outcome = execute("rewrite", "-m", tiny_llama, "-i", "Fix it.", "--max-tokens", 12, *options, source)
    assert (outcome.code, outcome.out) == (1, "")
    assert "signal 6" in outcome.sentence
    assert "the same command goes on where it was" in outcome.sentence
    assert source.read_text() == text
    assert not out.exists()
