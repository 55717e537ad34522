"""Draft models for what is installed: the catalog's by name, others by their vocabulary."""

from __future__ import annotations

from pathlib import Path

import pytest

import tiny
import tiny_bad
from localspec.hub.catalog import load_catalog
from localspec.hub.resolve import InstalledModel, installed
from localspec.hub.suggest import Suggestion, drafts_for

CATALOG = load_catalog()


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    return tmp_path


def put(shelf: Path, name: str, size: int = 8) -> None:
    (shelf / name).write_bytes(bytes(size))


def suggested(shelf: Path, name: str) -> list[Suggestion]:
    found = installed(shelf)
    return drafts_for(model_called(name, found), found, CATALOG)


def model_called(name: str, found: list[InstalledModel]) -> InstalledModel:
    return next(model for model in found if model.name == name)


def test_the_pair_of_the_catalog_is_suggested_first(shelf: Path) -> None:
    """To be pulled, or where it is installed, whatever its quantization."""
    put(shelf, "Qwen2.5-7B-Instruct-Q5_K_M.gguf")
    (suggestion,) = suggested(shelf, "Qwen2.5-7B-Instruct-Q5_K_M")
    assert suggestion == Suggestion("qwen2.5-0.5b", None, CATALOG.pair("qwen2.5-7b").why)
    put(shelf, "qwen2.5-0.5b-instruct-q2_k.gguf")
    put(shelf, "qwen2.5-0.5b-instruct-q8_0.gguf", 9)
    assert [item.path for item in suggested(shelf, "Qwen2.5-7B-Instruct-Q5_K_M")] == [
        shelf / "qwen2.5-0.5b-instruct-q8_0.gguf"
    ]


def test_a_model_that_is_no_target_of_a_pair_gets_smaller_ones_of_its_kind(tmp_path: Path) -> None:
    """Gemma's two small models for one in between; nothing for the smallest."""
    text = (Path(__file__).parents[2] / "models/catalog.toml").read_text("utf-8")
    block = text.split('[models."gemma-3-12b"]')[1].split("[models.")[0]
    shape = text.split('[models."gemma-3-12b".shape]')[1].split("[models.")[0]
    middle = block.replace("gemma-3-12b", "gemma-3-4b").replace("11_766_034_176", "4_000_000_000")
    own = tmp_path / "catalog.toml"
    own.write_text(f'[models."gemma-3-4b"]{middle}[models."gemma-3-4b".shape]{shape}', "utf-8")
    catalog = load_catalog(own)
    put(tmp_path, "gemma-3-4b-it-Q4_K_M.gguf")
    put(tmp_path, "gemma-3-270m-it-Q8_0.gguf")
    found = installed(tmp_path)
    names = [item.name for item in drafts_for(model_called("gemma-3-4b-it-Q4_K_M", found), found, catalog)]
    assert names == ["gemma-3-270m", "gemma-3-1b"]
    assert drafts_for(model_called("gemma-3-270m-it-Q8_0", found), found, catalog) == []


def test_installed_models_with_the_same_tokens_are_suggested(shelf: Path) -> None:
    """The smallest first, if they are small enough; not those with other tokens, or none, or nothing at all."""
    tiny.llama(shelf / "large.gguf", layers=24)
    tiny.llama(shelf / "medium.gguf", layers=18)
    tiny.llama(shelf / "small.gguf", layers=6)
    tiny.llama(shelf / "tiny.gguf", layers=1)
    tiny_bad.other_vocabulary(shelf / "swapped.gguf")
    tiny_bad.vocab_only(shelf / "vocabulary.gguf")
    put(shelf, "nonsense.gguf")
    suggestions = suggested(shelf, "large")
    assert [(item.name, item.path) for item in suggestions] == [
        ("tiny", shelf / "tiny.gguf"),
        ("small", shelf / "small.gguf"),
    ]
    ratio = round((shelf / "large.gguf").stat().st_size / (shelf / "small.gguf").stat().st_size)
    assert suggestions[1].why == f"{ratio} times smaller with the same tokens."
    assert suggested(shelf, "tiny") == suggested(shelf, "nonsense") == []


def test_a_draft_of_the_catalog_is_not_named_twice(shelf: Path) -> None:
    """Once as the catalog's, and not once more as what happens to be installed."""
    tiny.llama(shelf / "SmolLM2-1.7B-Instruct-Q4_K_M.gguf", layers=24)
    tiny.llama(shelf / "SmolLM2-135M-Instruct-Q4_1.gguf", layers=1)
    assert [item.name for item in suggested(shelf, "SmolLM2-1.7B-Instruct-Q4_K_M")] == ["smollm2-135m"]
