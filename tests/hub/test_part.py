from __future__ import annotations

import fcntl
import json
import os
import threading
import time

import pytest

from hub_fetch import NAME, SIZE, Fetch, whole
from localspec.hub.part import Part, sweep
from localspec.hub.starter import FetchCancelledError

PATIENCE = 60


def test_two_at_once_fetch_one_file_once(fetch, hub, content, folder):
    """The second waits, shows how far the first is, and ends with the same file."""
    other = Fetch(folder)
    file = fetch.file()
    held, waiting = threading.Event(), threading.Event()
    hub.sent = lambda: (held.set(), waiting.wait(PATIENCE))
    reasons: list[str] = []
    other.pause = lambda _seconds, why: (reasons.append(why), waiting.set())
    results: list[bool] = []
    first = threading.Thread(target=lambda: results.append(fetch.run(file)))
    first.start()
    assert held.wait(PATIENCE)
    assert other.run(file) is False
    first.join()
    assert results == [True]
    assert whole(fetch.target, content)
    assert hub.served == SIZE
    assert any(seen > 0 for seen in other.seen)
    assert reasons[0] == f"Another process is downloading {NAME}, so this one waits for it."
    assert set(reasons[1:]) <= {""}
    assert list(folder.iterdir()) == [fetch.target]


def test_the_second_goes_on_when_the_first_is_stopped(fetch, hub, content, folder):
    """Whoever waits takes over what the other leaves."""
    other = Fetch(folder)
    file = fetch.file()
    held, waiting = threading.Event(), threading.Event()
    hub.sent = lambda: (held.set(), waiting.wait(PATIENCE))
    other.pause = lambda _seconds, _why: waiting.set()
    fetch.stop_at = 1

    def begin() -> None:
        with pytest.raises(FetchCancelledError):
            fetch.run(file)

    first = threading.Thread(target=begin)
    first.start()
    assert held.wait(PATIENCE)
    assert other.run(file) is True
    first.join()
    assert whole(fetch.target, content)
    assert hub.ranges_asked()[1] not in (None, "bytes=0-")


def test_a_part_that_becomes_the_model_under_our_hands_is_not_written_to(fetch, monkeypatch):
    """The other process gives it its name between our opening it and our locking it."""
    file, lock = fetch.file(), fcntl.flock
    fetch.target.parent.mkdir(parents=True)
    fetch.part.write_bytes(b"whole")

    def late(descriptor: int, how: int) -> None:
        if fetch.part.exists() and not fetch.target.exists():
            fetch.part.replace(fetch.target)
        lock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", late)
    part = Part(fetch.target, file)
    assert part.claim()
    part.write(b"new")
    part.release()
    assert fetch.target.read_bytes() == b"whole"
    assert fetch.part.read_bytes() == b"new"


def test_only_what_nothing_can_be_made_of_is_swept(fetch, folder):
    """Orphans go after two days; a part that can be gone on with stays however old it is."""
    fetch.stopped_at(1_000_000)
    names = [
        "lost.gguf.part",
        "fresh.gguf.part",
        "note.gguf.part.json",
        "done.gguf.part",
        "done.gguf",
        "held.gguf.part",
    ]
    for name in names:
        (folder / name).write_bytes(b"some")
    old = time.time() - 3 * 24 * 3600
    for path in folder.iterdir():
        if path.name != "fresh.gguf.part":
            os.utime(path, (old, old))
    held = Part(folder / "held.gguf", fetch.file())
    assert held.claim()
    held.write(b"x")
    (folder / "held.gguf.part.json").unlink()
    os.utime(held.path, (old, old))
    sweep(folder)
    held.release()
    left = sorted(path.name for path in folder.iterdir())
    assert left == sorted(["done.gguf", "fresh.gguf.part", "held.gguf.part", fetch.part.name, fetch.note.name])


def test_the_note_says_what_the_part_is_of(fetch, content):
    """A person who finds a part can tell where it comes from."""
    fetch.stopped_at(1)
    note = json.loads(fetch.note.read_text())
    expected = {"repository": "user/repo", "path": NAME, "commit": "c" * 40, "etag": content.sha256, "size": SIZE}
    assert note == expected
