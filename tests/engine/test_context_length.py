"""How long a context may be: models with a learned table of positions end the process behind its last row."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tiny
from localspec.engine.context_length import context_length, longest_context
from localspec.engine.engine import Engine, EngineSettings, Options
from localspec.engine.errors import ModelError
from localspec.engine.gguf import GgufHeader, inspect
from localspec.engine.step import Finish
from tiny_checks import GREEDY, write

WIDTH = 64


def gpt2(path: Path, context: int) -> Path:
    """Learned positions, one block."""
    random = np.random.default_rng(0)
    shapes = {"attn_qkv": (3 * WIDTH, WIDTH), "attn_output": (WIDTH, WIDTH)}
    shapes |= {"ffn_up": (4 * WIDTH, WIDTH), "ffn_down": (WIDTH, 4 * WIDTH)}
    tensors = {
        "token_embd.weight": random.standard_normal((tiny.VOCABULARY_SIZE, WIDTH), dtype=np.float32),
        "position_embd.weight": random.standard_normal((context, WIDTH), dtype=np.float32),
    }
    for name, (rows, columns) in shapes.items():
        tensors[f"blk.0.{name}.weight"] = random.standard_normal((rows, columns), dtype=np.float32) / 8
        tensors[f"blk.0.{name}.bias"] = np.zeros(rows, np.float32)
    for name in ("output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"):
        tensors |= {f"{name}.weight": np.ones(WIDTH, np.float32), f"{name}.bias": np.zeros(WIDTH, np.float32)}
    numbers = {"context_length": context, "embedding_length": WIDTH, "block_count": 1, "feed_forward_length": 4 * WIDTH}
    numbers |= {"attention.head_count": 2}
    metadata: dict[str, tiny.Value] = {f"gpt2.{key}": value for key, value in numbers.items()}
    metadata |= {"gpt2.attention.layer_norm_epsilon": 1e-5}
    return tiny.Recipe("gpt2", metadata, tensors).write(path)


def table_of(path: Path, context: int) -> GgufHeader:
    """The header of a model with that many positions."""
    return inspect(gpt2(path, context))


def test_computed_positions_have_no_end(tiny_llama: Path) -> None:
    header = inspect(tiny_llama)
    assert (header.has_position_table, longest_context(header)) == (False, None)
    assert context_length(header, None, None) == 2048
    assert context_length(header, header, 4000) == 4096


def test_without_a_wish_a_long_context_is_limited(tmp_path: Path) -> None:
    assert context_length(inspect(tiny.llama(tmp_path / "m.gguf", context=131072)), None, None) == 8192


def test_a_table_of_positions_is_noticed(tmp_path: Path) -> None:
    header = table_of(tmp_path / "gpt2.gguf", 1024)
    assert (header.has_position_table, longest_context(header)) == (True, 1024)
    assert context_length(header, None, None) == context_length(header, header, 1024) == 1024
    assert context_length(header, None, 300) == 512


def test_it_is_noticed_in_any_part_of_a_split_model(tmp_path: Path) -> None:
    names = [tmp_path / f"m-0000{number}-of-00002.gguf" for number in (1, 2)]
    recipe = tiny.llama_recipe()
    for number, name in enumerate(names):
        if number:
            recipe.tensors = {"position_embd.weight": np.zeros((2048, WIDTH), np.float32)}
        recipe.write(name, extra={"split.no": number, "split.count": 2})
    assert longest_context(inspect(names[0])) == 2048


@pytest.mark.parametrize(
    ("trained", "asked", "sentence"),
    [
        (
            1024,
            1025,
            "gpt2.gguf was trained for 1024 tokens and cannot read a context of 1280; choose --ctx 1024 or less, ",
        ),
        (
            1000,
            800,
            "gpt2.gguf was trained for 1000 tokens and cannot read a context of 1024; choose --ctx 768 or less, ",
        ),
        (200, None, "gpt2.gguf was trained for 200 tokens and cannot read a context of 256; choose "),
    ],
)
def test_a_context_behind_the_table_is_refused(tmp_path: Path, trained: int, asked: int | None, sentence: str) -> None:
    header = table_of(tmp_path / "gpt2.gguf", trained)
    with pytest.raises(ModelError) as error:
        context_length(header, None, asked)
    assert str(error.value).removeprefix(sentence) in ("or another model.", "another model.")


def test_so_it_is_for_a_draft_model_before_anything_is_loaded(tiny_llama: Path, tmp_path: Path) -> None:
    loaded: list[str] = []
    settings = EngineSettings(tiny_llama, gpt2(tmp_path / "gpt2.gguf", 1024))
    with pytest.raises(ModelError) as error:
        Engine(settings, lambda what, share: loaded.append(what))
    assert str(error.value) == (
        "gpt2.gguf was trained for 1024 tokens and cannot read a context of 2048; choose --ctx 1024 or less, "
        "or another draft model."
    )
    assert loaded == []
    assert context_length(inspect(tiny_llama), table_of(tmp_path / "gpt2.gguf", 1024), 1024) == 1024


def test_the_whole_of_a_table_can_be_used(tmp_path: Path) -> None:
    """Odd sizes are rounded down, and the answer ends with the last position."""
    path = gpt2(tmp_path / "gpt2.gguf", 300)
    with Engine(EngineSettings(path, threads=1)) as engine:
        assert engine.context_length == 256
        _, totals, _ = write(engine, Options(GREEDY, "none"), [1] * 250)
        assert (totals.finish, len(engine.stream)) == (Finish.CONTEXT, 257)
