"""A rewritten text on its way to its file: kept over a kill, never shared, and never taken from somebody else."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from localspec.chat.part_file import PartFile
from localspec.chat.rewrite_events import State
from localspec.engine.errors import UserError

DIGEST = "d" * 64
HALF = State(DIGEST, 1, 5, tail="half")

HOLDER = """
import sys
from pathlib import Path
from localspec.chat.part_file import PartFile
from localspec.chat.rewrite_events import State

part = PartFile(Path(sys.argv[1]), sys.argv[2])
if sys.argv[3] == "half":
    part.append(b"half ", State(sys.argv[2], 1, 5, tail="half"))
print("there", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "a.txt"


def holder(target: Path, done: str) -> subprocess.Popen[bytes]:
    """Another process that has begun to rewrite the same text."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(target), DIGEST, done], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout
    assert process.stdout.readline() == b"there\n"
    return process


def half_done(target: Path) -> None:
    part = PartFile(target, DIGEST)
    part.append(b"half ", HALF)
    part.close()


@pytest.mark.parametrize("done", ["nothing", "half"])
def test_two_at_once_do_not_write_one_file(target, done):
    """The second one takes another name; once the first is killed, what it has done is gone on with."""
    first = holder(target, done)
    second = PartFile(target, DIGEST)
    assert second.path.name == "a.txt.part.2"
    assert second.state is None
    second.discard()
    first.kill()
    first.communicate()
    third = PartFile(target, DIGEST)
    assert third.path.name == "a.txt.part"
    assert third.state == (HALF if done == "half" else State(DIGEST, 0, 0))
    third.discard()
    assert list(target.parent.iterdir()) == []


def test_nobody_takes_it_while_it_becomes_the_file(target):
    """Between its last part and its new name it is still that process's."""
    part = PartFile(target, DIGEST)
    part.append(b"all", State(DIGEST, 1, 3))
    part.complete()
    other = PartFile(target, DIGEST)
    assert other.path != part.path
    other.discard()
    part.path.replace(target)
    part.forget_state()
    part.close()
    assert target.read_bytes() == b"all"


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"\xff",
        b"7",
        b"[" * 100_000,
        b'{"bytes": 5}',
        {"bytes": -1},
        {"bytes": "5"},
        {"bytes": 6},
        {"bytes": True},
        {"part": "1"},
        {"part": -1},
        {"source_position": None},
        {"failed": 3},
        {"failed": ["x"]},
        {"tail": 7},
        {"begun": None},
        {"digest": "e" * 64},
        {"from a later version": 1},
    ],
)
def test_a_state_that_is_damaged_or_of_another_version_is_left_alone(target, damage):
    """The rewriting begins anew under another name."""
    half_done(target)
    state = target.with_name("a.txt.part.state")
    if isinstance(damage, dict):
        values = json.loads(state.read_bytes())
        (values if "bytes" in damage else values["state"]).update(damage)
        damage = json.dumps(values).encode()
    state.write_bytes(damage)
    part = PartFile(target, DIGEST)
    assert (part.path.name, part.state) == ("a.txt.part.2", None)
    part.discard()
    assert target.with_name("a.txt.part").read_bytes() == b"half "
    assert state.read_bytes() == damage


def test_a_pipe_or_link_of_that_name_is_left_alone(target):
    """Neither waited for nor written through."""
    half_done(target)
    state = target.with_name("a.txt.part.state")
    state.unlink()
    os.mkfifo(state)
    other = PartFile(target, DIGEST)
    assert other.path.name == "a.txt.part.2"
    other.discard()


@pytest.mark.parametrize("name", ["x" * 255, "é" * 127, "x" * 251 + ".txt"])
def test_the_longest_name_has_a_part_file(tmp_path, name):
    """Its own, that it is found again by."""
    half_done(tmp_path / name)
    part = PartFile(tmp_path / name, DIGEST)
    assert part.state == HALF
    part.discard()
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_told_before_anything_is_made(tmp_path, monkeypatch):
    """And leaves no file behind. (The disk is one on which no file may be longer than nothing.)"""
    script = (
        "import resource, signal, sys\n"
        "from pathlib import Path\n"
        "from localspec.chat.part_file import PartFile\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
        "PartFile(Path(sys.argv[1]), 'd', b'mark')\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path / "a")], capture_output=True, check=False)
    assert UserError.__name__.encode() in done.stderr
    assert b"cannot be written (File too large)" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_state_is_all_there_is(target):
    """Every field of it is written down."""
    half_done(target)
    values = json.loads(target.with_name("a.txt.part.state").read_bytes())
    assert values["state"].keys() == {field.name for field in dataclasses.fields(State)}
