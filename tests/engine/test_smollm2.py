"""The whole engine on a real model: SmolLM2-135M-Instruct, 4-bit, and the same weights in 2 bits as its draft model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import platformdirs
import pytest
from numpy.typing import NDArray
from recorded import Passes

from localspec.engine.engine import Engine, EngineSettings, Options
from localspec.engine.llama import Context, ContextSettings, Model, quantize, version
from localspec.engine.sampling import Sampling
from localspec.engine.step import Finish
from tiny_checks import GREEDY, WARM, write

pytestmark = pytest.mark.real

PROMPTS = {
    "story": "Write a short story about a robot who learns to paint.",
    "knowledge": "Why is the sky blue? Explain it to a child, in detail.",
    "code": "Write a Python function that returns the n-th Fibonacci number.",
    "copy": "Repeat these lines three times:\nthe red cat\nthe blue dog",
    "list": "List ten healthy breakfast ideas.",
    "French": "Écris une lettre à ma grand-mère, s'il te plaît. 🙂",
}
TOKENS = 200
FEW = 256
"""Tokens that a one-row pass and wider ones read in the same way with a 16-bit cache, on any number of threads. Behind
them ggml gives a one-row pass to several threads by pieces of the cache, and adds the pieces up in another order."""


@pytest.fixture(scope="module")
def coarse(smollm2: Path) -> Path:
    """Made once, and kept beside the model that it is made of."""
    path = platformdirs.user_cache_path("localspec-tests") / f"{smollm2.stem}-to-Q2_K-{version()}.gguf"
    return path if path.exists() else quantize(smollm2, path, "Q2_K")


@pytest.fixture(scope="module")
def engine(smollm2: Path, coarse: Path) -> Iterator[Engine]:
    """As anybody would open it: 16-bit cache, all performance cores."""
    with Engine(EngineSettings(smollm2, coarse, context_length=1024)) as engine:
        yield engine


@pytest.fixture(scope="module")
def exact(smollm2: Path, coarse: Path) -> Iterator[Engine]:
    """With an 8-bit cache, which is read in the same way at every width and length."""
    with Engine(EngineSettings(smollm2, coarse, context_length=4352, kv_type="q8_0")) as engine:
        yield engine


def chat(engine: Engine, words: str) -> list[int]:
    """One turn in the model's own template."""
    text = f"<|im_start|>user\n{words}<|im_end|>\n<|im_start|>assistant\n"
    return engine.target.vocabulary.tokenize(text, special=True)


def answers(engine: Engine, prompt: list[int], sampling: Sampling, tokens: int = TOKENS) -> dict[str, list[int]]:
    """The answer with each drafter; each of them has drafted, and the draft model was right in part."""
    texts = {}
    for drafter in ("none", "lookup", "draft"):
        options = Options(sampling, drafter, draft_max=5, seed=7, max_tokens=tokens)
        texts[drafter], totals, _ = write(engine, options, prompt)
        assert totals.finish in (Finish.STOP, Finish.LENGTH)
        assert drafter == "none" or totals.drafted > 0
        assert drafter != "draft" or 0 < totals.accepted < totals.drafted
    return texts


@pytest.mark.parametrize("what", PROMPTS)
@pytest.mark.parametrize("sampling", [GREEDY, WARM], ids=["greedy", "temperature 0.8"])
def test_texts_are_the_same_whoever_drafts(engine: Engine, what: str, sampling: Sampling) -> None:
    prompt = chat(engine, PROMPTS[what])
    assert len(prompt) + TOKENS <= FEW
    texts = answers(engine, prompt, sampling)
    assert len(texts["none"]) >= 40
    for drafter in ("lookup", "draft"):
        assert texts[drafter] == texts["none"], fork(engine, prompt, texts["none"], texts[drafter])


def test_a_longer_text_with_an_exact_cache(exact: Engine) -> None:
    """Further than the 16-bit cache goes: still the same."""
    prompt = chat(exact, PROMPTS["list"])
    for sampling in (GREEDY, WARM):
        texts = answers(exact, prompt, sampling, tokens=320)
        for drafter in ("lookup", "draft"):
            assert texts[drafter] == texts["none"], fork(exact, prompt, texts["none"], texts[drafter])


def test_a_longer_text_parts_only_where_rounding_decides(engine: Engine) -> None:
    """With the 16-bit cache texts may part behind 256 tokens, between two tokens that are less than a logit apart."""
    prompt = chat(engine, PROMPTS["list"])
    texts = answers(engine, prompt, GREEDY, tokens=400)
    for drafter in ("lookup", "draft"):
        place = first_difference(texts["none"], texts[drafter])
        if place is None:
            continue
        report = fork(engine, prompt, texts["none"], texts[drafter])
        print(f"{drafter}: {report}")
        assert len(prompt) + place >= FEW, report
        one, other = texts["none"][place], texts[drafter][place]
        for row in rows_at(engine, [*prompt, *texts["none"][:place]]):
            assert abs(row[one] - row[other]) < 1.0, report


def test_a_prompt_of_four_thousand_tokens(exact: Engine, passes: Passes) -> None:
    """Eight batches without a row of logits; then an answer, again without reading it again, and drafted by lookup."""
    page = "\n".join(
        f"Item {n}: the {n * 7 % 97}th thing costs {n * n % 1000} coins and weighs {n % 13} stones." for n in range(200)
    )
    words = exact.target.vocabulary.tokenize(page, special=False)
    prompt = [*chat(exact, "Copy this list:"), *words, *chat(exact, "Now, please.")][:4000]
    assert len(prompt) == 4000
    passes.clear()
    texts = {}
    for drafter in ("none", "lookup"):
        texts[drafter], totals, _ = write(exact, Options(GREEDY, drafter, max_tokens=30), prompt)
    of_prompt = [entry for entry in passes if not entry.rows]
    assert [len(entry.tokens) for entry in of_prompt] == [512] * 7 + [3999 - 7 * 512 - of_prompt[0].start]
    assert of_prompt[0].start < 10, "only the template's beginning can have been read before"
    assert max(len(entry.rows) for entry in passes) <= 33
    assert exact.reused_tokens == 3999
    assert texts["lookup"] == texts["none"], fork(exact, prompt, texts["none"], texts["lookup"])
    assert totals.drafted > 0


# --- what to say when texts differ ------------------------------------------------------------------------------------


def first_difference(one: list[int], other: list[int]) -> int | None:
    """Where two texts part, None where one is the beginning of the other."""
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), None)


def rows_at(engine: Engine, text: list[int]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """The logits behind a text, its last tokens read one by one and in one pass of six."""
    model: Model = engine.target
    settings = engine.target_context.settings
    with Context(model, ContextSettings(length=4352, threads=settings.threads, kv_type=settings.kv_type)) as context:
        context.decode(text[:-6])
        for token in text[-6:]:
            context.decode([token], rows=1)
        narrow = context.row(0).copy()
        context.truncate(len(text) - 6)
        context.decode(text[-6:], rows=1)
        return narrow, context.row(0).copy()


def fork(engine: Engine, prompt: list[int], one: list[int], other: list[int]) -> str:
    """Where two texts part, and by how much the tokens there differ in passes of one row and of several."""
    place = first_difference(one, other)
    if place is None:
        return f"one text has {len(one)} tokens, the other {len(other)}"
    narrow, wide = rows_at(engine, [*prompt, *one[:place]])
    gaps = ", ".join(
        f"{name} {row[one[place]] - row[other[place]]:+.4f}" for name, row in (("1 row", narrow), ("6", wide))
    )
    texts = [repr(engine.target.vocabulary.text([tokens[place]])) for tokens in (one, other)]
    rows = abs(narrow - wide).max()
    return f"token {len(prompt) + place}: {texts[0]} or {texts[1]}, logits apart by {gaps}; rows by {rows:.4f}"
