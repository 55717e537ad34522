"""What a finding about a model holds for: these files, opened like this, by this build on these devices."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from localspec.engine import opened
from localspec.engine.engine import Engine, EngineSettings
from localspec.engine.llama import Device


def opened_as(model: Path, **settings: object) -> str:
    """What an engine says of itself."""
    with Engine(EngineSettings(model, **{"context_length": 256, "threads": 1, "gpu_layers": 0, **settings})) as engine:
        return engine.opened


def test_the_same_is_the_same_and_everything_else_is_not(tiny_llama: Path, tmp_path: Path) -> None:
    """Another number of threads, another cache, other layers on the GPU, another file of the same name."""
    model = tmp_path / tiny_llama.name
    shutil.copy2(tiny_llama, model)
    as_it_was = opened_as(model)
    assert as_it_was == opened_as(model)
    # A longer context runs the same kernels.
    assert as_it_was == opened_as(model, context_length=512)
    others = [opened_as(model, threads=2), opened_as(model, kv_type="q8_0"), opened_as(model, gpu_layers=-1)]
    os.utime(model, ns=(1, 1))
    others.append(opened_as(model))
    assert len({as_it_was, *others}) == 5


def test_another_build_or_another_device_is_not_the_same(tiny_llama: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A library of the same version can be compiled anew, and a graphics card can be put in or hidden."""
    as_it_was = opened_as(tiny_llama)
    for name, value in (
        ("processor_features", lambda: ["SSE3"]),
        ("backends", lambda: ["CUDA", "CPU"]),
        ("library_versions", lambda: {"commit": "another"}),
        ("devices", lambda: [Device("CUDA0", "A card", False, 1, 2, is_gpu=True)]),
        ("version", lambda: "0.0.0"),
    ):
        with monkeypatch.context() as changed:
            changed.setattr(opened, name, value)
            assert opened_as(tiny_llama) != as_it_was
    assert opened_as(tiny_llama) == as_it_was


def test_what_is_loaded_stays_what_it_was(tiny_llama: Path, tmp_path: Path) -> None:
    """A file that is replaced while its model is in use is the next engine's."""
    model = tmp_path / tiny_llama.name
    shutil.copy2(tiny_llama, model)
    with Engine(EngineSettings(model, context_length=256, threads=1)) as engine:
        before = engine.opened
        os.utime(model, ns=(2, 2))
        assert engine.opened == before
    with Engine(EngineSettings(model, context_length=256, threads=1)) as engine:
        assert engine.opened != before
