"""A hub that lies: whatever it answers, a person gets one sentence or a model whose name and place are safe."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hub_fetch import NAME, whole
from hub_server import Fault, HubServer, long_content
from localspec.console import one_line
from localspec.engine.errors import UserError
from localspec.hub.catalog import Catalog
from localspec.hub.hub_client import Hub
from localspec.hub.plan import plan
from localspec.hub.pull import fetch
from localspec.hub.reference import HubReference

SHA256 = "a" * 64


def listing(*siblings: Any, sha: Any = "c" * 40) -> Fault:
    """An answer of the hub to what a repository holds."""
    return Fault(page=json.dumps({"id": "user/repo", "sha": sha, "siblings": list(siblings)}).encode())


def sibling(name: Any = NAME, size: Any = 100, sha256: Any = SHA256) -> dict[str, Any]:
    return {
        "rfilename": name,
        "size": size,
        "blobId": "b" * 40,
        "lfs": {"sha256": sha256, "size": size, "pointerSize": 134},
    }


def refusal(hub: HubServer, folder: Path) -> str:
    asked = Hub(pause=lambda *_: None)
    with pytest.raises(UserError) as caught:
        fetch(plan(["user/repo"], folder, hub=asked, catalog=Catalog((), ())), hub=asked)
    sentence = str(caught.value)
    assert len(sentence) < 1000
    assert one_line(sentence) == sentence
    return sentence


@pytest.mark.parametrize(
    "name",
    [
        "../evil.gguf",
        "a/../../evil.gguf",
        "/etc/evil.gguf",
        "a//evil.gguf",
        "..\\evil.gguf",
        ".evil.gguf",
        ".gguf",
        "evil\n.gguf",
        "evil\x1b[2J.gguf",
        "evil\x9b2J.gguf",
        "evil\0.gguf",
        "evil\u202efugg.gguf",
        "evil\ud800.gguf",
        "e" * 250 + ".gguf",
        "é" * 100 + ".gguf",
    ],
)
def test_a_name_that_is_no_name_is_passed_over(hub, folder, name):
    """Nothing is written anywhere for it, and what else the repository holds can be had."""
    hub.faults["api"].append(listing(sibling(name)))
    assert "holds no .gguf files" in refusal(hub, folder)
    assert not folder.exists()
    hub.faults["api"].append(listing(sibling(name), sibling()))
    assert [file.path for file in Hub().files(HubReference("user/repo"))] == [NAME]


@pytest.mark.parametrize(
    "entry",
    [
        sibling(size=-1),
        sibling(size=1 << 60),
        sibling(size=1.5),
        sibling(size="100"),
        sibling(sha256="xyz"),
        sibling(sha256="A" * 64),
        {"rfilename": NAME, "size": 100, "blobId": "../../x"},
        {"rfilename": NAME},
    ],
)
def test_a_size_or_hash_that_is_none_is_passed_over(hub, folder, entry):
    hub.faults["api"].append(listing(entry))
    assert "holds no .gguf files" in refusal(hub, folder)


@pytest.mark.parametrize(
    "page",
    [
        b"",
        b"[]",
        b"null",
        b"7",
        b'{"sha": null}',
        b"{" * 10,
        b"[" * 200_000,
        b'{"id": "x", "sha": "c", "siblings": 7}',
        b'{"id": "x", "sha": "c", "siblings": [7]}',
        b'{"id": "x", "sha": "c", "siblings": [{}]}',
        b'{"id": "x", "sha": "c", "siblings": [{"rfilename": 7, "size": 1, "blobId": "%s"}]}' % (b"b" * 40),
        b'{"id": "x", "sha": 7, "siblings": [{"rfilename": "x.gguf", "size": 1, "blobId": "%s"}]}' % (b"b" * 40),
        b'{"id": "x", "sha": "c", "siblings": [{"rfilename": "x.gguf", "size": ' + b"9" * 5000 + b"}]}",
        b"<html>Please log in \x1b[2J</html>",
        b"\xff\xfe",
    ],
)
def test_an_answer_that_is_none_is_one_sentence(hub, folder, page):
    """It says what to check."""
    hub.faults["api"].append(Fault(page=page))
    assert "is not a hub: check the network" in refusal(hub, folder)


@pytest.mark.parametrize("kind", ["api", "resolve"])
def test_a_redirection_in_circles_ends(hub, folder, kind):
    """And is told as what it is: no hub."""
    hub.add("user/repo", {NAME: long_content(1000)})
    hub.faults[kind].extend([Fault(status=302, headers={"Location": f"{hub.url}/user/repo/resolve/main/x"})] * 200)
    hub.faults["resolve"].extend([Fault(status=302, headers={"Location": f"{hub.url}/user/repo/resolve/main/x"})] * 200)
    assert "is not a hub: check the network" in refusal(hub, folder)


def test_bytes_that_are_packed_on_the_way_are_not_taken_for_the_file(hub, fetch, content):
    """Some proxies do that though nobody asked for it."""
    hub.faults["body"].extend([Fault(status=200, headers={"Content-Encoding": "gzip"})] * 50)
    assert "check the network and the proxies" in fetch.refusal()
    hub.faults["body"].clear()
    assert fetch.run()
    assert whole(fetch.target, content)


@pytest.mark.parametrize(
    "fault",
    [
        Fault(status=206, headers={"Content-Range": f"bytes 0-9/{'9' * 5000}"}),
        Fault(status=429, headers={"Retry-After": "9" * 400}),
        Fault(status=429, headers={"RateLimit": f'"x";r=0;t={"9" * 400}'}),
        Fault(status=403, headers={"X-Error-Message": "no \x1b[2J" + "x" * 5000}),
    ],
)
def test_absurd_numbers_and_words_in_a_header_are_one_sentence(hub, fetch, fault):
    """No endless number, and no wait for ever."""
    hub.faults["body"].extend([fault] * 50)
    sentence = fetch.refusal()
    assert len(sentence) < 1000
    assert one_line(sentence) == sentence
    assert "inf" not in sentence


def test_a_long_list_of_files_is_read(hub, folder):
    """Of 5,000 files the one that is asked for."""
    entries = [sibling(f"folder/model-{number}-Q4_0.gguf") for number in range(5_000)]
    hub.faults["api"].append(listing(*entries))
    what = plan(["user/repo/folder/model-777-Q4_0.gguf"], folder, hub=Hub(), catalog=Catalog((), ()))
    assert what.models[0].path == folder / "model-777-Q4_0.gguf"
    hub.faults["api"].append(listing(*entries))
    with pytest.raises(UserError) as caught:
        plan(["user/repo:Q8_0"], folder, hub=Hub(), catalog=Catalog((), ()))
    assert len(str(caught.value)) < 500
