"""What a model's header says about the memory it needs."""

from pathlib import Path

import pytest
from blueprint import MODELS

import tiny
from localspec.engine.gguf import inspect
from localspec.hub.shape import ModelShape, shape_of


def test_plain_attention(tiny_llama: Path) -> None:
    """Every layer keeps keys and values."""
    assert shape_of(inspect(tiny_llama)) == ModelShape(
        layers=2,
        embedding=64,
        feed_forward=128,
        heads=2,
        kv_heads=1,
        key_length=32,
        value_length=32,
        vocabulary=tiny.VOCABULARY_SIZE,
        trained_context=2048,
        cached_heads=2,
    )


def test_a_sliding_window_sees_everything_in_every_sixth_layer(tmp_path: Path) -> None:
    """Gemma 3 does not say so in its file."""
    shape = shape_of(inspect(tiny.gemma3(tmp_path / "gemma3.gguf", layers=13)))
    assert (shape.sliding_window, shape.full_every, shape.full_layers) == (32, 6, 2)


@pytest.mark.parametrize(("pattern", "full"), [(2, 6), ([True, False, False] + [True] * 10, 2)])
def test_the_file_may_say_which_layers_see_everything(pattern: object, full: int, tmp_path: Path) -> None:
    """As one layer in so many, or layer by layer."""
    extra = {"gemma3.attention.sliding_window_pattern": pattern}
    shape = shape_of(inspect(tiny.gemma3(tmp_path / "gemma3.gguf", layers=13, extra=extra)))
    assert shape.full_layers == full


def test_short_convolutions_keep_two_columns_and_no_cache(tmp_path: Path) -> None:
    """Two of three layers of this hybrid are convolutions, whose states llama.cpp can roll back."""
    shape = shape_of(inspect(tiny.lfm2(tmp_path / "lfm2.gguf", repeats=4)))
    assert (shape.layers, shape.state_layers, shape.all_cached_heads) == (12, 8, 4)
    assert (shape.state_elements, shape.state_snapshots, shape.state_inner) == (2 * 64, 1, 0)


def test_a_state_space_model_keeps_no_cache_at_all(tiny_mamba: Path) -> None:
    """3 columns and 16 states of 128 channels in each layer, which cannot be rolled back."""
    shape = shape_of(inspect(tiny_mamba))
    assert (shape.state_layers, shape.all_cached_heads, shape.feed_forward) == (2, 0, 0)
    assert (shape.state_elements, shape.state_snapshots, shape.state_inner) == ((3 + 16) * 128, 0, 128)


def test_experts_are_counted(tmp_path: Path) -> None:
    """A feed-forward layer is one expert's."""
    shape = shape_of(inspect(MODELS["Qwen3 30B A3B"].write(tmp_path / "experts.gguf")))
    assert (shape.feed_forward, shape.experts, shape.experts_used) == (768, 128, 8)


def test_a_window_is_ignored_where_the_architecture_has_none(tiny_llama: Path, tmp_path: Path) -> None:
    """Some files name one that llama.cpp does not use."""
    path = tiny.llama(tmp_path / "llama.gguf", extra={"llama.attention.sliding_window": 512})
    assert shape_of(inspect(path)) == shape_of(inspect(tiny_llama))


@pytest.mark.parametrize(
    ("extra", "stateful"),
    [
        ({}, 5),
        ({"full_attention_interval": 2}, 3),
        ({"attention.recurrent_layers": [True] + [False] * 5}, 1),
        ({"nextn_predict_layers": 1}, 4),
    ],
)
def test_hybrids_say_in_many_ways_which_layers_are_attention(
    extra: dict[str, object], stateful: int, tmp_path: Path
) -> None:
    """One in four, one in so many, or each by itself; layers that guess ahead are not loaded."""
    recipe = tiny.llama_recipe(layers=6)
    recipe.architecture = "qwen35"
    ours = {key.replace("llama.", "qwen35."): value for key, value in recipe.metadata.items()}
    recipe.metadata = ours | {f"qwen35.{key}": value for key, value in extra.items()}
    shape = shape_of(inspect(recipe.write(tmp_path / "hybrid.gguf")))
    assert shape.state_layers == stateful
    assert shape.all_cached_heads == shape.layers - stateful
