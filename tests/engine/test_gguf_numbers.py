"""Numbers in a damaged file on which llama.cpp would end the process are found before it sees them."""

import math

import pytest

import tiny
from localspec.engine.errors import ModelError
from localspec.engine.gguf import inspect


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("llama.block_count", 0, "its number of layers is 0"),
        ("llama.block_count", 513, "its number of layers is 513"),
        ("llama.block_count", "two", "its number of layers is two"),
        ("llama.context_length", 0, "its context length is 0"),
        ("llama.context_length", 1 << 31, "its context length is 2147483648"),
        ("llama.attention.layer_norm_rms_epsilon", -1.0, "its normalization adds -1.0"),
        ("llama.attention.layer_norm_rms_epsilon", math.nan, "its normalization adds nan"),
        ("llama.expert_used_count", 2, "its number of experts is 0, of which 2 are used"),
        ("llama.expert_count", 2, "its number of experts is 2, of which 0 are used"),
        ("llama.nextn_predict_layers", 2, "its number of layers that predict further tokens is 2"),
        ("llama.rope.dimension_count", 31, "its number of rotated dimensions is 31"),
    ],
)
def test_a_number_that_cannot_be_is_damage(key, value, says, tmp_path):
    path = tiny.llama(tmp_path / "odd.gguf", extra={key: value})
    with pytest.raises(ModelError) as caught:
        inspect(path)
    assert str(caught.value) == f"odd.gguf is damaged: {says}; download it again."


@pytest.mark.parametrize(("key", "value"), [("llama.block_count", 512), ("llama.context_length", (1 << 31) - 1)])
def test_the_largest_numbers_are_taken(key, value, tmp_path):
    assert inspect(tiny.llama(tmp_path / "large.gguf", extra={key: value})).arch(key.removeprefix("llama.")) == value
