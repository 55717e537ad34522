"""A catalog of a person's own that is damaged, or that somebody else has written: one sentence, at once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from localspec.engine.errors import UserError
from localspec.hub.catalog import Catalog, load_catalog
from localspec.hub.machine import apple_silicon, laptop
from localspec.hub.offers import offers

SHAPE = (
    "{ layers = 2, embedding = 64, feed_forward = 64, heads = 2, kv_heads = 2, key_length = 32, value_length = 32, "
    "vocabulary = 100, trained_context = 512 }"
)
NUMBERS = ("embedding", "feed_forward", "heads", "kv_heads", "key_length", "value_length", "vocabulary")


def model(name: str, files: str = '{ file = "m-Q4_0.gguf", quantization = "Q4_0", bytes = 1000 }', **more: str) -> str:
    values = {"repository": '"user/repo"', "parameters": "100", "context_length": "512", "vocabulary": '"v"'} | more
    lines = [f'[models."{name}"]', *(f"{key} = {value}" for key, value in values.items())]
    return "\n".join([*lines, f"shape = {more.get('shape', SHAPE)}" * ("shape" not in more), f"files = [{files}]", ""])


def read(tmp_path: Path, content: str | bytes) -> Catalog:
    file = tmp_path / "catalog.toml"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return load_catalog(file)


def refusal(tmp_path: Path, content: str | bytes) -> str:
    with pytest.raises(UserError) as caught:
        read(tmp_path, content)
    assert len(str(caught.value)) < 1000
    return str(caught.value)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("x = " + "[" * 100_000, "nested too deep"),
        ("x = " + "{a=" * 100_000, "nested too deep"),
        ("x = " + "9" * 5000, "it is not TOML"),
        ("\0", "it is not TOML"),
        (b"\xff", "is not UTF-8"),
        ("#" * 10_000_001, "it is larger than 10 MB"),
        ("models = 1", "are not written as"),
        ("[models]\nx = 1", "are not written as"),
        ("[pairs]\nx = [1]", "are not written as"),
        (model("a", '{ file = "../m.gguf", quantization = "Q4_0", bytes = 1 }'), "is not the path of a .gguf"),
        (model("a", '{ file = "m\\u001b.gguf", quantization = "Q4_0", bytes = 1 }'), "has characters that no name has"),
        (model("a", '{ file = "m.gguf", quantization = "\\u009b", bytes = 1 }'), "has characters that no name has"),
        (
            model("a", '{ file = "m-00001-of-1000000.gguf", quantization = "Q", bytes = 1, parts = 1000000 }'),
            "parts of",
        ),
        (model("a", '{ file = "m.gguf", quantization = "Q", bytes = 1, parts = 0 }'), "parts of"),
        (model("a", "7"), "is not a table"),
        (model("a", repository='"../x"'), "is not written as user/repo"),
        (model("a", parameters="1e9"), "is not a whole number"),
        (model("a", parameters="-1"), "is not a possible size"),
        (model("a", parameters="0"), "is not a possible size"),
        (model("a\\u001b[2J"), "is no name"),
        (model("a", shape=SHAPE.replace("layers = 2", "layers = 513")), "are more than the 512 that llama.cpp loads"),
    ],
)
def test_what_is_wrong_with_it_is_said(tmp_path, content, reason):
    """In one sentence, however deep, long or strange it is."""
    assert reason in refusal(tmp_path, content)


def test_it_may_be_no_file_at_all(tmp_path):
    """A pipe nobody writes to, a folder, a circle of links, and a device that never ends."""
    file = tmp_path / "catalog.toml"
    os.mkfifo(file)
    with pytest.raises(UserError, match="it is not a file"):
        load_catalog(file)
    file.unlink()
    for target in ("catalog.toml", "/dev/zero", str(tmp_path)):
        file.symlink_to(target)
        with pytest.raises(UserError, match=r"mend or remove it|check what it is"):
            load_catalog(file)
        file.unlink()


@pytest.mark.parametrize("value", ["0", str((1 << 62) - 1)])
@pytest.mark.parametrize("number", NUMBERS)
def test_absurd_measures_have_a_verdict(tmp_path, number, value):
    """Nothing divides by them, and nothing is as long as they are."""
    start = SHAPE.index(f" {number} = ")
    end = min(place for place in (SHAPE.find(",", start), SHAPE.find(" }", start)) if place > 0)
    shape = f"{SHAPE[:start]} {number} = {value}{SHAPE[end:]}"
    # A model of no parameters is refused.
    text = model("a", shape=shape, parameters=str(max(1, int(value)))) + model("b", parameters="1")
    text += '[pairs."a"]\ntarget = "a"\ndraft = "b"\n[pairs."b-a"]\ntarget = "b"\ndraft = "a"\n'
    catalog = read(tmp_path, text)
    for machine in (laptop(8), apple_silicon(16)):
        found = {offer.pair.name: offer.verdict for offer in offers(catalog, [], machine)}
        assert found["a"].text
        assert found["b-a"].text


def test_a_catalog_of_thousands_of_models_is_read(tmp_path):
    """Each by its name."""
    catalog = read(tmp_path, "".join(model(f"model-{number}") for number in range(2000)))
    assert catalog.model("model-1999").parameters == 100
