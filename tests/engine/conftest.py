"""What the tests of the engine share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from recorded import MEMORY_CASES, MemoryCase, Pass, Passes

from localspec.engine.llama import Context, ContextSettings, Model, quantize
from localspec.engine.llama.library import lib


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> Passes:
    """Every pass from here on; the real call is made."""
    seen = Passes()
    decode = lib.llama_decode

    def counted(context: object, batch: object) -> int:
        n = batch.n_tokens  # type: ignore[attr-defined]
        rows = tuple(index for index in range(n) if batch.logits[index])  # type: ignore[attr-defined]
        seen.append(Pass(context, batch.pos[0], tuple(batch.token[:n]), rows))  # type: ignore[attr-defined]
        return int(decode(context, batch))

    monkeypatch.setattr(lib, "llama_decode", counted)
    return seen


@pytest.fixture(params=MEMORY_CASES)
def memory_case(request: pytest.FixtureRequest) -> MemoryCase:
    """Each kind of memory in turn."""
    return MEMORY_CASES[request.param]


@pytest.fixture
def model_of_kind(memory_case: MemoryCase, request: pytest.FixtureRequest) -> Iterator[Model]:
    """The tiny model that has it."""
    path: Path = request.getfixturevalue(memory_case.model)
    with Model(path) as model:
        yield model


@pytest.fixture
def open_kind(memory_case: MemoryCase, model_of_kind: Model) -> Callable[..., Context]:
    """Opens a context with that kind of memory; the model closes it."""

    def opened(**changes: object) -> Context:
        settings = {"length": 512, "batch": 64, "rows": 9, "threads": 2} | memory_case.settings | changes
        return Context(model_of_kind, ContextSettings(**settings))  # type: ignore[arg-type]

    return opened


@pytest.fixture(scope="session")
def exactly(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Path]:
    """The same model with 8-bit weights, for texts that are compared: with wider ones a pass of one row rounds in another
    way than one of several."""
    folder = tmp_path_factory.mktemp("exact")

    def quantized(path: Path) -> Path:
        target = folder / f"{path.parent.name}-{path.name}"
        return target if target.exists() else quantize(path, target, "Q8_0", threads=1)

    return quantized


@pytest.fixture(scope="session")
def target(exactly: Callable[[Path], Path], tiny_llama: Path) -> Path:
    """Plain attention."""
    return exactly(tiny_llama)


@pytest.fixture(scope="session")
def draft(exactly: Callable[[Path], Path], tiny_draft: Path) -> Path:
    """A draft model for `target` that agrees with it on most tokens."""
    return exactly(tiny_draft)


@pytest.fixture
def own(memory_case: MemoryCase, exactly: Callable[[Path], Path], request: pytest.FixtureRequest) -> Path:
    """The model of this kind of memory."""
    return exactly(request.getfixturevalue(memory_case.model))


@pytest.fixture
def coarse(memory_case: MemoryCase, request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The same with 4-bit weights: right about most tokens, so that drafts are accepted in part."""
    return quantize(request.getfixturevalue(memory_case.model), tmp_path / "coarse.gguf", "Q4_0", threads=1)
