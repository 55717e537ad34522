"""The catalog: what it says holds together, names are found in it, and a person's own is laid over it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from command import ROOT
from localspec.engine.errors import UserError
from localspec.hub.catalog import Catalog, CatalogModel, load_catalog, model_stem
from localspec.hub.fit import bits

OURS = load_catalog()
UNTIED = {"qwen2.5-7b", "qwen2.5-14b", "qwen2.5-32b", "qwen2.5-coder-7b", "qwen2.5-coder-14b", "qwen2.5-coder-32b"} | {
    "qwen3-8b",
    "qwen3-14b",
    "qwen3-32b",
    "llama-3.1-8b",
    "llama-3.3-70b",
}
"""Models whose output has weights of its own."""
TWICE = {"qwen2.5-0.5b", "qwen2.5-1.5b", "qwen2.5-coder-0.5b"}
"""Models whose makers wrote the one matrix of tokens into the file twice."""
OWN = """
[models."mine-7b"]
repository = "me/mine-GGUF"
parameters = 7_000_000_000
context_length = 4096
vocabulary = "qwen2.5"
files = [{ quantization = "Q4_K_M", bytes = 4_000_000_000, file = "mine-7b-Q4_K_M.gguf" }]
shape = { layers = 28, embedding = 3584, feed_forward = 18944, heads = 28, kv_heads = 4, key_length = 128,\
 value_length = 128, vocabulary = 152064, trained_context = 4096 }

[pairs."mine-7b"]
target = "mine-7b"
draft = "qwen2.5-0.5b"
"""


@pytest.fixture
def own(tmp_path: Path) -> Path:
    return tmp_path / "catalog.toml"


def refusal(own: Path, text: str) -> str:
    own.write_text(text, encoding="utf-8")
    with pytest.raises(UserError) as caught:
        load_catalog(own)
    sentence = str(caught.value)
    assert str(own) in sentence
    assert sentence.endswith(".")
    assert sentence.count(". ") == 0
    return sentence


def test_all_pairs_of_the_issue_are_there() -> None:
    """The families people run, each with a draft model of its own."""
    assert {pair.name: pair.draft.name for pair in OURS.pairs} == {
        "smollm2-1.7b": "smollm2-135m",
        **{f"qwen2.5-{size}": "qwen2.5-0.5b" for size in ("1.5b", "7b", "14b", "32b")},
        **{f"qwen2.5-coder-{size}": "qwen2.5-coder-0.5b" for size in ("7b", "14b", "32b")},
        **{f"qwen3-{size}": "qwen3-0.6b" for size in ("8b", "14b", "32b")},
        **{f"llama-{size}": "llama-3.2-1b" for size in ("3.1-8b", "3.3-70b")},
        **{f"gemma-3-{size}": "gemma-3-1b" for size in ("12b", "27b")},
    }


def test_a_pair_is_a_large_and_a_small_model_of_one_vocabulary() -> None:
    """And says why in a sentence that has the ratio right."""
    for pair in OURS.pairs:
        assert pair.name == pair.target.name
        assert pair.target.vocabulary == pair.draft.vocabulary
        assert pair.ratio > 3
        stated = re.match(r"(\d+) times smaller", pair.why)
        assert stated and abs(int(stated[1]) - pair.ratio) <= 0.5
        assert pair.why.endswith(".")


def computed(model: CatalogModel, bytes_per_weight: float = 0.0) -> float:
    """The number of weights that the shape makes, or the bytes of the matrices and norms at so many bytes a weight."""
    shape = model.shape
    head = shape.heads * (shape.key_length + shape.value_length)
    cached = shape.kv_heads * (shape.key_length + shape.value_length)
    block = shape.embedding * (head + cached) + 3 * shape.embedding * shape.feed_forward
    norms = 2 * shape.embedding
    if model.name.startswith("qwen2.5"):
        norms += head // 2 + cached
    if model.name.startswith("qwen3"):
        norms += 2 * shape.key_length
    if model.name.startswith("gemma"):
        norms += 2 * shape.embedding + 2 * shape.key_length
    copies = 2 if model.name in UNTIED or (bytes_per_weight and model.name in TWICE) else 1
    matrices = shape.layers * block + copies * shape.vocabulary * shape.embedding
    others = shape.layers * norms + shape.embedding
    return matrices * bytes_per_weight + others * 4 if bytes_per_weight else matrices + others


@pytest.mark.parametrize("model", OURS.models, ids=lambda model: model.name)
def test_the_parameters_are_those_of_the_shape(model: CatalogModel) -> None:
    """To the last one, so that neither can be mistyped."""
    assert model.parameters == computed(model)


@pytest.mark.parametrize("model", OURS.models, ids=lambda model: model.name)
def test_the_sizes_are_those_of_the_shape(model: CatalogModel) -> None:
    """In Q8_0 a file is its tensors (34 bytes for 32 weights) and 1.5 to 8 MB of tokenizer; others come in order."""
    eight = model.file("q8_0")
    assert eight
    assert 1_500_000 < eight.bytes - computed(model, 34 / 32) < 8_500_000
    assert [file.quantization for file in model.files] == sorted(
        [file.quantization for file in model.files], key=lambda name: (bits(name), name)
    )
    for file in model.files:
        weight = file.bytes * 8 / model.parameters
        assert bits(file.quantization) < weight < bits(file.quantization) + 4


def test_files_are_named_as_they_lie_on_the_hub() -> None:
    """Every file of a model has the same name but for the quantization, and is found by it."""
    for model in OURS.models:
        assert len({model_stem(file.name) for file in model.files}) == 1
        assert all(OURS.model_of(Path("/elsewhere", file.name)) == model for file in model.files)
        assert any(file.quantization == "Q4_K_M" for file in model.files) or model.name == "gemma-3-270m"
        assert model.revision is None or re.fullmatch("[0-9a-f]{40}", model.revision)
        assert (model.revision is None) == ("revision" in model.unchecked)
        assert ("bytes" in model.unchecked) == any(not file.checked for file in model.files)
    hashes = [file.sha256 for model in OURS.models for file in model.files if file.sha256]
    assert len(set(hashes)) == len(hashes) >= 35


def test_a_split_file_has_the_paths_of_all_its_parts() -> None:
    """In the folder that it lies in."""
    file = OURS.model("llama-3.3-70b").file("Q8_0")
    assert file and [path.rpartition("/")[2] for path in file.paths] == [
        "Llama-3.3-70B-Instruct-Q8_0-00001-of-00002.gguf",
        "Llama-3.3-70B-Instruct-Q8_0-00002-of-00002.gguf",
    ]
    assert {path.rpartition("/")[0] for path in file.paths} == {"Llama-3.3-70B-Instruct-Q8_0"}
    whole = OURS.model("qwen3-8b").file("Q4_K_M")
    assert whole and whole.paths == (whole.file,)


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("SmolLM2-135M-Instruct-Q4_1.gguf", "smollm2-135m-instruct"),
        ("qwen2.5-7b-instruct-q4_k_m-00001-of-00002.gguf", "qwen2.5-7b-instruct"),
        ("Qwen3-8B-UD-Q4_K_XL.gguf", "qwen3-8b"),
        ("Mistral.IQ3_XXS.GGUF", "mistral"),
        ("model-f16.gguf", "model"),
        ("someone--Qwen3-8B-Q8_0.gguf", "qwen3-8b"),
        ("Q4.gguf", "q4"),
        ("chat.gguf", "chat"),
    ],
)
def test_a_model_is_known_by_its_name_without_the_quantization(name: str, stem: str) -> None:
    assert model_stem(name) == stem


def test_another_quantization_of_a_model_is_that_model() -> None:
    """The starter model, which the hub's catalog does not list, drafts for SmolLM2 1.7B."""
    model = OURS.model_of(Path("SmolLM2-135M-Instruct-Q4_1.gguf"))
    assert model and model.name == "smollm2-135m"
    assert OURS.model_of(Path("SmolLM2-135M-Q4_1.gguf")) is None


def test_names_are_found_without_case_and_by_a_beginning_of_their_own() -> None:
    """Whole names first, and a pair before the model it is called after."""
    assert OURS.find("Qwen3-8B") == OURS.pair("qwen3-8b")
    assert OURS.model("qwen3-8b") == OURS.pair("qwen3-8b").target
    assert OURS.find("qwen3-0").name == "qwen3-0.6b"
    assert OURS.get("qwen3-0") is None
    with pytest.raises(UserError, match=r"^qwen3 could be qwen3-.* or qwen3-.*: give more of the name\.$"):
        OURS.find("qwen3")
    with pytest.raises(UserError, match=r"^There is no pair 'qwen3-0\.6b' in the catalog; the nearest: .*qwen3-8b"):
        OURS.pair("qwen3-0.6b")
    with pytest.raises(UserError, match=r"'xyz' in the catalog; localspec models lists them\.$"):
        OURS.find("xyz")


def test_without_a_catalog_of_ones_own_there_is_ours(own: Path) -> None:
    assert load_catalog(own) == OURS
    assert load_catalog(own / "below") == OURS
    own.write_text("")
    assert load_catalog(own) == OURS


def test_a_catalog_of_ones_own_adds_and_replaces(own: Path) -> None:
    """What it does not name stays as it is."""
    own.write_text(OWN + '[pairs."QWEN3-8B"]\ntarget = "qwen3-8b"\ndraft = "qwen3-0.6b"\nwhy = "Mine."\n', "utf-8")
    both = load_catalog(own)
    assert both.pair("mine-7b").draft == OURS.model("qwen2.5-0.5b")
    assert both.pair("qwen3-8b").why == "Mine."
    assert len(both.pairs) == len(OURS.pairs) + 1
    assert both.models[:-1] == OURS.models
    assert isinstance(both, Catalog)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("models =", "it is not TOML"),
        ("[model.x]", "model is neither models nor pairs"),
        ("models = 3", "models are not written as in"),
        ('[models."a b"]', "'a b' is no name"),
        ("[models.x]", "the model x lacks repository"),
        (
            OWN.replace("parameters = 7_000_000_000", 'parameters = "many"'),
            "parameters of the model mine-7b is not a whole",
        ),
        (
            OWN.replace("parameters = 7_000_000_000", "parameters = true"),
            "parameters of the model mine-7b is not a whole",
        ),
        (OWN.replace("me/mine-GGUF", "mine"), "repository of the model mine-7b is not written as user/repo"),
        (
            OWN.replace("mine-7b-Q4_K_M.gguf", "../../etc/mine.gguf"),
            "file 1 of the model mine-7b is not the path of a .gguf",
        ),
        (OWN.replace("mine-7b-Q4_K_M.gguf", "mine.bin"), "file 1 of the model mine-7b is not the path of a .gguf"),
        (
            OWN.replace("bytes = 4_000_000_000", "bytes = -1"),
            "bytes of file 1 of the model mine-7b is not a possible size",
        ),
        (OWN.replace('"Q4_K_M"', '"Q4_K_M", sha256 = "12"'), "sha256 of file 1 of the model mine-7b is not 64 digits"),
        (OWN.replace('"Q4_K_M"', '"Q4_K_M", parts = 2'), "has 2 parts and is not called as the first of them"),
        (OWN.replace("layers = 28, ", ""), "the shape of the model mine-7b lacks layers"),
        (OWN.replace("context_length", "context"), "the model mine-7b has context, which means nothing"),
        (
            OWN.replace('draft = "qwen2.5-0.5b"', 'draft = "nobody"'),
            "draft of the pair mine-7b is nobody, which is no model",
        ),
        (OWN.replace('draft = "qwen2.5-0.5b"', 'draft = "qwen3-0.6b"'), "have different vocabularies"),
        (OWN.replace('[pairs."mine-7b"]', '[pairs."qwen3-8b"]'), "called like a model that is not its target"),
    ],
)
def test_a_catalog_that_cannot_be_used_is_one_sentence(own: Path, text: str, problem: str) -> None:
    """It names the file and the problem."""
    assert problem in refusal(own, text)


def test_a_catalog_that_cannot_be_read_is_one_sentence(own: Path) -> None:
    own.write_bytes(b"\xff\xfe")
    with pytest.raises(UserError, match="is not UTF-8"):
        load_catalog(own)
    own.unlink()
    own.mkdir()
    with pytest.raises(UserError, match="cannot be read"):
        load_catalog(own)


def test_the_wheel_has_the_catalog(tmp_path: Path) -> None:
    """And finds it where there is no repository around."""
    builders = pytest.importorskip("hatchling.builders.wheel")
    wheel = next(iter(builders.WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])))
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    assert (tmp_path / "site/localspec/hub/catalog.toml").is_file()
    program = "import localspec.hub.catalog as c; print(c.__file__, len(c.load_catalog().pairs))"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [str(tmp_path / "site/localspec/hub/catalog.py"), str(len(OURS.pairs))]
