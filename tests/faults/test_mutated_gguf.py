"""Model files that are wrong somewhere: refused in one sentence or answered with, in time, in little memory, and the app
lives."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from gguf_parts import STRING, taken_apart
from mutated_gguf import CHANGES, mutated
from trying import SECONDS, Outcome, Trial, is_one_sentence

import tiny
from gguf_bytes import text_value
from localspec.engine.errors import ModelError
from localspec.engine.gguf import inspect, kv_bytes_per_token, read_header

Scale = Callable[[int, int], int]

READING = 4 << 20
"""Bytes that reading a header may take over and above the size of the file: a chunk of it is held, and each string of it."""
LOADING = 64 << 20
"""Bytes that a model may take over and above the size of its file: caches of 2048 tokens, buffers for a pass over 512, and a
copy of the weights that is laid out for the processor. A sound tiny model takes 14 MB, with the pages of code it is the first
to need."""


@pytest.fixture(scope="module")
def sound(models: Path) -> list[Path]:
    """One model of each kind of memory."""
    return [
        tiny.llama(models / "mutated-llama.gguf", chat_template=tiny.CHAT_TEMPLATE),
        tiny.gemma3(models / "mutated-gemma3.gguf"),
        tiny.lfm2(models / "mutated-lfm2.gguf"),
        tiny.mamba(models / "mutated-mamba.gguf"),
    ]


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trial]:
    trial = Trial(tmp_path_factory.mktemp("trial"))
    yield trial
    trial.close()


def everything_read(path: Path) -> None:
    """All that the app reads of a file before it loads it."""
    for header in (read_header(path, keep={"tokenizer.ggml.tokens"}), inspect(path)):
        assert header.data_end <= header.size
        assert kv_bytes_per_token(header, 2, 2) >= 0
        assert header.chat_templates is not None
        assert [header.name, header.chat_template, header.vocabulary_size, header.context_length]


def refusal(path: Path, *, measured: bool) -> tuple[ModelError | None, int]:
    """Why a file is refused, and the most memory that took (bytes), 0 where it is not measured."""
    error = None
    if measured:
        tracemalloc.start()
    try:
        everything_read(path)
    except ModelError as caught:
        error = caught
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return error, peak


def test_what_is_put_together_again_is_the_same_file(sound: list[Path]) -> None:
    for path in sound:
        parts = taken_apart(path)
        assert parts.written() == path.read_bytes()
        parts.lay_out()
        assert parts.written() == path.read_bytes()


def test_every_mutant_is_read_or_refused_in_little_memory(sound: list[Path], tmp_path: Path, scale: Scale) -> None:
    path, refused = tmp_path / "mutant.gguf", 0
    for seed in range(scale(336, 2100)):
        what = mutated(sound[seed % len(sound)], path, seed)
        # Measuring memory takes ten times as long as reading. Every kind of change is among these.
        error, peak = refusal(path, measured=seed % 10 == 0)
        refused += error is not None
        assert error is None or is_one_sentence(error), f"{seed}: {what}: {error}"
        # A text of the file is an object of its own, several times as large where it is short.
        assert peak < 12 * path.stat().st_size + READING, f"{seed}: {what}: {peak} bytes"
    assert refused > 0


def verdict(outcome: Outcome) -> str:
    if outcome.error is None:
        return "answered"
    if outcome.died:
        return "died in its process"
    return "refused by llama.cpp" if "llama.cpp could not load" in str(outcome.error) else "refused by us"


def checked(outcome: Outcome, path: Path, what: str) -> str:
    """Says what came of it, once nothing is wrong with how it came."""
    assert outcome.seconds < SECONDS, f"{what}: {outcome.seconds:.1f} s"
    assert outcome.memory < path.stat().st_size + LOADING, f"{what}: {outcome.memory >> 20} MB"
    assert outcome.error is None or is_one_sentence(outcome.error), f"{what}: {outcome.error!r}"
    return verdict(outcome)


def test_every_mutant_is_answered_with_or_refused(
    sound: list[Path], trial: Trial, tmp_path: Path, scale: Scale, record_property: Callable[[str, object], None]
) -> None:
    path, verdicts, outcomes = tmp_path / "mutant.gguf", Counter[str](), list[Outcome]()
    for seed in range(scale(3 * (len(CHANGES) + 2), 840)):
        what = mutated(sound[seed % len(sound)], path, seed)
        outcome = trial.of(path)
        verdicts[checked(outcome, path, f"{seed}: {what}")] += 1
        outcomes.append(outcome)
    figures = {
        **verdicts,
        "longest (s)": round(max(outcome.seconds for outcome in outcomes), 2),
        "most memory (MB)": round(max(outcome.memory for outcome in outcomes) / 2**20, 1),
    }
    for name, figure in figures.items():
        record_property(name, figure)
    print(figures)
    assert verdicts["answered"] > 0
    assert verdicts["refused by us"] > 0
    assert verdicts["refused by llama.cpp"] > 0


def test_sound_models_answer(sound: list[Path], trial: Trial) -> None:
    for path in sound:
        assert checked(trial.of(path), path, path.name) == "answered"


def test_a_model_that_ends_its_process_is_one_sentence_and_the_next_one_answers(
    sound: list[Path], trial: Trial, tmp_path: Path
) -> None:
    """A vocabulary without the bytes it is to be written in: llama.cpp notices in the middle of a text."""
    parts, path = taken_apart(sound[0]), tmp_path / "dies.gguf"
    parts.put("tokenizer.ggml.model", STRING, text_value("llama"))
    path.write_bytes(parts.written())
    outcome = trial.of(path)
    assert checked(outcome, path, "no bytes") == "died in its process"
    assert "(signal 6, see the log file)" in str(outcome.error)
    assert trial.of(sound[0]).text is not None


def test_a_vocabulary_without_a_token_for_a_text_is_named_as_such(
    sound: list[Path], trial: Trial, tmp_path: Path
) -> None:
    """What llama.cpp gives for such a text is no token."""
    parts, path = taken_apart(sound[0]), tmp_path / "wordless.gguf"
    parts.put("tokenizer.ggml.model", STRING, text_value("rwkv"))
    path.write_bytes(parts.written())
    outcome = trial.of(path)
    assert checked(outcome, path, "rwkv") == "refused by us"
    assert "has no token for a part of this text" in str(outcome.error)


@pytest.mark.parametrize(
    ("name", "kind", "says"),
    [
        *[("blk.0.attn_q.weight", kind, "weights of a type that is not for weights") for kind in range(24, 29)],
        *[("output_norm.weight", kind, "a normalization or a bias that is quantized") for kind in (2, 8, 39)],
    ],
)
def test_tensors_in_a_type_that_nobody_computes_with_reach_no_native_code(
    name: str, kind: int, says: str, sound: list[Path], trial: Trial, tmp_path: Path
) -> None:
    parts, path = taken_apart(sound[0]), tmp_path / "typed.gguf"
    next(row for row in parts.rows if row.name == name.encode()).kind = kind
    parts.lay_out()
    path.write_bytes(parts.written())
    outcome = trial.of(path)
    assert checked(outcome, path, f"{name} of type {kind}") == "refused by us"
    assert str(outcome.error) == f"typed.gguf is damaged: it holds {says}; download it again."
