"""Comparisons on tiny models: every arm writes the same text, turns rotate, and a simulated clock is always the same."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from localspec.engine import policy
from localspec.engine.engine import Engine, EngineSettings, Options
from localspec.engine.llama import quantize
from localspec.engine.sampling import Sampling
from localspec.engine.stop import Stop
from localspec.measure.arms import Arm, parse_arms
from localspec.measure.bench import Answer, Bench, Round
from localspec.measure.profiles import PROFILES, Profile
from localspec.measure.prompts import Prompt
from localspec.measure.report import document, markdown, text
from localspec.measure.summary import Setup, Spread, Summary

ARMS = ("plain", "auto", "draft:2", "lookup", "lookup:n3k10", "longest5", "suffix", "first")
PROMPTS = (
    Prompt("1", "letters", ("the cat sat on the mat and the cat sat on the hat and the cat",)),
    Prompt("2", "sums", ("1 and 1 is 2, 1 and 2 is", "never read")),
    Prompt("3", "letters", ("Dear Sir or Madam, dear Sir or Madam, dear",)),
)
LENGTH = 24
GREEDY, WARM = Sampling(temperature=0.0), Sampling(temperature=0.9)
STEEP = Profile("steep", "made up", ((1, 1.0), (2, 1.5), (40, 20.5)), 0.25, 0.05)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory, tiny_llama: Path, tiny_draft: Path) -> Iterator[Engine]:
    """A pair with 8-bit weights: with wider ones passes of different widths round in different ways."""
    folder = tmp_path_factory.mktemp("bench")
    target, draft = (quantize(path, folder / path.name, "Q8_0", threads=1) for path in (tiny_llama, tiny_draft))
    with Engine(EngineSettings(target, draft, context_length=512, threads=1)) as engine:
        yield engine


@pytest.fixture(autouse=True)
def real_clock(engine: Engine) -> Iterator[None]:
    """No test leaves its simulated device behind."""
    yield
    for context in (engine.target_context, engine._draft_context):
        context.pass_ms = None


def options(sampling: Sampling = GREEDY, **changes: object) -> Options:
    """Short answers."""
    return Options(**{"sampling": sampling, "seed": 7, "max_tokens": LENGTH} | changes)  # type: ignore[arg-type]


def render(words: str) -> list[int]:
    """A byte is a token."""
    return list(words.encode())


def bench_of(
    engine: Engine, *, arms: Sequence[str] = ARMS, how: Options | None = None, profile: Profile | None = None
) -> Bench:
    return Bench(engine, parse_arms(",".join(arms)), how or options(), render, profile)


def compared(
    engine: Engine,
    *,
    arms: Sequence[str] = ARMS,
    how: Options | None = None,
    profile: Profile | None = None,
    repeats: int = 1,
    stop: Stop | None = None,
) -> Summary:
    """A whole comparison."""
    how = how or options()
    bench = bench_of(engine, arms=arms, how=how, profile=profile)
    setup = Setup.of(engine, how, profile, repeats, len(PROMPTS), ())
    return Summary(setup, tuple(arms), tuple(bench.rounds(PROMPTS, repeats, stop=stop)))


@pytest.fixture(scope="module")
def real(engine: Engine) -> Summary:
    """By the real clock."""
    return compared(engine)


# --- what is run ------------------------------------------------------------------------------------------------------


def test_every_arm_writes_what_plain_decoding_writes(real: Summary) -> None:
    """Every prompt's first turn, whole."""
    assert [round_.prompt for round_ in real.rounds] == list(PROMPTS)
    for round_ in real.rounds:
        assert tuple(round_.answers) == ARMS
        texts = {answer.tokens for answer in round_.answers.values()}
        assert len(texts) == 1
        assert len(texts.pop()) == LENGTH
    assert real.differing == dict.fromkeys(ARMS[1:], 0)
    assert real.complete


def test_arms_do_what_their_names_say(real: Summary) -> None:
    """Plain drafts nothing; the others draft, and save steps where they are right."""
    figures = real.overall
    assert (figures["plain"].steps, figures["plain"].drafted) == (3 * LENGTH, 0)
    assert figures["plain"].acceptance_rate is None
    for arm in ("draft:2", "lookup:n3k10", "suffix", "first"):
        assert figures[arm].drafted > 0
        assert figures[arm].accepted == 3 * LENGTH - figures[arm].steps
    assert figures["draft:2"].accepted > 0
    assert figures["draft:2"].drafted <= 2 * figures["draft:2"].steps


def test_real_times_are_there(real: Summary) -> None:
    """All of them above zero, with the host's for every step."""
    for round_ in real.rounds:
        for answer in round_.answers.values():
            assert answer.ms > 0.0
            assert len(answer.host_ms) == len(answer.policy_ms) == answer.steps
            assert sum(answer.policy_ms) < sum(answer.host_ms) < answer.ms


def test_arms_take_turns(engine: Engine) -> None:
    """Another one begins with each prompt and with each repeat; none is left out."""
    begun: list[tuple[str, str, int, int]] = []

    def note(prompt: Prompt, arm: Arm, done: int, total: int) -> None:
        begun.append((prompt.id, arm.name, done, total))

    bench = bench_of(engine, arms=("plain", "lookup", "suffix"), how=options(max_tokens=2))
    list(bench.rounds(PROMPTS, 2, note))
    order = ["plain", "lookup", "suffix"]
    starts = [0, 1, 2, 1, 2, 0]
    expected = [arm for start in starts for arm in order[start:] + order[:start]]
    assert [arm for _, arm, _, _ in begun] == expected
    assert [prompt for prompt, _, _, _ in begun] == [prompt.id for _ in range(2) for prompt in PROMPTS for _ in order]
    assert [(done, total) for _, _, done, total in begun] == [(done, 18) for done in range(18)]


def test_the_prompt_is_read_once_for_all_arms(engine: Engine) -> None:
    """What one arm has read the next one does not read again, and what it has written is gone."""
    reused = []
    bench = bench_of(engine)
    for round_ in bench.rounds(PROMPTS[:1], progress=lambda *_: reused.append(engine.reused_tokens)):
        assert round_.prompt is PROMPTS[0]
    prompt = len(render(PROMPTS[0].turns[0]))
    assert [*reused[1:], engine.reused_tokens] == [prompt - 1] * len(ARMS)


def test_repeats_have_other_random_numbers_and_arms_the_same(engine: Engine) -> None:
    """At a temperature, with a seed."""
    summary = compared(engine, how=options(WARM), repeats=2)
    assert summary.setup.same_texts
    assert summary.differing == dict.fromkeys(ARMS[1:], 0)
    first, second = summary.rounds[0], summary.rounds[len(PROMPTS)]
    assert (first.prompt, second.prompt, first.repeat, second.repeat) == (PROMPTS[0], PROMPTS[0], 0, 1)
    assert first.answers["plain"].tokens != second.answers["plain"].tokens


def test_texts_are_not_compared_where_they_may_differ(engine: Engine) -> None:
    """Rejection draws other random numbers."""
    how = options(WARM, verification="rejection")
    summary = compared(engine, arms=("plain", "draft:2"), how=how)
    assert summary.differing is None
    values = document(summary)
    assert (values["differing_texts"], values["texts_compared"], values["verification"]) == (None, 0, "rejection")
    assert any(round_.answers["draft:2"].tokens != round_.answers["plain"].tokens for round_ in summary.rounds)


def test_a_prompt_that_does_not_fit_is_noticed(engine: Engine) -> None:
    """With its longest answer, to the token."""
    bench = bench_of(engine)
    assert bench.fits(Prompt("x", "x", ("y" * (512 - LENGTH),)))
    assert not bench.fits(Prompt("x", "x", ("y" * (512 - LENGTH + 1),)))


# --- stopping ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("calls", [0, 1, 2, 7, 8])
def test_stopping_keeps_whole_rounds(engine: Engine, calls: int) -> None:
    """Before an answer, while its prompt is read, or in the next round."""
    looks = iter(range(10**6))

    class Late(Stop):
        """Asked for after so many looks."""

        @property
        def asked(self) -> bool:
            if next(looks) >= calls:
                self.ask()
            return super().asked

    arms = ("plain", "lookup")
    summary = compared(engine, arms=arms, stop=Late())
    # Each of the two answers of a round looks before it begins, and then at every batch of the prompt and every step.
    assert len(summary.rounds) < len(PROMPTS)
    assert all(tuple(round_.answers) == arms for round_ in summary.rounds)
    assert all(len(answer.tokens) == LENGTH for round_ in summary.rounds for answer in round_.answers.values())
    assert not summary.complete
    assert "interrupted after" in text(summary)
    assert document(summary)["complete"] is False
    json.dumps(document(summary), allow_nan=False)


def test_an_answer_that_is_stopped_midway_is_no_answer(engine: Engine) -> None:
    """Nor is its round."""
    rounds = []
    bench = bench_of(engine, arms=("plain", "suffix"))
    written = []

    class Stopper:
        """Ctrl-C after the fifth token of the fourth answer."""

        def observe(self, tokens: Sequence[int]) -> None:
            written.extend(tokens)
            if len(written) > 3 * LENGTH + 5:
                engine.stop()

        def rewind(self, length: int) -> None:
            """Nothing to take back."""

    engine._drafters["stopper"] = Stopper()  # type: ignore[assignment]
    try:
        written.clear()
        for round_ in bench.rounds(PROMPTS):
            rounds.append(round_)
    finally:
        del engine._drafters["stopper"]
    assert len(rounds) < len(PROMPTS)
    assert all(len(answer.tokens) == LENGTH for round_ in rounds for answer in round_.answers.values())


# --- a simulated device -----------------------------------------------------------------------------------------------


def test_a_simulated_clock_gives_the_same_document_every_time(engine: Engine) -> None:
    """And the arms write the same texts as by the real one."""
    first, second = (compared(engine, profile=PROFILES["cuda"], repeats=2) for _ in range(2))
    assert first.differing == dict.fromkeys(ARMS[1:], 0)
    assert json.dumps(document(first)) == json.dumps(document(second))
    assert (text(first), markdown(first)) == (text(second), markdown(second))
    assert document(first)["simulated"]["profile"] == "cuda"
    for figures in document(first)["overall"].values():
        assert figures["host_ms_per_step"] is figures["policy_ms_per_step"] is None


def test_on_a_simulated_clock_an_arm_does_what_it_does_alone(engine: Engine) -> None:
    """To the last bit, whichever arms run before it."""
    together = compared(engine, profile=PROFILES["cpu"])
    for arm in ARMS[1:]:
        alone = compared(engine, arms=("plain", arm), profile=PROFILES["cpu"])
        assert [round_.answers[arm] for round_ in alone.rounds] == [round_.answers[arm] for round_ in together.rounds]


def test_simulated_times_are_those_of_the_profile(engine: Engine) -> None:
    """Plain decoding is the unit; a fixed draft of two that is never cut takes what its passes take."""
    summary = compared(engine, arms=("plain", "draft:1"), profile=STEEP)
    curve = summary.setup.cost_curve
    assert curve == pytest.approx({width: STEEP.target_ms(width) for width in range(1, 34)})
    assert summary.setup.draft_ms == pytest.approx(0.25)
    for round_ in summary.rounds:
        plain, drafted = round_.answers["plain"], round_.answers["draft:1"]
        assert plain.ms == pytest.approx(LENGTH)
        # Two steps in a row with an accepted token leave the draft model one token more to catch up with.
        least = drafted.drafted * (1.5 + 0.25) + (drafted.steps - drafted.drafted)
        assert least - 1e-9 <= drafted.ms <= least + 0.05 * drafted.accepted + 1e-9


# --- figures ----------------------------------------------------------------------------------------------------------


def answer_of(tokens: Sequence[int], steps: int, ms: float, drafted: int = 0, host: Sequence[float] = ()) -> Answer:
    accepted = len(tokens) - steps
    return Answer(tuple(tokens), steps, drafted, accepted, ms, tuple(host), tuple(figure / 2 for figure in host))


@pytest.fixture
def made_up(engine: Engine) -> Summary:
    """Two prompts of one category and one of another."""
    plain = answer_of(range(10), 10, 100.0, host=[0.5] * 10)
    rounds = [
        Round(PROMPTS[0], 0, {"plain": plain, "auto": answer_of(range(10), 4, 25.0, 8, [0.1, 0.1, 0.3, 0.9])}),
        Round(PROMPTS[1], 0, {"plain": plain, "auto": answer_of(range(10), 10, 200.0, 5, [0.1] * 10)}),
        Round(PROMPTS[2], 0, {"plain": plain, "auto": answer_of(range(1, 6), 2, 25.0, 4, [0.2, 0.2])}),
    ]
    setup = Setup.of(engine, options(), None, 1, 4, ("long",))
    return Summary(setup, ("plain", "auto"), tuple(rounds))


def test_figures_are_computed_as_by_hand(made_up: Summary) -> None:
    """Counts and times are summed over a category; speedups are of single answers."""
    letters = made_up.categories["letters"]["auto"]
    assert (letters.tokens, letters.steps, letters.drafted, letters.accepted) == (15, 6, 12, 9)
    assert letters.tokens_per_step == pytest.approx(2.5)
    assert letters.ms_per_token == pytest.approx(50 / 15)
    assert letters.acceptance_rate == pytest.approx(0.75)
    # 4 and 2, and between them a tenth and nine tenths of the way.
    assert letters.speedup == Spread(pytest.approx(3.0), pytest.approx(2.2), pytest.approx(3.8))
    assert letters.host_ms == (pytest.approx(0.2), pytest.approx(0.75))
    assert letters.policy_ms == (pytest.approx(0.1), pytest.approx(0.375))
    assert made_up.categories["sums"]["auto"].speedup.median == pytest.approx(0.5)
    assert made_up.means == {"plain": pytest.approx(1.0), "auto": pytest.approx(1.5**0.5)}
    assert made_up.differing == {"auto": 1}
    assert made_up.complete


CONTRACT = {"tokens", "steps", "tokens_per_step", "ms_per_token", "speedup", "acceptance_rate"}
SETUP = {
    "simulated", "device", "system", "threads", "versions", "model", "draft", "temp", "seed", "verification",
    "max_tokens", "repeat", "cost_curve", "draft_ms",
}  # fmt: skip


def test_the_document_has_the_keys_of_the_contract(made_up: Summary, engine: Engine) -> None:
    """And is JSON."""
    values = json.loads(json.dumps(document(made_up), allow_nan=False))
    assert set(values) == SETUP | {
        "complete", "skipped", "arms", "categories", "overall", "geometric_mean", "texts_compared", "differing_texts",
        "prompts",
    }  # fmt: skip
    assert list(values["categories"]) == ["letters", "sums"]
    for by_arm in (*values["categories"].values(), values["overall"]):
        assert list(by_arm) == ["plain", "auto"]
        for figures in by_arm.values():
            assert set(figures) == CONTRACT | {"drafted", "accepted", "host_ms_per_step", "policy_ms_per_step"}
            assert set(figures["speedup"]) == {"median", "p10", "p90"}
            assert set(figures["host_ms_per_step"]) == set(figures["policy_ms_per_step"]) == {"median", "p95"}
    assert values["geometric_mean"] == {"plain": 1.0, "auto": round(1.5**0.5, 6)}
    assert (values["texts_compared"], values["differing_texts"], values["skipped"]) == (3, {"auto": 1}, ["long"])
    assert set(values["versions"]) == {"localspec", "python", "llama-cpp-python"}
    assert (values["model"], values["draft"], values["simulated"]) == ("llama", "draft", None)
    assert values["cost_curve"][0] == {"width": 1, "ms": round(engine.costs.target.ms(1), 6)}
    assert [(entry["id"], entry["arms"]["auto"]["speedup"]) for entry in values["prompts"]] == [
        ("1", 4.0), ("2", 0.5), ("3", 2.0),
    ]  # fmt: skip


def test_the_table_for_a_terminal_fits_and_says_all(made_up: Summary) -> None:
    """Every category with every arm, the means, and what is odd."""
    lines = text(made_up).splitlines()
    assert max(map(len, lines)) <= 80
    assert lines.count("letters, 2 answers an arm") == lines.count("sums, 1 answer an arm") == 1
    rows = [line.split() for line in lines]
    assert ["auto", "2.50", "3.33", "75%", "3.00x", "2.20", "to", "3.80"] in rows
    assert ["auto", "1.00", "20.00", "0%", "0.50x", "0.50", "to", "0.50"] in rows
    assert ["auto", "1.22x"] in rows
    assert ["plain", "0.50", "0.50", "0.25", "0.25"] in rows
    assert any(row[:4] == ["auto", "0.10", "0.45", "0.05"] for row in rows)
    words = " ".join(text(made_up).split())
    assert "texts that are not plain decoding's, of 3: auto 1 (passes of different widths round differently)" in words
    assert "left out, because they do not fit into the context: 1 of 4 prompts" in words


def test_names_out_of_a_file_break_nothing(engine: Engine) -> None:
    """Neither the terminal nor a table."""
    prompt = Prompt("1", "a|b\x1b[31m\nc" + "d" * 99, ("x",))
    answer = answer_of(range(4), 4, 1.0)
    summary = Summary(Setup.of(engine, options(), None, 1, 1, ()), ("plain",), (Round(prompt, 0, {"plain": answer}),))
    assert "\x1b" not in text(summary) + markdown(summary)
    assert max(map(len, text(summary).splitlines())) <= 80
    rows = [line for line in markdown(summary).splitlines() if line.startswith("|")]
    assert {row.replace("\\|", "").count("|") for row in rows} == {8}
    assert json.loads(json.dumps(document(summary)))["categories"].keys() == {prompt.category}


def test_markdown_is_one_table(made_up: Summary) -> None:
    """With all figures of the other forms."""
    rows = [line for line in markdown(made_up).splitlines() if line.startswith("|")]
    assert {row.count("|") for row in rows} == {8}
    assert "| letters | auto | 2.50 | 3.33 | 75% | 3.00x | 2.20 to 3.80 |" in rows
    assert "| **geometric mean** | auto |  |  |  | **1.22x** |  |" in rows
    assert len(rows) == 2 + 4 + 2


def test_arms_that_copy_know_the_documents(engine: Engine) -> None:
    """As answers in the chat do; each arm with a lookup of its own."""
    arm = parse_arms("lookup")[1]
    make, seen = arm.start(), []

    def watched(session: policy.Session) -> policy.Chooser:
        chooser = make(session)
        seen.append((chooser._lookup.documents, chooser._lookup is session.chain.lookup))
        return chooser

    bench = Bench(engine, [replace(arm, start=lambda: watched)], options(), render, documents=lambda _tokens: [(4, 12)])
    assert len(list(bench.rounds(PROMPTS[:2]))) == 2
    assert seen == [(((4, 12),), False)] * 2
