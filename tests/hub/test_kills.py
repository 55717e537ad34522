"""A download that is killed again and again."""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
import threading
import time
from pathlib import Path

import pytest

from command import PATIENCE, command, surroundings
from hub_server import PIECE_BYTES, Content, HubServer, model_content

ALL_KILLS = "LOCALSPEC_TEST_ALL_KILLS"
NAME = "model-Q4_0.gguf"
HEADER_BYTES = 4 << 20
"""What is read of a file before it is downloaded, to see what memory it takes."""


class Killer:
    """Kills the process that downloads, with SIGKILL, when the server has sent so many bytes.

    One kill in three comes at once, while the process is busy. Before the others the server waits until what it has sent is
    written, as it is where the network is slower than the disk; what lies in the buffers of the kernel is the loss
    otherwise, and says nothing about the program.
    """

    def __init__(self, server: HubServer, part: Path, at: list[int]) -> None:
        self._server, self._part, self._at = server, part, at
        self._process: subprocess.Popen[bytes] | None = None
        self._is_alive = False
        self._kills = 0
        self.lost: list[int] = []
        server.sent = self._sent

    def download(self, arguments: list[str], environment: dict[str, str]) -> int:
        """Run the command until it ends or is killed; its exit code, -9 then."""
        self._process = subprocess.Popen(arguments, env=environment, stderr=subprocess.PIPE)
        self._is_alive = True
        _, errors = self._process.communicate(timeout=PATIENCE)
        assert self._process.returncode in (0, -9), errors.decode()
        return self._process.returncode

    def _sent(self) -> None:
        with self._server.lock:
            if not self._is_alive or not self._at or self._server.served < self._at[0]:
                return
            self._at.pop(0)
            self._is_alive = False
            self._kills += 1
            waits = self._kills % 3 != 0
        if waits:
            self._wait_until_written()
        assert self._process is not None
        self._process.kill()
        # What would still be sent would reach nobody.
        raise ConnectionResetError

    def _wait_until_written(self) -> None:
        """Until nothing has been written for a moment."""
        deadline, pause = time.monotonic() + PATIENCE, threading.Event()
        before = -1
        while time.monotonic() < deadline:
            now = self._size()
            if now == before:
                return
            before = now
            pause.wait(0.02)

    def _size(self) -> int:
        return self._part.stat().st_size if self._part.exists() else 0


@pytest.fixture
def environment(hub: HubServer, own_folders: Path) -> dict[str, str]:
    """Where the command finds the hub."""
    return surroundings(HF_ENDPOINT=hub.url)


def killed_download(hub: HubServer, models: Path, content: Content, kills: int, environment: dict[str, str]) -> int:
    """Download with so many kills at random bytes, check the file, and return how many bytes were sent."""
    hub.add("user/repo", {NAME: content})
    generator = random.Random(kills)
    at = sorted(generator.sample(range(PIECE_BYTES, content.size), kills))
    killer = Killer(hub, models / f"{NAME}.part", at)
    runs = 1
    while killer.download(command("pull", "--quiet", f"user/repo/{NAME}"), environment) != 0:
        runs += 1
    assert runs == kills + 1
    assert not at
    assert sorted(path.name for path in models.iterdir() if not path.name.startswith(".origins")) == [NAME]
    with (models / NAME).open("rb") as file:
        assert hashlib.file_digest(file, "sha256").hexdigest() == content.sha256
    return hub.served


@pytest.mark.skipif(ALL_KILLS not in os.environ, reason=f"takes minutes: set {ALL_KILLS}=1")
def test_fifty_kills_of_200_megabytes_cost_less_than_a_tenth(hub, own_folders, environment):
    """One file in the end, with the right SHA-256, and less than 10 % of the bytes sent twice."""
    content = model_content(200_000_000)
    sent = killed_download(hub, own_folders / "data" / "models", content, 50, environment)
    print(f"sent twice: {sent - content.size} bytes, {sent / content.size - 1:.1%}")
    assert sent < 1.1 * content.size


def test_a_few_kills_cost_little(hub, own_folders, environment):
    """The same with less, in every run of the tests."""
    content = model_content(40_000_000)
    sent = killed_download(hub, own_folders / "data" / "models", content, 6, environment)
    # Twice the header, once before the first byte is here, and a megabyte in flight for each kill.
    assert sent < content.size + 2 * HEADER_BYTES + 6_000_000
