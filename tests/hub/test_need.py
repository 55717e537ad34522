"""The memory that is computed against the memory that llama.cpp takes."""

from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path

import pytest
from allocated import Opened, allocated, simulated
from blueprint import MODELS

import tiny
from localspec.engine.gguf import inspect
from localspec.engine.llama import Model, quantize
from localspec.hub.need import AS_DRAFT, Need, Opening, need
from localspec.hub.shape import shape_of

WAYS = (
    Opened(256),
    Opened(2048),
    Opened(8192),
    Opened(2048, kv_type="q8_0"),
    Opened(8192, kv_type="q8_0"),
    Opened(2048, batch=AS_DRAFT.batch, rows=AS_DRAFT.rows),
    Opened(2048, batch=64, rows=5),
    Opened(300, batch=512, rows=33),
)
KINDS: dict[str, Callable[[Path], Path]] = {
    "llama": tiny.llama,
    "llama of one layer": lambda path: tiny.llama(path, layers=1),
    "wide llama": lambda path: tiny.llama(path, width=256, heads=4, layers=4),
    "gemma3": tiny.gemma3,
    "gemma3 with both kinds of layers": lambda path: tiny.gemma3(path, layers=7),
    "lfm2": tiny.lfm2,
    "long lfm2": lambda path: tiny.lfm2(path, repeats=4),
    "mamba": tiny.mamba,
}
PRINTED = 0.011 * (1 << 20)
"""Bytes: llama.cpp's log has two decimals of a MiB, and a cache may be two buffers."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """For the models of this file."""
    return tmp_path_factory.mktemp("need")


def compare(name: str, path: Path, ways: tuple[Opened, ...] = WAYS) -> None:
    """Print and check one line for every way to open the model."""
    with Model(path) as model:
        shape = shape_of(model.header)
        for way in ways:
            real = allocated(model, way)
            computed = need(shape, path.stat().st_size, way.length, way.kv_type, opening=Opening(way.batch, way.rows))
            print(line(name, way, computed, real))
            assert computed.total == pytest.approx(real.total, rel=0.1), line(name, way, computed, real)
            for part in ("cache", "compute", "outputs"):
                expected = pytest.approx(getattr(real, part), rel=0.01, abs=PRINTED)
                assert getattr(computed, part) == expected, f"{part}: {line(name, way, computed, real)}"


def line(name: str, way: Opened, computed: Need, real: Need) -> str:
    """The figures in MB, computed / real."""
    parts = (
        f"{part.name} {getattr(computed, part.name) / 1e6:.2f} / {getattr(real, part.name) / 1e6:.2f}"
        for part in fields(Need)
    )
    return f"{name:<34}{way!s:<20}{', '.join(parts)}: {computed.total / real.total - 1:+.1%}"


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_model_takes_what_was_computed(kind: str, folder: Path) -> None:
    """Weights, caches, states, buffers and rows, within 10 % together and 1 % each, however the context is opened."""
    compare(kind, KINDS[kind](folder / f"{kind}.gguf"))


@pytest.mark.parametrize("quantization", ["F16", "Q8_0", "Q6_K", "Q4_K_M", "Q4_0", "Q2_K"])
def test_quantized_weights_take_the_size_of_the_file(quantization: str, folder: Path) -> None:
    """Also where they are copied into another order for speed."""
    whole = folder / "to quantize.gguf"
    if not whole.exists():
        tiny.llama(whole, width=256, heads=4, layers=4)
    compare(f"wide llama {quantization}", quantize(whole, folder / f"{quantization}.gguf", quantization))


@pytest.mark.real
def test_the_starter_model_takes_what_was_computed(smollm2: Path) -> None:
    """A real model with a real vocabulary."""
    compare("SmolLM2 135M Q4_1", smollm2, WAYS[1:6])


@pytest.mark.real
def test_the_starter_model_quantized_again_takes_what_was_computed(smollm2: Path, folder: Path) -> None:
    """The quantization that most people download."""
    compare("SmolLM2 135M Q4_K_M", quantize(smollm2, folder / "smollm2.gguf", "Q4_K_M"), WAYS[1:2])


@pytest.fixture(params=MODELS)
def drawn(request: pytest.FixtureRequest, folder: Path) -> Iterator[tuple[str, Path]]:
    """A model in its real size, without its weights."""
    path = MODELS[request.param].write(folder / f"{request.param}.gguf")
    yield request.param, path
    path.unlink()


def test_models_in_their_real_size_take_what_was_computed(drawn: tuple[str, Path]) -> None:
    """Without loading them: llama.cpp says what it would allocate."""
    name, path = drawn
    shape = shape_of(inspect(path))
    for way in (Opened(8192, kv_type="q8_0"), Opened(2048, AS_DRAFT.batch, AS_DRAFT.rows)):
        snapshots = 8 if shape.state_snapshots and way.rows > 1 else 0
        cache, compute = simulated(path, way, snapshots)
        computed = need(shape, 0, way.length, way.kv_type, opening=Opening(way.batch, way.rows))
        print(line(name, way, computed, Need(0, cache, compute, computed.outputs)))
        assert computed.cache == pytest.approx(cache, rel=0.01, abs=PRINTED)
        assert computed.compute == pytest.approx(compute, rel=0.01, abs=PRINTED)
