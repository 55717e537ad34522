"""A download of one file, begun and gone on with as often as a test likes."""

from __future__ import annotations

from pathlib import Path

import pytest

from hub_server import PIECE_BYTES, Content
from localspec.engine.errors import UserError
from localspec.hub.download import Download
from localspec.hub.hub_client import Hub
from localspec.hub.reference import HubReference
from localspec.hub.remote import RemoteFile
from localspec.hub.starter import FetchCancelledError

NAME = "model-Q4_0.gguf"
SIZE = 3_000_017


class Fetch:
    """A download of the one file of the one repository, as often as a test likes."""

    def __init__(self, folder: Path) -> None:
        self.target = folder / NAME
        self.part = folder / f"{NAME}.part"
        self.note = folder / f"{NAME}.part.json"
        self.waits: list[tuple[float, str]] = []
        self.seen: list[int] = []
        self.stop_at: int | None = None

    def pause(self, seconds: float, why: str) -> None:
        self.waits.append((seconds, why))

    def file(self) -> RemoteFile:
        [file] = Hub(pause=self.pause).files(HubReference("user/repo"))
        return file

    def run(self, file: RemoteFile | None = None) -> bool:
        hub = Hub(pause=self.pause)
        return Download(hub, file or self.file(), self.target, self.seen.append, self.pause, self.stopped).run()

    def stopped(self) -> bool:
        return self.stop_at is not None and bool(self.seen) and self.seen[-1] >= self.stop_at

    def stopped_at(self, count: int) -> None:
        """Begin, and stop once so many bytes are here."""
        self.stop_at = count
        with pytest.raises(FetchCancelledError, match=r"was stopped: run it again to go on\.$"):
            self.run()
        self.stop_at = None

    def refusal(self, kind: type[UserError] = UserError) -> str:
        with pytest.raises(kind) as caught:
            self.run()
        sentence = str(caught.value)
        assert sentence.endswith(".")
        assert "\n" not in sentence
        return sentence


def data_of(content: Content) -> bytes:
    return b"".join(content.read(at, content.size) for at in range(0, content.size, PIECE_BYTES))


def whole(path: Path, content: Content) -> bool:
    return path.read_bytes() == data_of(content)
