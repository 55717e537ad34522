"""Every way in which speculative decoding is known to go wrong, planted on purpose: its check must fail, and says so.

The numbers are those of the list of hazards that the engine was written against; each names where it was seen.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import checks
import planted
import tiny_bad
import tiny_checks
from checks import CheckFailed
from localspec.engine import engine as engine_module
from localspec.engine.errors import UserError
from localspec.engine.llama import Context, LlamaError
from localspec.engine.llama.memory import MemoryKind, SequenceMemory

Plant = Callable[[pytest.MonkeyPatch], None]
NOTICED = (AssertionError, LlamaError, ValueError, LookupError)
"""A failed check, or one of the engine's own guards that the fault runs into first."""


def _caught(check: Callable[[], None], plant: Plant) -> str:
    """The check passes, the fault is planted, the check fails; the fault is taken out, and it passes again."""
    check()
    with pytest.MonkeyPatch.context() as patch:
        plant(patch)
        with pytest.raises(NOTICED) as complaint:
            check()
    check()
    return f"{type(complaint.value).__name__}: {complaint.value}"


TABLE_HAZARDS: list[tuple[str, Callable[[], None], Plant]] = [
    ("1 argmax scored as a sample (HF 47932)", checks.check_joint, planted.argmax_called_a_sample),
    ("2 one noise for draft and verdict (vLLM 47386)", checks.check_tv, planted.one_noise_for_all),
    ("3 draft cut by the drafted token's own value", checks.check_joint, planted.cut_by_own_value),
    ("4 the better of two sampled drafts", checks.check_joint, planted.better_of_two_samples),
    ("6 residual subtracted by slot (llama.cpp examples/speculative)", checks.check_joint, planted.residual_by_slot),
    ("7 rows shifted above depth two (ds4 358)", checks.check_every_length, planted.rows_shifted_above_depth_two),
    ("8 bonus token lost (imp 667)", checks.check_every_length, planted.bonus_token_lost),
    ("8 last token doubled (imp 667)", checks.check_equality, planted.last_token_doubled),
    ("12 draft cache not caught up", checks.check_self_draft, planted.draft_not_caught_up),
    ("13 penalties do not see the draft", checks.check_equality_with_penalties, planted.penalties_one_step_late),
    ("14 tokens kept after the end", checks.check_ends, planted.on_after_the_end),
    ("14 tokens kept after a stop string", checks.check_ends, planted.on_after_a_stop_string),
    ("15 refused rows use random numbers", checks.check_equality, planted.refused_rows_use_random_numbers),
    ("18 typical acceptance (Medusa)", checks.check_joint, planted.plausible_is_good_enough),
    ("18 a near match is accepted", checks.check_equality, planted.near_match_is_good_enough),
    ("19 draft past max tokens or context", checks.check_edges, planted.draft_past_the_edge),
    ("20 history kept after an edit (llama.cpp 27852)", checks.check_lookup_after_edit, planted.index_kept_after_edit),
    (
        "21 accepted tokens reported as certain (llama.cpp 27972)",
        checks.check_logprobs,
        planted.accepted_tokens_are_certain,
    ),
]


@pytest.mark.parametrize(("name", "check", "plant"), TABLE_HAZARDS, ids=[row[0] for row in TABLE_HAZARDS])
def test_planted_in_the_loop(name: str, check: Callable[[], None], plant: Plant) -> None:
    """The fault is noticed on probability tables."""
    print(f"{name}: {check.__name__} says {_caught(check, plant)}")


def _no_top_k_for_the_target(patch: pytest.MonkeyPatch) -> None:
    honest = engine_module.Engine._sampler

    def sampler(self, model, options):
        if model is self.target:
            from dataclasses import replace

            options = replace(options, sampling=replace(options.sampling, top_k=0))
        return honest(self, model, options)

    patch.setattr(engine_module.Engine, "_sampler", sampler)


def _rollback_off_by_one(patch: pytest.MonkeyPatch) -> None:
    honest_remove, honest_length = SequenceMemory._remove_from, SequenceMemory.length
    blinded: set[int] = set()

    def remove_from(self: SequenceMemory, length: int) -> bool:
        blinded.add(id(self))
        return honest_remove(self, length + 1)

    def length(self: SequenceMemory) -> int:
        blind = id(self) in blinded
        blinded.discard(id(self))
        return honest_length(self) - blind

    patch.setattr(SequenceMemory, "_remove_from", remove_from)
    patch.setattr(SequenceMemory, "length", length)


def _answer_of_the_cut_ignored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SequenceMemory, "_remove_from", lambda self, length: True)


def _correction_without_its_row(patch: pytest.MonkeyPatch) -> None:
    honest = Context.truncate

    def truncate(self: Context, length: int) -> int:
        shorter = length < len(self.tokens)
        kept = honest(self, length)
        if shorter and self.settings.rows > 1 and kept > 2:
            self.tokens.append(self.tokens[-1])
        return kept

    patch.setattr(Context, "truncate", truncate)


TINY_HAZARDS: list[tuple[str, Callable[..., None], Plant]] = [
    ("5 top-k on the draft's side only (HF 47932)", tiny_checks.check_support, _no_top_k_for_the_target),
    ("9 rollback ignored (llama-cpp-python)", tiny_checks.check_same_text, _answer_of_the_cut_ignored),
    ("11 correction committed without its row (ds4 502)", tiny_checks.check_same_text, _correction_without_its_row),
]


@pytest.mark.parametrize(("name", "check", "plant"), TINY_HAZARDS, ids=[row[0] for row in TINY_HAZARDS])
def test_planted_in_a_real_context(
    name: str, check: Callable[..., None], plant: Plant, tiny_llama: Path, tiny_draft: Path
) -> None:
    """The fault is noticed on a tiny model with a real cache."""
    print(f"{name}: {check.__name__} says {_caught(lambda: check(tiny_llama, tiny_draft), plant)}")


def test_rollback_off_by_one_with_a_blind_length_check(tiny_llama: Path) -> None:
    """9: even where nobody asks the memory for its length, one token too many shows in the logits."""

    def check() -> None:
        tiny_checks.check_rollback(tiny_llama)

    print(f"9 rollback off by one: check_rollback says {_caught(check, _rollback_off_by_one)}")


def test_snapshots_trusted_too_far(tiny_lfm2: Path) -> None:
    """10: llama.cpp says yes to a rollback of a running state further than the last pass was wide, and it is wrong."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        def evaluated(self: SequenceMemory, width: int) -> None:
            self._undoable = self._snapshots

        patch.setattr(SequenceMemory, "evaluated", evaluated)

    print(f"10 snapshots: {_caught(lambda: tiny_checks.check_rollback(tiny_lfm2), plant)}")


def test_recurrent_memory_taken_for_attention(tiny_mamba: Path) -> None:
    """10: a running state cannot drop its end, and says so; nobody listens."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(SequenceMemory, "is_recurrent", property(lambda self: False))
        _answer_of_the_cut_ignored(patch)

    print(f"10 recurrent: {_caught(lambda: tiny_checks.check_rollback(tiny_mamba), plant)}")


def test_vocabulary_of_the_same_size(tiny_llama: Path, tmp_path: Path) -> None:
    """16: two tokens swapped; only their number is compared."""
    other = tiny_bad.other_vocabulary(tmp_path / "other.gguf", swap=(65, 66))

    def check() -> None:
        try:
            tiny_checks.load(tiny_llama, other).close()
        except UserError as error:
            checks.demand(
                "token 65" in str(error) and "'A'" in str(error), f"the first differing token is missing: {error}"
            )
        else:
            raise CheckFailed("a draft with another vocabulary was loaded")

    def plant(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(engine_module, "common_vocabulary", lambda target, draft: min(target.size, draft.size))

    print(f"16 vocabulary: {_caught(check, plant)}")


def test_window_overwritten_before_a_long_rewind(tiny_gemma: Path) -> None:
    """17: cells outside the sliding window are gone; a cut far back answers yes all the same."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        honest = SequenceMemory._cut_attention

        def cut(self: SequenceMemory, length: int) -> int:
            self.kind, kind = MemoryKind.PLAIN, self.kind
            kept = honest(self, length)
            self.kind = kind
            return kept

        patch.setattr(SequenceMemory, "_cut_attention", cut)

    print(f"17 window: {_caught(lambda: tiny_checks.check_long_rewind(tiny_gemma), plant)}")


@pytest.fixture(autouse=True)
def _said_aloud(capsys: pytest.CaptureFixture[str]) -> Iterator[None]:
    """What was planted and who noticed is part of the report, not only of a failure's."""
    yield
    said = capsys.readouterr().out
    with capsys.disabled():
        print(f"\n  {said.strip()}", end="")
