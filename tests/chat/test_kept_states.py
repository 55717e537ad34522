"""Which saved caches belong to which chat: a chat opened again is not read again, and files stay within their budget."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import tiny
from localspec.chat import kept_states
from localspec.chat.kept_states import BUDGET, LEAST_TOKENS, KeptStates, drop_unknown
from localspec.engine.engine import Engine, EngineSettings, Options
from tiny_checks import GREEDY, PROMPT, write

OPTIONS = Options(GREEDY, "lookup", max_tokens=8)
LONG = PROMPT * 11
"""594 tokens."""


@pytest.fixture(scope="module")
def engine(tiny_llama: Path) -> Iterator[Engine]:
    """One engine for all; each test begins with its own text."""
    with Engine(EngineSettings(tiny_llama, context_length=1024, threads=1)) as engine:
        yield engine


@pytest.fixture
def states(tmp_path: Path) -> KeptStates:
    """In a folder that does not exist yet."""
    return KeptStates(tmp_path / "cache" / "states")


def talk(engine: Engine, chat: int, prompt: list[int] = LONG) -> list[int]:
    """An answer in a chat of this number; returns what the engine has evaluated then."""
    write(engine, OPTIONS, [chat, *prompt])
    return list(engine.target_context.tokens)


def kept(states: KeptStates) -> list[int]:
    """The chats that have a file."""
    return [chat for chat in range(20) if states.path(chat).exists()]


def age(states: KeptStates, chat: int, seconds: float) -> None:
    """As if the file had last been used so long ago."""
    then = time.time() - seconds
    os.utime(states.path(chat), (then, then))


def test_two_chats_in_turn(engine: Engine, states: KeptStates) -> None:
    """Each comes back as it was left, also to a program that has just begun."""
    texts = {}
    for chat in (1, 2):
        texts[chat] = talk(engine, chat)
        assert states.save(chat, engine)
    for again in (states, KeptStates(states.folder)):
        for chat in (1, 2):
            assert again.load(chat, engine) == len(texts[chat])
            assert engine.target_context.tokens == texts[chat]
    write(engine, OPTIONS, [*texts[2], *b" next"])
    assert engine.reused_tokens == len(texts[2])


def test_a_chat_without_a_file(engine: Engine, states: KeptStates) -> None:
    """The engine keeps what it has: the chat may begin in the same way."""
    held = talk(engine, 1)
    assert states.load(5, engine) == 0
    assert engine.target_context.tokens == held
    assert not states.folder.exists()


def test_short_chats_are_not_kept(engine: Engine, states: KeptStates) -> None:
    assert len(talk(engine, 1, LONG[: LEAST_TOKENS - 20])) < LEAST_TOKENS
    assert not states.save(1, engine)
    assert len(talk(engine, 1, LONG[:LEAST_TOKENS])) >= LEAST_TOKENS
    assert states.save(1, engine)
    assert kept(states) == [1]


def test_what_is_kept_is_not_written_again(engine: Engine, states: KeptStates) -> None:
    """Only where something is new, or the file has gone."""
    talk(engine, 1)
    assert states.save(1, engine)
    file = states.path(1)
    age(states, 1, 1000)
    old = file.stat()
    assert states.save(1, engine)
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (old.st_ino, old.st_mtime_ns)
    file.unlink()
    assert states.save(1, engine)
    age(states, 1, 1000)
    talk(engine, 1, [*LONG, *b"more"])
    assert states.save(1, engine)
    assert file.stat().st_mtime > time.time() - 500


def test_a_chat_that_the_engine_still_holds_is_not_loaded(engine: Engine, states: KeptStates) -> None:
    """Opened again with nothing in between, it has its tokens, and its file is not even looked at."""
    held = talk(engine, 1)
    states.save(1, engine)
    states.path(1).unlink()
    assert states.load(1, engine) == len(held)
    talk(engine, 2)
    assert states.load(1, engine) == 0


def test_the_one_unused_for_longest_goes_first(engine: Engine, states: KeptStates) -> None:
    """Written or loaded counts as used."""
    for chat in (1, 2, 3):
        talk(engine, chat)
        assert states.save(chat, engine)
        age(states, chat, 1000 - chat)
    states.load(1, engine)
    states.budget = int(states.path(1).stat().st_size * 3.5)
    talk(engine, 4)
    assert states.save(4, engine)
    assert kept(states) == [1, 3, 4]
    states.budget = int(states.path(1).stat().st_size * 1.5)
    talk(engine, 5)
    assert states.save(5, engine)
    assert kept(states) == [5]


def test_a_state_larger_than_the_budget(engine: Engine, states: KeptStates) -> None:
    """It is not written, and costs no other its place."""
    talk(engine, 1)
    assert states.save(1, engine)
    states.budget = states.path(1).stat().st_size // 2
    talk(engine, 2)
    assert not states.save(2, engine)
    assert kept(states) == [1]


def test_a_full_disk(engine: Engine, states: KeptStates, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last of it is left to others."""
    talk(engine, 1)
    usage = kept_states.shutil.disk_usage

    def nearly_full(path: Path) -> object:
        return usage(path)._replace(free=1_000_010_000)

    monkeypatch.setattr(kept_states.shutil, "disk_usage", nearly_full)
    assert not states.save(1, engine)
    assert list(states.folder.iterdir()) == []


def test_a_folder_that_cannot_be_made(engine: Engine, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """That is logged, and nothing else happens."""
    (tmp_path / "states").write_text("a file")
    states = KeptStates(tmp_path / "states")
    talk(engine, 1)
    assert not states.save(1, engine)
    assert "is not kept" in caplog.text
    assert states.load(1, engine) == 0


def test_something_else_to_do(engine: Engine, states: KeptStates) -> None:
    """A save ends when a person wants the engine; the older file stays, and the next save is a whole one."""
    held = talk(engine, 1)
    states.save(1, engine)
    longer = talk(engine, 1, [*LONG, *b"more"])
    assert not states.save(1, engine, unwanted=lambda: True)
    assert [path.name for path in states.folder.iterdir()] == [states.path(1).name]
    talk(engine, 2)
    assert states.load(1, engine) == len(held)
    assert talk(engine, 1, [*LONG, *b"more"]) == longer
    assert states.save(1, engine, unwanted=lambda: False)


def test_a_damaged_file_is_removed(engine: Engine, states: KeptStates) -> None:
    talk(engine, 1)
    states.save(1, engine)
    damaged = bytearray(states.path(1).read_bytes())
    damaged[len(damaged) // 2] ^= 1
    states.path(1).write_bytes(damaged)
    talk(engine, 2)
    assert states.load(1, engine) == 0
    assert kept(states) == []
    assert engine.target_context.tokens == []
    held = talk(engine, 1)
    assert states.save(1, engine)
    talk(engine, 2)
    assert states.load(1, engine) == len(held)


def test_another_model(engine: Engine, states: KeptStates, tmp_path: Path) -> None:
    """The chat goes on with another model: its text is read again, and kept anew."""
    talk(engine, 1)
    states.save(1, engine)
    path = tiny.llama(tmp_path / "other.gguf", seed=3, chat_template=tiny.CHAT_TEMPLATE)
    with Engine(EngineSettings(path, context_length=1024, threads=1)) as other:
        again = KeptStates(states.folder)
        assert again.load(1, other) == 0
        assert kept(states) == []
        held = talk(other, 1)
        assert again.save(1, other)
        talk(other, 2)
        assert again.load(1, other) == len(held)


def test_nothing_stays_of_chats_that_are_no_more(engine: Engine, states: KeptStates, tmp_path: Path) -> None:
    for chat in (1, 2, 12):
        talk(engine, chat)
        assert states.save(chat, engine)
    half, other = (states.folder / name for name in ("chat-2.state.abc.part", "notes.state"))
    for path in (half, other):
        path.touch()
    drop_unknown(states.folder, [1, 3])
    assert set(states.folder.iterdir()) == {states.path(1), other}
    drop_unknown(tmp_path / "missing", [])


def test_what_others_have_left_half_written(engine: Engine, states: KeptStates) -> None:
    """Goes after an hour; before, another program may be at it."""
    talk(engine, 1)
    states.save(1, engine)
    halves = [states.folder / f"chat-{number}.state.abc.part" for number in (1, 2)]
    stranger = states.folder / "notes.txt"
    for path in (*halves, stranger):
        path.write_bytes(b"half")
        os.utime(path, (1, 1))
    os.utime(halves[1])
    talk(engine, 2)
    states.save(2, engine)
    assert [path.exists() for path in (*halves, stranger)] == [False, True, True]


def test_the_folder_is_private(engine: Engine, states: KeptStates) -> None:
    talk(engine, 1)
    states.save(1, engine)
    assert states.folder.stat().st_mode & 0o777 == 0o700
    assert states.path(1).stat().st_mode & 0o777 == 0o600
    assert states.budget == BUDGET == 2_000_000_000
