"""A model on the hub is looked at by its header, before any of it is downloaded."""

from __future__ import annotations

from pathlib import Path

import pytest

import tiny
import tiny_bad
from command import call, read_json
from hub_server import Content, HubServer
from localspec.engine.errors import UserError
from localspec.hub.hub_client import Hub
from localspec.hub.look import Look, look
from localspec.hub.reference import parse_reference
from localspec.hub.resolve import installed


@pytest.fixture
def shelf(own_folders: Path) -> Path:
    """What is installed: a smaller and a larger model with the same tokens, and one with others."""
    folder = own_folders / "data" / "models"
    folder.mkdir(parents=True)
    tiny.llama(folder / "small.gguf", layers=1)
    tiny.llama(folder / "large.gguf", layers=60)
    tiny_bad.other_vocabulary(folder / "foreign.gguf")
    return folder


@pytest.fixture
def repository(hub: HubServer, tmp_path: Path) -> HubServer:
    middle = tiny.llama(tmp_path / "middle.gguf", layers=16).read_bytes()
    hub.add("user/repo", {"m-Q4_K_M.gguf": Content(middle), "m-Q8_0.gguf": Content(middle), "card.md": Content(b"x")})
    hub.add("user/other", {"mmproj-F16.gguf": Content(b"x")})
    hub.add("user/page", {"page.gguf": Content(b"<html>" * 100)})
    hub.add("user/encoder", {"e.gguf": Content(tiny_bad.embedding(tmp_path / "e.gguf").read_bytes())})
    return hub


def seen(reference: str, shelf: Path) -> Look:
    meant = parse_reference(reference)
    assert meant
    return look(meant, installed(shelf), Hub())


def test_the_header_says_what_a_model_goes_with(repository: HubServer, shelf: Path) -> None:
    """Which installed models could draft for it, and for which it could."""
    found = seen("user/repo:q8_0", shelf)
    assert (found.model.name, found.header.block_count, found.header.vocabulary_size) == ("m-Q8_0", 16, 261)
    assert [(item.name, item.path) for item in found.drafts] == [("small", shelf / "small.gguf")]
    assert [item.name for item in found.targets] == ["large"]


def test_only_the_header_is_fetched(hub: HubServer, shelf: Path, tmp_path: Path) -> None:
    """Of a file of gigabytes, a few megabytes."""
    header = tiny.llama(tmp_path / "m.gguf", layers=16).read_bytes()
    size = len(header) + (3 << 30)
    hub.add("user/huge", {"huge-Q4_0.gguf": Content(header, size)})
    assert seen("user/huge", shelf).model.bytes == size
    assert hub.ranges_asked() == [f"bytes=0-{(4 << 20) - 1}"]


def test_the_usual_file_is_looked_at_where_none_is_named(repository: HubServer, shelf: Path) -> None:
    assert seen("user/repo", shelf).model.quantization == "Q4_K_M"
    assert seen("user/repo/M-Q8_0.gguf", shelf).model.quantization == "Q8_0"


def test_what_is_not_there_is_one_sentence(repository: HubServer, shelf: Path) -> None:
    """With what there is instead."""
    with pytest.raises(
        UserError, match=r"^user/repo holds no such \.gguf file as user/repo:Q2_K means: it has Q4_K_M, Q8_0\.$"
    ):
        seen("user/repo:Q2_K", shelf)
    with pytest.raises(UserError, match=r": it has none\.$"):
        seen("user/other", shelf)
    with pytest.raises(UserError, match="it looks like a web page"):
        seen("user/page", shelf)


def test_the_command_shows_it(repository: HubServer, shelf: Path) -> None:
    """As text and as one document; a model that cannot chat says why."""
    outcome = call("models", "user/repo")
    assert (outcome.code, outcome.err) == (0, "")
    for fact in (
        "m-Q4_K_M.gguf",
        "not installed",
        "2048 tokens",
        "261 tokens",
        "small, installed: ",
        "large, installed",
    ):
        assert fact in outcome.out
    document = read_json(call("models", "user/repo", "--json").out)
    assert (document["repository"], document["file"], document["problem"]) == ("user/repo", "m-Q4_K_M.gguf", None)
    assert document["fit"]["verdict"] == "fits"
    assert [draft["name"] for draft in document["drafts"]] == ["small"]
    assert "embedding model" in call("models", "user/encoder").out
    outcome = call("models", "user/nothing")
    assert outcome.code == 1
    assert outcome.sentence.startswith("The hub has no repository user/nothing")
