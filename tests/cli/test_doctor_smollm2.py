"""`localspec doctor --audit` on a real model: 4-bit weights, whose kernels read alike at every width, and 16-bit ones, whose
do not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from command import call
from localspec.engine.llama import quantize

pytestmark = pytest.mark.real

WORDS = ("Repeat these lines twice:\nthe red cat\nthe blue dog", "Why is the sky blue?")
TOKENS = 32


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    """Two short ones: prompt and answer stay under 256 tokens."""
    file = tmp_path / "question.jsonl"
    lines = [{"question_id": number, "category": "short", "turns": [text]} for number, text in enumerate(WORDS)]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


def audited(model: Path, prompts: Path, *options: object) -> dict[str, Any]:
    """The document of an audit in a context of 256 tokens."""
    outcome = call(
        "doctor", "-m", model, "--ctx", 256, "--max-tokens", TOKENS, "--prompts", prompts, "--audit", "--json", *options
    )
    assert outcome.code == 0
    return json.loads(outcome.out)


def test_four_bit_weights_have_no_flips(smollm2: Path, prompts: Path) -> None:
    """Not one on a CPU, under 256 tokens, and no log-probability moves at all; some tokens did come from wide passes."""
    found = audited(smollm2, prompts)["audit"]
    assert found["complete"]
    assert found["wide_tokens"] >= 5
    assert (found["flips"], found["max_gap"], found["faulty"]) == (0, 0.0, False)
    assert (found["max_logprob_difference"], found["noise_floor"]) == (0.0, 0.0)


def test_sixteen_bit_weights_are_reported_as_they_are(smollm2: Path, prompts: Path, tmp_path: Path) -> None:
    """Wide passes round differently there: that is shown, whether or not it tipped a token, and is not called a fault."""
    large = quantize(smollm2, tmp_path / "f16.gguf", "F16")
    values = audited(large, prompts, "--drafter", "lookup")
    found = values["audit"]
    assert found["wide_tokens"] >= 5
    assert found["max_logprob_difference"] > 0.0
    assert found["noise_floor"] > 0.0
    assert found["flips"] == len(found["flipped"]) == sum(entry["flips"] for entry in found["histogram"])
    assert found["max_gap"] < 0.5
    assert not found["faulty"]
    said = "none of" if not found["flips"] else f"{found['flips']} of"
    assert f"{said} {found['tokens']} tokens" in values["last_audit"]
