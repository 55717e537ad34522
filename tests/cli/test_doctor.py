"""`localspec doctor` as a person uses it: with models and without, its two forms, its audits, and what it refuses."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tiny
from command import Outcome, call, read_json
from documented import undefined
from localspec import __version__
from localspec.doctor_report import BestLength, Loaded, age, auto_text
from localspec.doctor_warnings import (
    Host,
    build_warnings,
    cache_warnings,
    memory_warnings,
    pair_warnings,
    payoff_warnings,
    thread_warnings,
)
from localspec.engine.engine import EngineSettings

NOW = 1.9e9
"""In the year 2030."""
ASKED = (
    "backends", "devices", "model", "draft", "compatible", "incompatible_reason", "cost_curve", "draft_ms", "audit",
)  # fmt: skip


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    """Two short ones."""
    file = tmp_path / "question.jsonl"
    words = ("the cat sat on the mat and the cat sat on the", "Dear Sir or Madam, dear Sir or")
    lines = [{"question_id": number, "category": "letters", "turns": [text]} for number, text in enumerate(words)]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


@pytest.fixture
def examine(tiny_llama: Path, tiny_draft: Path, prompts: Path) -> Callable[..., Outcome]:
    """Calls the command for an audit of a tiny pair with short answers."""

    def called(*options: object) -> Outcome:
        short = ("--prompts", prompts, "--max-tokens", 16, "--ctx", 512)
        return call("doctor", "-m", tiny_llama, "-d", tiny_draft, *short, "--audit", *options)

    return called


def test_without_any_model(own_folders: Path) -> None:
    """Everything but the models, and no download."""
    values = call("doctor", "--json").document
    assert set(ASKED) <= set(values)
    assert "CPU" in values["backends"]
    (processor,) = [device for device in values["devices"] if device["name"] == "CPU"]
    assert 0 < processor["free_bytes"] <= processor["total_bytes"]
    assert (values["model"], values["cost_curve"], values["compatible"], values["audit"]) == (None, [], None, None)
    assert values["versions"]["localspec"] == __version__
    assert values["versions"]["llama-cpp-python"].startswith("0.3.")
    assert values["threads"] == 1
    assert values["paths"]["config"] == str(own_folders / "config" / "config.toml")
    said = call("doctor")
    assert (said.code, said.err) == (0, "")
    assert "No model is installed" in said.out
    assert str(own_folders / "data" / "models") in said.out
    assert not list((own_folders / "data").rglob("*.gguf"))


def test_a_pair(tiny_llama: Path, tiny_draft: Path) -> None:
    """The curve, the draft's time, and what follows from them; in text the curve is drawn."""
    values = call("doctor", "-m", tiny_llama, "-d", tiny_draft, "--json").document
    assert (values["model"], values["draft"]) == (str(tiny_llama), str(tiny_draft))
    assert (values["compatible"], values["incompatible_reason"], values["problem"]) == (True, None, None)
    assert values["cost_curve"][0]["width"] == 1
    assert all(entry["ms"] > 0 for entry in values["cost_curve"])
    assert values["draft_ms"] > 0
    assert [entry["tokens"] for entry in values["auto"]["least_acceptance_of_copies"]] == [1, 2, 4, 8, 16, 32]
    assert [best["acceptance"] for best in values["auto"]["best_draft"]] == [0.5, 0.6, 0.7, 0.8, 0.9, 0.95]
    # Both are of one size.
    assert "draft_too_large" in [warned["kind"] for warned in values["warnings"]]
    assert (values["audit"], values["last_audit"], values["bit_exact"]) == (None, None, None)

    said = call("doctor", "-m", tiny_llama, "-d", tiny_draft)
    assert (said.code, said.err) == (0, "")
    assert "████" in said.out
    assert "What auto does here" in said.out
    assert "they have the same vocabulary" in said.out
    drawn = [line for line in said.out.splitlines() if str(tiny_llama.parent) not in line]
    assert max(map(len, drawn)) <= 80


def test_passes_are_timed_once_and_anew_when_asked(tiny_llama: Path, own_folders: Path) -> None:
    """The curve's age is told; what was kept stays until --measure."""
    assert "Measured just now." in call("doctor", "-m", tiny_llama).out
    file = own_folders / "cache" / "costs.json"
    ((key, kept),) = json.loads(file.read_text()).items()
    long_ago = time.time() - 12.5 * 86_400
    file.write_text(json.dumps({key: {**kept, "1": 5000.0, "measured": long_ago}}))
    said = " ".join(call("doctor", "-m", tiny_llama).out.split())
    assert "Measured 12 days ago, on 20" in said
    assert "localspec doctor --measure measures it anew." in said
    values = call("doctor", "-m", tiny_llama, "--json").document
    assert (values["cost_curve"][0]["ms"], values["cost_measured"][:2]) == (5000.0, "20")
    anew = call("doctor", "-m", tiny_llama, "--measure", "--json").document
    assert anew["cost_curve"][0]["ms"] < 5000.0
    assert anew["cost_measured"] > values["cost_measured"]
    kept_now = call("doctor", "-m", tiny_llama, "--json").document
    assert kept_now["cost_measured"] == anew["cost_measured"]
    assert [entry["ms"] for entry in kept_now["cost_curve"]] == pytest.approx(
        [entry["ms"] for entry in anew["cost_curve"]], rel=0.01
    )
    assert "There is no model to measure" in call("doctor", "--measure").sentence


@pytest.mark.parametrize(
    ("measured", "words"),
    [
        (None, "is not known; localspec doctor --measure"),
        (NOW - 100, "Measured just now."),
        (NOW + 0.4, "Measured just now."),
        (NOW - 4000, "Measured less than a day ago, on"),
        (NOW - 90_000, "Measured a day ago, on"),
        (NOW - 200_000, "Measured 2 days ago, on"),
        (NOW + 90_000, "Measured on "),
        (1e300, "is not known"),
    ],
)
def test_the_age_of_a_measurement_in_words(measured: float | None, words: str) -> None:
    """Whatever the clock said then."""
    assert words in age(measured, NOW)


def test_a_draft_model_of_another_family(tiny_llama: Path, tmp_path: Path) -> None:
    """The first difference is told, the target is looked at all the same, and that is no failure of the command."""
    recipe = tiny.llama_recipe()
    recipe.tokens[65] = "Ω"
    stranger = recipe.write(tmp_path / "stranger.gguf")
    values = call("doctor", "-m", tiny_llama, "-d", stranger, "--json").document
    assert values["compatible"] is False
    assert "token 65 is 'A'" in values["incompatible_reason"]
    assert values["cost_curve"]
    assert values["draft_ms"] is None


def test_a_file_that_is_no_model(tmp_path: Path) -> None:
    """What is wrong with it, beside all the rest; exit code 1."""
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF but no more")
    outcome = call("doctor", "-m", broken, "--json")
    assert outcome.code == 1
    values = read_json(outcome.out)
    assert "broken.gguf" in values["problem"]
    assert values["backends"]
    assert values["cost_curve"] == []


def test_an_audit(examine: Callable[..., Outcome], tiny_llama: Path) -> None:
    """Flips, gaps, the histogram; and the next look remembers the verdict, as long as the model is opened alike."""
    audited = examine("--kv-type", "q8_0", "--json").document["audit"]
    assert (audited["tokens"], audited["complete"], audited["drafters"]) == (64, True, ["lookup", "draft"])
    assert (audited["flips"], audited["max_gap"], audited["flipped"]) == (0, 0.0, [])
    assert 0 < audited["wide_tokens"] < 64
    assert [entry["from"] for entry in audited["histogram"]] == [0.0, 0.01, 0.03, 0.1, 0.3, 1.0]
    assert sum(entry["tokens"] for entry in audited["histogram"]) == 64
    for by in ("width", "drafter", "context"):
        assert sum(entry["tokens"] for entry in audited[f"by_{by}"]) == 64
    same = call("doctor", "-m", tiny_llama, "--kv-type", "q8_0", "--json").document
    assert "none of 64 tokens" in same["last_audit"]
    assert call("doctor", "-m", tiny_llama, "--json").document["last_audit"] is None


def test_every_number_is_defined(examine: Callable[..., Outcome]) -> None:
    """In docs/measure.md."""
    assert undefined(examine("--bit-exact", "--json").document, "`localspec doctor`") == set()


def test_an_audit_in_words(examine: Callable[..., Outcome]) -> None:
    """One drafter only, where it is named."""
    said = examine("--drafter", "lookup")
    assert (said.code, said.err) == (0, "")
    assert "Audit of lookup: none of 32 tokens" in " ".join(said.out.split())
    assert "gap of the top two, logits" in said.out


def test_bit_exact_claims_only_what_was_seen(tiny_llama: Path) -> None:
    """Settings are tried up to the first that is equal in every bit; that one is named, or none is."""
    values = call("doctor", "-m", tiny_llama, "--bit-exact", "--json").document["bit_exact"]
    tried = [("f16 cache, as now", ""), ("q8_0 cache", "--kv-type q8_0"), ("q8_0 cache, weights not reordered", None)]
    assert [(entry["setting"], entry["option"]) for entry in values] == tried[: len(values)]
    assert all(entry["rows"] > 200 and entry["context"] == 733 for entry in values)
    assert all(entry["equal"] is (entry["first_difference"] is None) for entry in values)
    assert [entry["equal"] for entry in values[:-1]] == [False] * (len(values) - 1)
    assert values[-1]["equal"] or len(values) == len(tried)
    text = " ".join(call("doctor", "-m", tiny_llama, "--bit-exact").out.split())
    usable = values[-1]["equal"] and values[-1]["option"] is not None
    assert ("all bits were equal at every width tried" in text) is usable
    assert ("With none of the settings" in text) is not usable


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (("--prompts", "a.jsonl"), "add --audit"),
        (("--audit", "--drafter", "none"), "nothing to audit"),
        (("--threads", "0"), "out of range"),
    ],
)
def test_what_cannot_be_meant(options: tuple[str, ...], part: str) -> None:
    """One sentence, and exit code 2."""
    outcome = call("doctor", *options)
    assert outcome.code == 2
    assert part in outcome.sentence


def test_an_audit_without_a_model() -> None:
    """There is nothing to audit: one sentence, exit code 1."""
    outcome = call("doctor", "--audit")
    assert (outcome.code, outcome.out) == (1, "")
    assert "localspec pull" in outcome.sentence


def test_an_audit_that_has_no_room(examine: Callable[..., Outcome]) -> None:
    """Neither prompt fits: a sentence with the remedy."""
    outcome = examine("--max-tokens", 512)
    assert (outcome.code, outcome.out) == (1, "")
    assert "--max-tokens" in outcome.sentence


def test_control_c_keeps_what_was_judged(
    examine: Callable[..., Outcome], press: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The report says how far the audit came, and the exit code is 130; half an audit is not remembered."""
    from localspec.measure import audit

    judge = audit.judge

    def pressing(*arguments: object) -> object:
        yield from judge(*arguments)
        press()

    monkeypatch.setattr(audit, "judge", pressing)
    outcome = examine("--json")
    assert outcome.code == 130
    values = read_json(outcome.out)
    assert (values["audit"]["complete"], values["audit"]["tokens"]) == (False, 16)
    assert values["last_audit"] is None


def test_control_c_while_bits_are_compared(
    tiny_llama: Path, press: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends before the next pass, and the settings that were tried until then are reported."""
    from localspec.measure import bit_exact

    compare = bit_exact.compare

    def pressing(target: Any, text: Any, setting: bit_exact.Setting, stopping: Any) -> bit_exact.Check:
        if setting.kv_type == "q8_0":
            press()
        return compare(target, text, setting, stopping)

    monkeypatch.setattr(bit_exact, "compare", pressing)
    outcome = call("doctor", "-m", tiny_llama, "--bit-exact", "--json")
    assert outcome.code == 130
    assert [entry["setting"] for entry in read_json(outcome.out)["bit_exact"]] == ["f16 cache, as now"]


NEITHER = Host(nvidia=False, apple_silicon=False)


@pytest.mark.parametrize(
    ("backends", "host", "part"),
    [
        (["CPU"], Host(nvidia=True, apple_silicon=False), "-DGGML_CUDA=on"),
        (["CPU"], Host(nvidia=False, apple_silicon=True), "-DGGML_METAL=on"),
        (["CUDA", "CPU"], Host(nvidia=True, apple_silicon=False), None),
        (["MTL", "CPU"], Host(nvidia=False, apple_silicon=True), None),
        (["CPU"], NEITHER, None),
    ],
)
def test_a_build_that_cannot_use_the_gpu(backends: list[str], host: Host, part: str | None) -> None:
    """The command that puts it right, for the version that is installed."""
    warned = list(build_warnings(backends, host, "0.3.36"))
    assert [each.kind for each in warned] == (["gpu_unused"] if part else [])
    assert all(part and part in each.sentence and "llama-cpp-python==0.3.36" in each.sentence for each in warned)


def kinds(warned: object) -> list[str]:
    return [each.kind for each in warned]  # type: ignore[attr-defined]


def test_the_other_warnings() -> None:
    """Each where it is due, and nowhere else."""
    assert kinds(pair_warnings(1000, 100, 10.0, 1.0)) == []
    assert kinds(pair_warnings(1000, 500, 10.0, 1.0)) == ["draft_too_large"]
    assert kinds(pair_warnings(1000, 100, 10.0, 6.0)) == ["draft_too_slow"]
    assert kinds(cache_warnings("f16")) == []
    assert kinds(cache_warnings("q8_0")) == ["draft_cache_quantized"]
    assert kinds(payoff_warnings(0.2, 0.3, True)) == []
    assert kinds(payoff_warnings(None, None, False)) == ["never_pays"]
    assert kinds(payoff_warnings(0.2, None, True)) == ["draft_never_pays"]
    assert kinds(payoff_warnings(0.2, None, False)) == []
    assert kinds(payoff_warnings(0.7, 0.8, True)) == ["rarely_pays"]
    assert kinds(payoff_warnings(0.2, 0.8, True)) == ["draft_rarely_pays"]
    assert kinds(thread_warnings(None, 2)) == kinds(thread_warnings(2, 2)) == []
    assert kinds(thread_warnings(3, 2)) == ["too_many_threads"]
    assert kinds(memory_warnings("")) == []
    assert kinds(memory_warnings("It needs more memory.")) == ["memory"]
    assert kinds(memory_warnings("Its draft model is not installed.")) == ["draft_missing"]


def test_what_auto_will_do_is_said_in_figures() -> None:
    """From a made-up curve: which copies pay, and from which acceptance the draft model does."""
    model = Path("m.gguf")
    loaded = Loaded(
        model, model, EngineSettings(model), 512, True, 1.0, {1: 10.0}, {1: None, 2: 0.25}, drafts=(0.4, 1),
        best=(BestLength(0.5, 0, 1.0), BestLength(0.9, 4, 2.0)),
    )  # fmt: skip
    text = " ".join(auto_text(loaded).split())
    assert "1 never, 2 25%" in text
    assert "an acceptance of 40% (with 1 token)" in text
    assert "50% none 1.00 90% 4 2.00" in text
    never = auto_text(replace(loaded, copies={1: None}, drafts=None, best=()))
    assert "never pay," in never
    assert "never pays," in never
