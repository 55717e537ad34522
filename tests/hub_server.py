"""A hub on loopback, with a store on another port that it redirects to: as much of the real one as downloads meet."""

from __future__ import annotations

import hashlib
import json
import random
import re
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from gguf_bytes import header_of, pair, text_value

PIECE_BYTES = 1 << 16
_BLOCK_BYTES = 1_000_003
"""A prime: bytes that are missing or doubled show wherever they are."""


class Content:
    """The bytes of a file: given, or a long one of a repeated block that takes no memory."""

    def __init__(self, data: bytes, size: int | None = None) -> None:
        self._block = data + data[:PIECE_BYTES]
        self._period = len(data)
        self.size = len(data) if size is None else size
        digest = hashlib.sha256()
        for start in range(0, self.size, PIECE_BYTES):
            digest.update(self.read(start, min(self.size, start + PIECE_BYTES)))
        self.sha256 = digest.hexdigest()

    def read(self, start: int, end: int) -> bytes:
        """At most PIECE_BYTES from `start` on."""
        offset = start % self._period
        return self._block[offset : offset + min(end - start, PIECE_BYTES)]


def long_content(size: int, seed: int = 7) -> Content:
    """So many bytes without a visible pattern."""
    return Content(random.Random(seed).randbytes(_BLOCK_BYTES), size)


def model_content(size: int, seed: int = 7) -> Content:
    """The same as a model: it has the header of one, and no weights that anybody could load."""
    row = text_value("output.weight") + struct.pack("<IQIQ", 1, 1, 0, 0)
    header = header_of(pair("general.architecture", 8, text_value("llama")), tensors=1, rest=row)
    return Content(header + random.Random(seed).randbytes(_BLOCK_BYTES - len(header)), size)


@dataclass
class Repository:
    """A repository of the hub."""

    files: dict[str, Content] = field(default_factory=dict)
    commit: str = "c" * 40
    token: str | None = None
    """Who does not send it is told that the repository is gated, or that there is none."""
    gated: bool = False
    small: set[str] = field(default_factory=set)
    """Files outside of large file storage: the hub sends them itself, and knows them by git's id."""

    def etag(self, path: str) -> str:
        """What the hub knows the content by."""
        content = self.files[path]
        if path not in self.small:
            return content.sha256
        return hashlib.sha1(b"blob %d\0" % content.size + content.read(0, content.size)).hexdigest()


@dataclass(frozen=True)
class Fault:
    """What goes wrong with one answer."""

    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    cut: int | None = None
    """Bytes of the body after which the connection is closed."""
    page: bytes | None = None
    """Sent instead, as a network does that wants people to log in."""


@dataclass(frozen=True)
class Request:
    """What somebody asked."""

    server: str
    """ "hub" or "store"."""
    method: str
    path: str
    headers: dict[str, str]


class HubServer:
    """Both servers, and what they are to do."""

    def __init__(self) -> None:
        self.repositories: dict[str, Repository] = {}
        self.requests: list[Request] = []
        self.faults: dict[str, deque[Fault]] = {"api": deque(), "resolve": deque(), "body": deque()}
        self.ranges = True
        self.lengths = True
        self.corrupt = False
        """Every file is sent with another first byte."""
        self.changed = False
        """The hub tells another ETag where it redirects than in its list of files."""
        self.served = 0
        """Bytes of files that were sent, all answers together."""
        self.sent: Callable[[], None] = lambda: None
        """Called after each piece of a body."""
        self.lock = threading.Lock()
        self.hub = _Listener(self, "hub")
        self.store = _Listener(self, "store")

    @property
    def url(self) -> str:
        """The hub's address."""
        return f"http://127.0.0.1:{self.hub.server_port}"

    def add(self, name: str, files: dict[str, Content], **more: Any) -> Repository:
        """Make a repository."""
        self.repositories[name] = Repository(files, **more)
        return self.repositories[name]

    def fault(self, kind: str) -> Fault:
        """The next fault of answers of a kind, or none."""
        with self.lock:
            return self.faults[kind].popleft() if self.faults[kind] else Fault()

    def asked(self, server: str, method: str = "GET") -> list[Request]:
        """The requests to one of the two."""
        return [request for request in self.requests if (request.server, request.method) == (server, method)]

    def ranges_asked(self) -> list[str | None]:
        """What the Range headers of requests for bytes were, in order."""
        return [request.headers.get("range") for request in self.asked("store")]


class _Listener(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, both: HubServer, name: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.both, self.name = both, name

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, address = super().get_request()
        # What lies in the sender's buffer when the receiver dies counts as sent.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, PIECE_BYTES)
        return connection, address

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass


class _Handler(BaseHTTPRequestHandler):
    server: _Listener
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        both = self.server.both
        headers = {name.lower(): value for name, value in self.headers.items()}
        both.requests.append(Request(self.server.name, self.command, self.path, headers))
        path = unquote(urlsplit(self.path).path)
        if self.server.name == "store":
            self._send_from_store(path.removeprefix("/"))
        elif found := re.fullmatch(r"/api/models/([^/]+/[^/]+)(?:/(revision|tree)/([^/]+))?", path):
            self._describe(found[1], found[2], found[3])
        elif found := re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path):
            self._resolve(found[1], found[2], found[3])
        else:
            self._refuse(404, {})

    do_HEAD = do_GET  # noqa: N815  (the name that http.server looks for)

    def _describe(self, name: str, kind: str | None, revision: str | None) -> None:
        repository = self._allowed(name, revision, "api")
        if repository is None:
            return
        listed = [_listed(repository, path) for path in repository.files]
        if kind == "tree":
            document: Any = [
                {"type": "file", "path": entry["rfilename"], **entry, "oid": entry["blobId"]} for entry in listed
            ]
            for entry in document:
                if entry.get("lfs"):
                    entry["lfs"] = {**entry["lfs"], "oid": entry["lfs"]["sha256"]}
        else:
            blobs = "blobs" in parse_qs(urlsplit(self.path).query)
            siblings = listed if blobs else [{"rfilename": entry["rfilename"]} for entry in listed]
            document = {
                "id": name,
                "modelId": name,
                "sha": repository.commit,
                "siblings": siblings,
                "gated": repository.gated,
            }
        self._answer(200, {"Content-Type": "application/json"}, json.dumps(document).encode())

    def _resolve(self, name: str, revision: str, path: str) -> None:
        repository = self._allowed(name, revision, "resolve")
        if repository is None:
            return
        if path not in repository.files:
            self._refuse(404, {"X-Error-Code": "EntryNotFound"})
            return
        both, content, etag = self.server.both, repository.files[path], repository.etag(path)
        if both.changed:
            etag = "0" * len(etag)
        if path in repository.small:
            self._send(content, {"ETag": f'"{etag}"', "X-Repo-Commit": repository.commit})
            return
        headers = {
            "Location": f"http://127.0.0.1:{both.store.server_port}/{content.sha256}?signature=1",
            "X-Repo-Commit": repository.commit,
            "X-Linked-Etag": f'"{etag}"',
            "X-Linked-Size": str(content.size),
        }
        self._answer(302, headers, b"Found")

    def _allowed(self, name: str, revision: str | None, kind: str) -> Repository | None:
        """The repository, None where the refusal has been sent."""
        both = self.server.both
        if (fault := both.fault(kind)).page is not None:
            self._answer(200, {"Content-Type": "text/html"}, fault.page)
            return None
        if fault.status is not None:
            self._refuse(fault.status, fault.headers)
            return None
        repository = both.repositories.get(name)
        given = self.headers.get("Authorization")
        if repository is None:
            code, message = {"X-Error-Code": "RepoNotFound"}, {"X-Error-Message": "Invalid username or password."}
            self._refuse(404 if given else 401, code | message)
        elif repository.token is not None and given != f"Bearer {repository.token}":
            self._refuse(403 if given else 401, {"X-Error-Code": "GatedRepo" if repository.gated else "RepoNotFound"})
        elif revision not in (None, "main", repository.commit):
            self._refuse(404, {"X-Error-Code": "RevisionNotFound"})
        else:
            return repository
        return None

    def _send_from_store(self, sha256: str) -> None:
        both = self.server.both
        found = [c for r in both.repositories.values() for c in r.files.values() if c.sha256 == sha256]
        if not found:
            self._refuse(404, {})
        elif "Authorization" in self.headers:
            # As stores do: the address is signed already.
            self._refuse(400, {})
        else:
            self._send(found[0], {"ETag": '"a tag of the store\'s own"'})

    def _send(self, content: Content, headers: dict[str, str]) -> None:
        both, fault = self.server.both, self.server.both.fault("body")
        if fault.page is not None:
            self._answer(200, {"Content-Type": "text/html"}, fault.page)
            return
        if fault.status is not None:
            self._refuse(fault.status, fault.headers)
            return
        start, end = 0, content.size
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", "")) if both.ranges else None
        if asked:
            start, end = int(asked[1]), min(content.size, int(asked[2]) + 1) if asked[2] else content.size
            if start >= content.size:
                self._refuse(416, {"Content-Range": f"bytes */{content.size}"})
                return
            headers = {**headers, "Content-Range": f"bytes {start}-{end - 1}/{content.size}"}
        self.send_response(206 if asked else 200)
        for name, value in headers.items():
            self.send_header(name, value)
        if both.lengths:
            self.send_header("Content-Length", str(end - start))
        else:
            self.close_connection = True
        self.end_headers()
        if self.command == "GET":
            self._pour(content, start, end, fault.cut)

    def _pour(self, content: Content, start: int, end: int, cut: int | None) -> None:
        both = self.server.both
        stop = end if cut is None else min(end, start + cut)
        while start < stop:
            piece = content.read(start, stop)
            if both.corrupt and start == 0:
                piece = bytes([piece[0] ^ 255]) + piece[1:]
            self.wfile.write(piece)
            start += len(piece)
            with both.lock:
                both.served += len(piece)
            both.sent()
        if stop < end:
            self.close_connection = True

    def _answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def _refuse(self, status: int, headers: dict[str, str]) -> None:
        self._answer(status, {"Content-Type": "application/json", **headers}, b'{"error": "no"}')

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


def _listed(repository: Repository, path: str) -> dict[str, Any]:
    content = repository.files[path]
    entry: dict[str, Any] = {"rfilename": path, "size": content.size, "blobId": repository.etag(path)[:40]}
    if path not in repository.small:
        entry["lfs"] = {"sha256": content.sha256, "size": content.size, "pointerSize": 134}
    return entry


def isolate_hub(monkeypatch: pytest.MonkeyPatch, home: Path, url: str) -> None:
    """A huggingface-hub that asks only the hub at `url`, and knows no token and no cache of this machine."""
    import os

    from huggingface_hub import close_session, constants

    for name in list(os.environ):
        if name.startswith(("HF_", "HUGGING")) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HF_ENDPOINT", url)
    monkeypatch.setenv("HF_HOME", str(home))
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(home / "token"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    close_session()


@contextmanager
def serving() -> Iterator[HubServer]:
    """The hub, answering."""
    both = HubServer()
    threads = [threading.Thread(target=server.serve_forever, args=(0.01,)) for server in (both.hub, both.store)]
    for thread in threads:
        thread.start()
    try:
        yield both
    finally:
        for server in (both.hub, both.store):
            server.shutdown()
            server.server_close()
        for thread in threads:
            thread.join()
