"""`localspec models`: what is installed, what there is, and what fits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import tiny
from command import call, execute, read_json
from localspec.engine.errors import UserError
from localspec.hub.catalog import load_catalog
from localspec.hub.machine import Machine, apple_silicon, cuda, laptop
from localspec.models import Models
from localspec.settings import find_folders

CATALOG = load_catalog()


@pytest.fixture
def shelf(own_folders: Path) -> Path:
    folder = own_folders / "data" / "models"
    folder.mkdir(parents=True)
    return folder


class Screen:
    """The command on a machine that a test chooses."""

    def __init__(self, capsys: pytest.CaptureFixture[str], machine: Machine) -> None:
        self._capsys, self._machine = capsys, machine

    def text(self, name: str | None = None) -> str:
        models = Models(find_folders(), look=lambda: self._machine)
        assert (models.show_list(False) if name is None else models.show(name, False)) == 0
        shown = self._capsys.readouterr()
        assert shown.err == ""
        return shown.out

    def document(self, name: str | None = None) -> Any:
        models = Models(find_folders(), look=lambda: self._machine)
        assert (models.show_list(True) if name is None else models.show(name, True)) == 0
        return read_json(self._capsys.readouterr().out)


@pytest.fixture
def screen(capsys: pytest.CaptureFixture[str]) -> Screen:
    return Screen(capsys, laptop(16))


def columns(text: str, heading: str) -> dict[str, list[str]]:
    """The rows of a table by their first cell."""
    lines = text.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(heading))
    rows = []
    for line in lines[start + 1 :]:
        if not line:
            break
        rows.append([cell for cell in line.split("  ") if cell])
    return {row[0]: [cell.strip() for cell in row[1:]] for row in rows}


def test_with_nothing_installed_all_pairs_are_listed(screen: Screen) -> None:
    """Each with its draft model, what is to be downloaded, and whether it fits this machine."""
    text = screen.text()
    assert text.splitlines()[0] == "16 GB without a GPU: 13.7 GB free for models"
    assert "INSTALLED" not in text
    pairs = columns(text, "PAIR")
    assert list(pairs) == [pair.name for pair in CATALOG.pairs]
    draft, download, fit = pairs["qwen3-8b"]
    assert (draft, fit) == ("qwen3-0.6b", "fits")
    assert 5 < float(download.removesuffix(" GB")) < 10
    assert pairs["llama-3.3-70b"][2] == "does not fit"
    assert max(map(len, text.splitlines())) <= 80


def test_the_machine_decides_what_fits(capsys: pytest.CaptureFixture[str]) -> None:
    """A Mac's memory is named once; a card of its own takes what it can."""
    mac = Screen(capsys, apple_silicon(64)).text()
    assert "of it on the GPU" in mac.splitlines()[0]
    assert columns(mac, "PAIR")["llama-3.3-70b"][2].startswith("fits")
    card = Screen(capsys, cuda(8)).text()
    assert columns(card, "PAIR")["qwen2.5-14b"][2].startswith("partly on the GPU: ")


def test_an_installed_model_says_which_draft_model_goes_with_it(screen: Screen, shelf: Path) -> None:
    """To be pulled at first, and then installed; a file that is no model says so and stands in nobody's way."""
    tiny.llama(shelf / "Qwen3-8B-Q4_K_M.gguf", layers=24)
    (shelf / "broken.gguf").write_bytes(b"<html>")
    rows = columns(screen.text(), "INSTALLED")
    assert rows["Qwen3-8B-Q4_K_M"][1:] == ["fits", "localspec pull qwen3-0.6b"]
    assert rows["broken"][1:] == ["cannot be used", "-"]
    tiny.llama(shelf / "Qwen3-0.6B-Q8_0.gguf", layers=1)
    text = screen.text()
    assert columns(text, "INSTALLED")["Qwen3-8B-Q4_K_M"][1:] == ["fits", "qwen3-0.6b, installed"]
    assert columns(text, "PAIR")["qwen3-8b"][:2] == ["qwen3-0.6b", "installed"]


def test_json_is_one_document_with_every_pair_and_its_verdict(screen: Screen, shelf: Path) -> None:
    """The file that would be taken, or is there already; the context to open it with; the machine it is said for."""
    tiny.llama(shelf / "Qwen3-8B-Q4_K_M.gguf")
    document = screen.document()
    assert document["machine"] == {
        "name": "16 GB without a GPU",
        "memory_bytes": laptop(16).memory,
        "gpu_bytes": 0,
        "unified": False,
    }
    assert [pair["name"] for pair in document["pairs"]] == [pair.name for pair in CATALOG.pairs]
    for pair in document["pairs"]:
        assert set(pair["fit"]) == {"verdict", "fits", "context", "gpu_layers", "bytes"}
        assert pair["fit"]["fits"] == (pair["fit"]["verdict"] != "does not fit")
        assert pair["fit"]["context"] >= 2048
    pair = next(pair for pair in document["pairs"] if pair["name"] == "qwen3-8b")
    size = (shelf / "Qwen3-8B-Q4_K_M.gguf").stat().st_size
    assert pair["target"]["installed"] == str(shelf / "Qwen3-8B-Q4_K_M.gguf")
    assert (pair["target"]["quantization"], pair["target"]["bytes"]) == ("Q4_K_M", size)
    assert pair["draft"]["installed"] is None
    assert pair["download_bytes"] == pair["draft"]["bytes"] == CATALOG.model("qwen3-0.6b").files[0].bytes
    assert not pair["installed"]
    (model,) = document["installed"]
    assert (model["name"], model["catalog"], model["problem"]) == ("Qwen3-8B-Q4_K_M", "qwen3-8b", None)
    assert model["drafts"][0] == {
        "name": "qwen3-0.6b",
        "installed": False,
        "path": None,
        "why": CATALOG.pair("qwen3-8b").why,
    }


def test_one_pair_in_detail(screen: Screen) -> None:
    """Why this draft model, whose files, under which license, and what nobody has checked."""
    text = screen.text("Qwen3-32B")
    for fact in (
        CATALOG.pair("qwen3-32b").why,
        "Apache-2.0",
        "Qwen/Qwen3-32B-GGUF at 938a743",
        "40960 tokens",
        "32.8 billion",
        "the sizes marked with ~, which are computed",
    ):
        assert fact in text
    files = columns(text, "FILE")
    assert files["Q4_K_M"][:2] == ["19.8 GB", "does not fit"]
    assert files["Q8_0"][0] == "~34.8 GB"
    document = screen.document("qwen3-32b")
    assert document["unchecked"] == ["bytes"]
    assert [file["bytes_checked"] for file in document["files"]] == [True, False, False, False]
    assert document["pair"]["why"] == CATALOG.pair("qwen3-32b").why


def test_the_file_that_pull_takes_is_marked_until_it_is_there(screen: Screen, shelf: Path) -> None:
    """One of them, and then it is called installed."""
    files = columns(screen.text("qwen2.5-1.5b"), "FILE")
    (taken,) = [name for name, row in files.items() if row[-1] == "pull takes this one"]
    file = CATALOG.model("qwen2.5-1.5b").file(taken)
    assert file
    tiny.llama(shelf / file.name)
    files = columns(screen.text("qwen2.5-1.5b"), "FILE")
    assert {name for name, row in files.items() if len(row) > 2} == {taken}
    assert files[taken][-1] == "installed"


def test_one_installed_model_in_detail(screen: Screen, shelf: Path) -> None:
    """By its name or a beginning of it; also one that cannot be used."""
    tiny.llama(shelf / "mine.gguf", layers=24)
    tiny.llama(shelf / "small.gguf", layers=1)
    (shelf / "broken.gguf").write_bytes(b"<html>")
    text = screen.text("min")
    assert text.startswith("mine\n")
    assert "small, installed: " in text
    assert "261 tokens" in text
    assert screen.document("mine")["drafts"][0]["path"] == str(shelf / "small.gguf")
    assert "it looks like a web page" in screen.text("broken")
    assert screen.document("broken")["fit"] is None


def test_an_unknown_name_is_one_sentence(screen: Screen) -> None:
    with pytest.raises(UserError, match=r"the nearest: .*qwen3-14b"):
        screen.text("qwen3-144b")


def test_a_catalog_of_ones_own_is_listed_or_complained_of(screen: Screen, own_folders: Path) -> None:
    """What is installed and ours are listed all the same, and a sentence names the file."""
    file = own_folders / "config" / "catalog.toml"
    file.parent.mkdir(parents=True)
    file.write_text('[pairs."qwen3-8b"]\ntarget = "qwen3-8b"\ndraft = "qwen3-0.6b"\nwhy = "Mine."\n', "utf-8")
    assert "qwen3-0.6b: Mine." in screen.text("qwen3-8b")
    file.write_text("nonsense", "utf-8")
    outcome = call("models")
    assert outcome.code == 0
    assert outcome.sentence.startswith(f"The catalog {file} cannot be used (it is not TOML: ")
    assert "qwen3-8b" in outcome.out
    # What nobody finds may be what stands there.
    for words in (("models", "mine-9b"), ("pull", "mine-9b"), ("run", "-m", "mine-9b", "Hello")):
        missing = call(*words)
        assert (missing.code, missing.out) == (1, "")
        assert missing.sentence == outcome.sentence


def test_the_command_itself_looks_at_this_machine(shelf: Path) -> None:
    """In a process of its own: a table, one document and nothing else, one sentence."""
    tiny.llama(shelf / "mine.gguf")
    document = execute("models", "--json").document
    assert document["machine"]["memory_bytes"] > 0
    assert len(document["pairs"]) == len(CATALOG.pairs)
    shown = execute("models")
    assert (shown.code, shown.err) == (0, "")
    assert "\nmine  " in shown.out
    assert execute("models", "nothing", "--quiet").sentence.startswith("There is no model or pair 'nothing'")
    assert json.loads(execute("models", "qwen3-8b", "--json").out)["name"] == "qwen3-8b"


def test_a_file_name_neither_breaks_the_table_nor_commands_the_terminal(screen: Screen, shelf: Path) -> None:
    """Whatever somebody has put into the models folder, also names that are no text."""
    hostile = ("e\x1b[2J\nx", "c\x9b2Jx", "n\udcffx", "-m", "[red]x", "x" * 250)
    for name in hostile:
        (shelf / f"{name}.gguf").write_bytes(b"x")
    lines = screen.text().splitlines()
    assert all(line.isprintable() for line in lines)
    assert len([line for line in lines if "cannot be used" in line]) == len(hostile)
    assert any(line.startswith("e\\x1b[2J\\nx ") for line in lines)
    assert {item["name"] for item in screen.document()["installed"]} == set(hostile)
    for name in hostile:
        assert all(line.isprintable() for line in screen.text(name).splitlines())


def test_json_holds_nothing_that_a_terminal_obeys(
    screen: Screen, shelf: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """C1 control characters are as good as escape sequences for some terminals, and JSON lets them be."""
    (shelf / "c\x9b2J\x7fx.gguf").write_bytes(b"x")
    Models(find_folders(), look=lambda: laptop(16)).show_list(True)
    written = capsys.readouterr().out
    assert "c\\u009b2J\\u007fx" in written
    assert not set(written) & set(map(chr, range(0x7F, 0xA0)))


def test_an_installed_file_that_the_catalog_lacks_is_named_all_the_same(screen: Screen, shelf: Path) -> None:
    """The one that is used may be another quantization than those that can be pulled."""
    tiny.llama(shelf / "Qwen3-0.6B-Q5_1.gguf")
    assert "  installed   Qwen3-0.6B-Q5_1\n" in screen.text("qwen3-0.6b")
