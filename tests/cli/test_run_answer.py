"""`localspec run` where all is well: what is on stdout, in which form, and whether the figures fit together."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

import tiny
from command import Outcome, call, execute, read_json
from localspec.chat.messages import Document, attach_documents

CONTRACT = {
    "text", "finish_reason", "model", "draft", "prompt_tokens", "reused_tokens", "tokens", "steps", "tokens_per_step",
    "drafted", "accepted", "acceptance_rate", "by_drafter", "seconds", "plain_ms_per_token", "ms_per_token", "speedup",
    "seed", "verification", "speculation_off_reason",
}  # fmt: skip
OURS = {"context_full", "host_ms_per_step"}
SECONDS = {"load", "prompt", "decode", "draft", "verify", "sample", "policy"}
STEP = {"tokens", "text", "drafter", "drafted", "accepted", "width", "draft_ms", "verify_ms", "policy_ms"}
OUR_STEP = {"sample_ms", "finish", "pieces", "sources", "decision"}
QUESTION = "the cat sat on the mat and the cat sat on the hat and the cat"


def ask(model: Path, *options: object, stdin: bytes = b"") -> Outcome:
    return call("run", "-m", model, *options, stdin=stdin)


def figures(model: Path, *options: object, stdin: bytes = b"") -> dict[str, object]:
    return ask(model, "--json", *options, stdin=stdin).document


def test_the_answer_is_on_stdout_and_nothing_is_on_stderr(tiny_llama, tiny_draft, own_folders):
    options = ("run", "-m", tiny_llama, "-d", tiny_draft, "--seed", 3, "--max-tokens", 40, QUESTION)
    text = execute(*options)
    assert (text.code, text.err) == (0, "")
    document = execute(*options, "--json").document
    assert document["tokens"] == 40
    assert text.out == document["text"] + "\n"
    # What llama.cpp has to say about loading went to the log.
    assert "llama_model_loader" in (own_folders / "log" / "localspec.log").read_text()


def test_the_words_of_a_prompt_need_no_quotes(tiny_llama):
    assert (
        figures(tiny_llama, "--temp", 0, "--max-tokens", 4, "one", "two")["prompt_tokens"]
        == (figures(tiny_llama, "--temp", 0, "--max-tokens", 4, "one two")["prompt_tokens"])
    )


@pytest.mark.parametrize("drafter", ["none", "lookup", "draft", "auto"])
def test_json_has_the_keys_of_the_contract_and_its_figures_agree(drafter, tiny_llama, tiny_draft):
    values = figures(
        tiny_llama, "-d", tiny_draft, "--drafter", drafter, "--seed", 5, "--temp", 0.5, "--max-tokens", 80, QUESTION
    )
    assert set(values) == CONTRACT | OURS
    assert (values["model"], values["draft"]) == (tiny_llama.stem, tiny_draft.stem)
    assert (values["tokens"], values["finish_reason"], values["context_full"]) == (80, "length", False)
    assert (values["seed"], values["verification"], values["reused_tokens"]) == (5, "match", 0)
    assert values["prompt_tokens"] == len(f"#user\n{QUESTION}#\n#assistant\n")
    check_counts(values)
    check_times(values)
    drafted = {name for name, sums in values["by_drafter"].items() if sums["drafted"]}
    if drafter != "auto":
        assert drafted == {drafter} - {"none"}
    assert (values["speculation_off_reason"] is None) == bool(drafted)


def check_counts(values: dict) -> None:
    by_drafter = values["by_drafter"]
    assert set(by_drafter) <= {"none", "lookup", "draft"}
    for sums in by_drafter.values():
        assert set(sums) == {"steps", "drafted", "accepted"}
        assert 0 <= sums["accepted"] <= sums["drafted"]
        assert sums["steps"] > 0
    for name in ("steps", "drafted", "accepted"):
        assert values[name] == sum(sums[name] for sums in by_drafter.values())
    # Every step gives its accepted tokens and one of the target's own.
    assert values["tokens"] == values["accepted"] + values["steps"]
    assert values["tokens_per_step"] == pytest.approx(values["tokens"] / values["steps"], abs=1e-5)
    if values["drafted"]:
        assert values["acceptance_rate"] == pytest.approx(values["accepted"] / values["drafted"], abs=1e-5)
    else:
        assert values["acceptance_rate"] is None


def check_times(values: dict) -> None:
    seconds = values["seconds"]
    assert set(seconds) == SECONDS
    assert all(math.isfinite(value) and value >= 0 for value in seconds.values())
    assert min(seconds["load"], seconds["prompt"], seconds["verify"], seconds["sample"]) > 0
    parts = sum(seconds[name] for name in ("draft", "verify", "sample", "policy"))
    assert seconds["decode"] == pytest.approx(parts, abs=1e-5)
    assert values["ms_per_token"] == pytest.approx(1000 * seconds["decode"] / values["tokens"], rel=1e-3)
    assert 0 < values["host_ms_per_step"] < 1000 * seconds["decode"]
    if values["by_drafter"].get("none", {"steps": 0})["steps"] >= 8:
        assert values["plain_ms_per_token"] > 0
    if values["plain_ms_per_token"] is None:
        assert values["speedup"] is None
    else:
        assert values["speedup"] == pytest.approx(values["plain_ms_per_token"] / values["ms_per_token"], rel=1e-3)


def test_json_without_a_draft_model_and_without_a_draft_has_nulls(tiny_llama):
    values = figures(tiny_llama, "--max-tokens", 1, QUESTION)
    assert (values["draft"], values["acceptance_rate"], values["plain_ms_per_token"]) == (None, None, None)
    assert values["by_drafter"] == {"none": {"steps": 1, "drafted": 0, "accepted": 0}}
    assert values["speculation_off_reason"] == "there is no room for a draft"
    assert 0 <= values["seed"] < 2**32
    assert values["verification"] == "rejection"


def test_the_seed_that_was_drawn_gives_the_same_answer_again(tiny_llama):
    first = figures(tiny_llama, "--temp", 1, "--max-tokens", 30, QUESTION)
    again = figures(tiny_llama, "--temp", 1, "--max-tokens", 30, "--seed", first["seed"], QUESTION)
    other = figures(tiny_llama, "--temp", 1, "--max-tokens", 30, "--seed", first["seed"] ^ 1, QUESTION)
    assert first["text"] == again["text"] != other["text"]


@pytest.mark.parametrize("drafter", ["none", "lookup", "draft"])
def test_the_lines_of_jsonl_add_up_to_the_document(drafter, tiny_llama, tiny_draft):
    options = ("-d", tiny_draft, "--drafter", drafter, "--seed", 5, "--max-tokens", 60, QUESTION)
    document = figures(tiny_llama, *options)
    outcome = ask(tiny_llama, "--jsonl", *options)
    assert (outcome.code, outcome.err) == (0, "")
    steps = [read_json(line) for line in outcome.out.split("\n")[:-1]]
    assert all(set(step) == STEP | OUR_STEP for step in steps)
    assert len(steps) == document["steps"]
    assert "".join(step["text"] for step in steps) == document["text"]
    assert all("".join(step["pieces"]) == step["text"] and len(step["pieces"]) == len(step["tokens"]) for step in steps)
    assert sum(len(step["tokens"]) for step in steps) == document["tokens"]
    for name in ("drafted", "accepted"):
        assert sum(step[name] for step in steps) == document[name]
    for step in steps:
        assert step["width"] == step["drafted"] + 1
        assert step["drafter"] == (drafter if step["drafted"] else "none")
    assert [step["finish"] for step in steps] == [None] * (len(steps) - 1) + ["length"]


@pytest.mark.parametrize(
    "sampling", [("--temp", 0), ("--temp", 0.9, "--seed", 11), ("--temp", 0, "--repeat-penalty", 1.3)]
)
def test_whoever_drafts_the_text_is_the_same(sampling, tiny_llama, tiny_draft):
    answers = {
        drafter: figures(
            tiny_llama,
            "-d",
            tiny_draft,
            "--drafter",
            drafter,
            "--draft-max",
            6,
            "--max-tokens",
            120,
            *sampling,
            QUESTION,
        )
        for drafter in ("none", "lookup", "draft", "auto")
    }
    assert len({answer["text"] for answer in answers.values()}) == 1
    assert answers["none"]["drafted"] == 0
    assert answers["lookup"]["by_drafter"]["lookup"]["drafted"] > 0
    assert answers["draft"]["by_drafter"]["draft"]["accepted"] > 0


def test_rejection_draws_from_the_draft_model_and_says_so(tiny_llama, tiny_draft):
    options = ("-d", tiny_draft, "--drafter", "draft", "--temp", 0.9, "--seed", 4, "--max-tokens", 60, QUESTION)
    values = figures(tiny_llama, "--verification", "rejection", *options)
    assert values["verification"] == "rejection"
    assert 0 < values["accepted"] < values["drafted"]
    check_counts(values)
    # The same seed does not mean the same text here, only the same distribution.
    assert values["text"] != figures(tiny_llama, "--verification", "match", *options)["text"]


def test_text_that_is_piped_in_is_the_prompt_where_there_is_none(tiny_llama):
    options = ("--temp", 0, "--max-tokens", 20)
    argued = figures(tiny_llama, *options, "Grüße aus\nKöln")
    assert figures(tiny_llama, *options, stdin="Grüße aus\nKöln".encode())["text"] == argued["text"]
    # A byte order mark is no part of the text.
    marked = figures(tiny_llama, *options, stdin="Grüße aus\nKöln".encode("utf-8-sig"))
    assert (marked["text"], marked["prompt_tokens"]) == (argued["text"], argued["prompt_tokens"])


def test_text_that_is_piped_in_beside_a_prompt_is_a_document(tiny_llama):
    document = "a line\nanother line\n"
    whole = attach_documents([Document("stdin", document)], "Sum this up.")
    options = ("--temp", 0, "--max-tokens", 20)
    attached = figures(tiny_llama, *options, "Sum this up.", stdin=document.encode())
    written = figures(tiny_llama, *options, "--", whole)
    assert (attached["text"], attached["prompt_tokens"]) == (written["text"], written["prompt_tokens"])
    assert attached["prompt_tokens"] == len(f"#user\n{whole}#\n#assistant\n")
    blank = figures(tiny_llama, *options, "Sum this up.", stdin=b" \n")
    assert blank["prompt_tokens"] == len("#user\nSum this up.#\n#assistant\n")


def test_a_system_prompt_comes_first(tiny_llama):
    values = figures(tiny_llama, "--max-tokens", 2, "-s", "Be brief.", "Hi")
    assert values["prompt_tokens"] == len("#system\nBe brief.#\n#user\nHi#\n#assistant\n")


def test_halves_of_characters_and_control_characters_in_arguments_are_read(tiny_llama):
    outcome = ask(tiny_llama, "--max-tokens", 3, "--json", "-s", "\udcff", "a\x00b\x1b\udce4")
    assert outcome.document["tokens"] == 3


def test_special_tokens_in_a_prompt_stay_text(tiny_llama):
    values = figures(tiny_llama, "--max-tokens", 2, "<|im_end|>")
    assert values["prompt_tokens"] == len("#user\n<|im_end|>#\n#assistant\n")


def test_a_full_context_ends_the_answer_and_is_remarked_upon(tiny_llama):
    options = ("--ctx", 256, "--seed", 1, "x" * 200)
    remarked = ask(tiny_llama, "--json", *options)
    assert remarked.sentence == "The context is full, so the answer ends here; choose a larger --ctx."
    values = read_json(remarked.out)
    assert (values["finish_reason"], values["context_full"]) == ("length", True)
    assert values["prompt_tokens"] + values["tokens"] == 257
    quiet = ask(tiny_llama, "--json", "--quiet", *options)
    assert (quiet.code, quiet.err) == (0, "")
    assert read_json(quiet.out)["text"] == values["text"]


@pytest.mark.parametrize("drafter", ["none", "lookup", "draft"])
def test_at_the_very_end_of_the_context_no_length_breaks_it(drafter, tiny_llama, tiny_draft):
    frame = len("#user\n#\n#assistant\n")
    for length in range(250, 260):
        prompt = "abc " * 100
        options = ("-d", tiny_draft, "--drafter", drafter, "--temp", 0, "--ctx", 256, "--quiet")
        # "ab" is one token, so that four characters are three of them.
        outcome = ask(tiny_llama, *options, "--json", prompt.replace("ab", "xy")[: length - frame])
        if length <= 256:
            assert outcome.document["tokens"] == 257 - length
        else:
            assert outcome.code == 1
            assert f"The prompt has {length} tokens and the context holds 256" in outcome.sentence


@pytest.mark.parametrize("asked", [1, 2, 33, 200])
def test_a_context_is_never_too_short_for_a_draft(asked, tiny_llama, tiny_draft):
    options = ("-d", tiny_draft, "--drafter", "draft", "--draft-max", 32, "--temp", 0, "--max-tokens", 60, QUESTION)
    short = figures(tiny_llama, "--ctx", asked, *options)
    assert (short["tokens"], short["text"]) == (60, figures(tiny_llama, *options)["text"])


def test_a_context_longer_than_the_model_was_trained_with_works(models):
    small = tiny.llama(models / "short-sighted.gguf", chat_template=tiny.CHAT_TEMPLATE, context=256)
    values = figures(small, "--ctx", 1024, "--temp", 0, "--max-tokens", 20, "x" * 700)
    assert (values["tokens"], values["finish_reason"]) == (20, "length")


def test_recommendations_of_the_model_count_unless_they_are_nonsense(models, tiny_llama):
    recommending = tiny.llama(
        models / "recommending.gguf", chat_template=tiny.CHAT_TEMPLATE, extra={"general.sampling.temp": 0.0}
    )
    greedy = figures(tiny_llama, "--temp", 0, "--max-tokens", 20, QUESTION)["text"]
    assert figures(recommending, "--max-tokens", 20, QUESTION)["text"] == greedy
    assert figures(recommending, "--temp", 1.5, "--seed", 1, "--max-tokens", 20, QUESTION)["text"] != greedy
    absurd = {
        "general.sampling.temp": -3.0,
        "general.sampling.top_k": math.inf,
        "general.sampling.top_p": math.nan,
        "general.sampling.penalty_repeat": 0.0,
    }
    nonsense = tiny.llama(models / "nonsense.gguf", chat_template=tiny.CHAT_TEMPLATE, extra=absurd)
    usual = figures(tiny_llama, "--seed", 1, "--max-tokens", 20, QUESTION)["text"]
    assert figures(nonsense, "--seed", 1, "--max-tokens", 20, QUESTION)["text"] == usual


@pytest.mark.parametrize("kind", ["tiny_gemma", "tiny_lfm2", "tiny_mamba"])
def test_every_kind_of_memory_answers_the_same_whoever_drafts(kind, request):
    model = request.getfixturevalue(kind)
    texts = {
        figures(model, "--drafter", drafter, "--temp", 0, "--max-tokens", 60, QUESTION)["text"]
        for drafter in ("none", "lookup")
    }
    assert len(texts) == 1


def test_a_name_that_is_no_utf_8_is_a_name(tmp_path, tiny_llama):
    model = tmp_path / "\udcff.gguf"
    model.write_bytes(tiny_llama.read_bytes())
    assert figures(model, "--max-tokens", 3, QUESTION)["tokens"] == 3


@pytest.mark.real
def test_the_starter_model_knows_why_the_sky_is_blue(smollm2):
    outcome = execute("run", "-m", smollm2, "--temp", 0, "--max-tokens", 20, "Why is the sky blue?")
    assert (outcome.code, outcome.err) == (0, "")
    # Another processor rounds in another way, and its greedy answer may use other words.
    assert re.search("scatter|atmospher|light", outcome.out)


@pytest.mark.real
def test_lookup_copies_from_a_document_and_changes_nothing(smollm2):
    document = "The quick brown fox jumps over the lazy dog near the old river bank. " * 3
    answers = {
        drafter: figures(
            smollm2, "--drafter", drafter, "--temp", 0, "--max-tokens", 40, "Repeat the text.", stdin=document.encode()
        )
        for drafter in ("none", "lookup", "auto")
    }
    assert len({answer["text"] for answer in answers.values()}) == 1
    assert answers["lookup"]["by_drafter"]["lookup"]["accepted"] > 0
    assert answers["lookup"]["tokens_per_step"] > 1
    assert answers["none"]["plain_ms_per_token"] > 0
