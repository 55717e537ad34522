"""`localspec measure acceptance` on a real model and its own coarse copy."""

from __future__ import annotations

import json
from pathlib import Path

import platformdirs
import pytest

from command import call
from localspec.engine.llama import quantize, version

pytestmark = pytest.mark.real

WORDS = ("Repeat these lines twice:\nthe red cat\nthe blue dog", "Why is the sky blue?")
TOKENS = 24


@pytest.fixture
def coarse(smollm2: Path) -> Path:
    """Made once, and kept beside the model that it is made of."""
    path = platformdirs.user_cache_path("localspec-tests") / f"{smollm2.stem}-to-Q2_K-{version()}.gguf"
    return path if path.exists() else quantize(smollm2, path, "Q2_K")


def test_the_whole_table(smollm2: Path, coarse: Path, tmp_path: Path) -> None:
    """A copy of itself drafts well; text that repeats its prompt is copied well, and other text is not."""
    file = tmp_path / "question.jsonl"
    lines = [{"question_id": task, "category": task, "turns": [words]} for task, words in zip("ab", WORDS, strict=True)]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    values = call(
        "measure", "acceptance", "-m", smollm2, "-d", coarse, "--ctx", 256, "--max-tokens", TOKENS, "--prompts", file,
        "--json",
    ).document  # fmt: skip
    copy, free = values["tasks"].values()
    for task in (copy, free):
        for column in ("greedy_acceptance", "sampled_acceptance", "sampled_text_acceptance"):
            assert 0.4 < task[column]["mean"] <= 1.0
        assert 1.0 < task["tokens_per_step"]["4"]["replayed"] <= 5.0
        assert task["auto"]["tokens_per_step"] >= 1.0
        assert all(speedup > 0.0 for speedup in task["modelled_speedup"].values())
    assert copy["lookup_acceptance"]["mean"] > free["lookup_acceptance"]["mean"]
    assert copy["lookup"]["tokens_per_step"] > free["lookup"]["tokens_per_step"]
