"""The audit of exactness: what it finds where a flip is planted, and what it says of a clean machine."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from localspec.engine.engine import Engine, Options
from localspec.engine.sampling import Sampling, log_probability
from localspec.measure.audit import Audit, Judged, Written, audit, judge, noise_floor, write
from localspec.measure.audit_file import AUDIT_FILE, keep_audit, last_audit
from localspec.measure.bit_exact import Setting, compare
from tiny_checks import GREEDY, PROMPT, load

ARMS = [Options(GREEDY, "lookup", max_tokens=24), Options(GREEDY, "draft", draft_max=3, max_tokens=24)]
VOCABULARY = 16


class WidthDependent:
    """A model whose logits depend on the last token alone, and at one position on the width of the pass too."""

    length, batch_size, busy_seconds = 256, 8, 0.0

    def __init__(self, position: int | None = None, gap: float = 0.02, shift: float = 0.05) -> None:
        self.tokens: list[int] = []
        self.position, self.gap, self.shift = position, gap, shift
        self.widths: list[int] = []
        self._rows: list[NDArray[np.float32]] = []

    def decode(self, tokens: Sequence[int], rows: int = 0) -> None:
        start = len(self.tokens)
        self.tokens += tokens
        if rows:
            self.widths.append(len(tokens))
        places = range(start + len(tokens) - rows, start + len(tokens))
        self._rows = [self._logits(place, len(tokens)) for place in places]

    def row(self, index: int) -> NDArray[np.float32]:
        return self._rows[index]

    def truncate(self, length: int) -> int:
        del self.tokens[length:]
        return len(self.tokens)

    def mark(self, name: str) -> None: ...

    def _logits(self, place: int, width: int) -> NDArray[np.float32]:
        row = np.zeros(VOCABULARY, np.float32)
        best = (self.tokens[place] + 1) % VOCABULARY
        row[best], row[(best + 1) % VOCABULARY] = 5.0, 5.0 - self.gap
        if place == self.position and width > 1:
            row[(best + 1) % VOCABULARY] += self.shift
        return row


def recited(target: WidthDependent, prompt: list[int], count: int, width: int) -> Written:
    """Greedy text of `target` in passes of `width` tokens, as drafts that are right give it."""
    text, logprobs = list(prompt), []
    while len(text) < len(prompt) + count:
        target.truncate(0)
        # Every row is that of a wide pass, whatever follows it.
        target.decode(text)
        row = target._logits(len(text) - 1, width)
        text.append(int(row.argmax()))
        logprobs.append(log_probability(row, text[-1]))
    tokens = tuple(text[len(prompt) :])
    return Written(tuple(prompt), tokens, (width,) * count, ("draft",) * count, tuple(logprobs))


def test_a_planted_flip_is_found_where_it_is() -> None:
    """One token of twelve, with its place, its gap and what moved it."""
    target = WidthDependent(position=9)
    written = recited(target, [1, 2, 3], 12, width=4)
    target.widths.clear()
    found = Audit(list(judge(target, written)))
    assert set(target.widths) == {1}
    (flip,) = found.flips
    assert (flip.position, flip.width, flip.drafter) == (10, 4, "draft")
    assert flip.gap == pytest.approx(0.02, abs=1e-5)
    assert found.max_gap == flip.gap
    assert [(low, flips) for low, flips, _ in found.histogram() if flips] == [(0.01, 1)]
    assert sum(every for _, _, every in found.histogram()) == found.tokens == found.wide == 12
    assert found.moved == flip.moved > 0.01
    assert [token.moved for token in found.judged if not token.flipped] == [0.0] * 11


def test_a_clean_machine_has_no_flips() -> None:
    """Nothing flips, and no probability moves."""
    target = WidthDependent()
    written = recited(target, [1, 2, 3], 12, width=4)
    found = Audit(list(judge(target, written)))
    assert (found.flips, found.max_gap, found.moved, found.is_faulty) == ([], 0.0, 0.0, False)


def test_what_moves_without_a_drafter_is_no_fault() -> None:
    """The noise floor reads the same text in wide passes; a difference of that size is rounding, a larger one a fault."""
    target = WidthDependent(position=9, shift=0.05)
    written = recited(target, [1, 2, 3], 12, width=4)
    judged = list(judge(target, written))
    target.widths.clear()
    floor = noise_floor(target, written, [token.logprob for token in judged])
    assert target.widths == [4, 4, 4]
    assert floor == max(token.moved for token in judged) > 0
    assert not Audit(judged, floor).is_faulty


@pytest.mark.parametrize(("gap", "moved", "faulty"), [(0.4, 0.1, False), (0.6, 0.1, True), (0.1, 0.3, True)])
def test_what_rounding_cannot_explain_is_called_a_fault(gap: float, moved: float, faulty: bool) -> None:
    """A flip over half a logit, or a probability that moves by more than twice what it does without a drafter."""
    token = Judged(position=7, width=5, drafter="draft", gap=gap, flipped=True, logprob=-1.0, moved=moved)
    assert Audit([token], noise_floor=0.1).is_faulty is faulty


def test_a_flip_to_a_token_that_is_not_the_second_has_its_own_gap() -> None:
    """The gap of a flip is how far the written token is behind, not how near the second is."""
    target = WidthDependent()
    written = recited(target, [1, 2, 3], 1, width=2)
    worse = Written(written.prompt, (9,), (2,), ("draft",), (-5.0,))
    (token,) = judge(target, worse)
    assert (token.flipped, token.gap) == (True, 5.0)


@pytest.fixture
def engine(tiny_llama: Path, tiny_draft: Path) -> Engine:
    """A tiny pair with an exact cache."""
    return load(tiny_llama, tiny_draft, kv_type="q8_0")


def test_every_token_of_a_tiny_pair_is_judged(engine: Engine) -> None:
    """Both drafters, from an empty cache each time; the log-probabilities show that every token was looked at."""
    with engine:
        told: list[tuple[int, int]] = []
        found = audit(engine, [PROMPT, PROMPT[:20]], ARMS, lambda *numbers: told.append(numbers))
        assert told == [(0, 4), (1, 4), (2, 4), (3, 4)]
        assert found.complete
        assert found.tokens == 4 * 24
        assert 0 < found.wide < found.tokens
        assert {token.drafter for token in found.judged} == {"none", "lookup", "draft"}
        # Weights of 32 bits are multiplied in another order in a wide pass; that flips nothing here.
        assert (found.flips, found.is_faulty) == ([], False)
        assert found.moved < 1e-3


def test_a_flip_planted_in_an_engine_is_found(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the rows of wide passes prefer another token, the audit says so, and that it is no rounding."""
    with engine:
        context = engine.target_context
        row = type(context).row

        def crooked(self: object, index: int) -> NDArray[np.float32]:
            values = row(context, index).copy()
            if self is context and context._row_count > 2 and index == 1:
                values[values.argmax()] -= 30
            return values

        monkeypatch.setattr(type(context), "row", crooked)
        found = audit(engine, [PROMPT], [ARMS[0]])
    assert found.flips
    assert found.is_faulty
    assert {flip.width > 2 for flip in found.flips} == {True}


def test_a_stopped_audit_keeps_what_was_judged(engine: Engine) -> None:
    """Two of four answers."""
    with engine:
        found = audit(engine, [PROMPT, PROMPT[:20]], ARMS, lambda done, _total: done < 2)
    assert (found.complete, found.tokens) == (False, 2 * 24)


def test_penalties_do_not_make_flips(engine: Engine) -> None:
    """An audited text is the model's own: greedy and without penalties, whatever the options say."""
    options = Options(Sampling(temperature=1.5, repeat_penalty=2.0, frequency_penalty=1.0), "lookup", max_tokens=24)
    with engine:
        written = write(engine, PROMPT, options)
        assert written.tokens == write(engine, PROMPT, ARMS[0]).tokens
        assert not any(token.flipped for token in judge(engine.target_context, written))


OPENED = "llama.gguf/gpu-1/threads2/f16/llama-cpp-python 0.3.36/0123456789abcdef"


def test_the_last_audit_is_remembered(tmp_path: Path) -> None:
    """For what was opened like that, and nothing else."""
    token = Judged(position=70, width=5, drafter="draft", gap=0.2, flipped=True, logprob=-1.0, moved=0.1)
    keep_audit(tmp_path, OPENED, Audit([token]), "draft")
    said = last_audit(tmp_path, OPENED)
    assert said == (
        "Audited just now: 1 of 1 tokens would have been another by plain decoding, in contexts of up to 70 tokens; by its "
        "logits the written one is 0.2 behind."
    )
    later = last_audit(tmp_path, OPENED, time.time() + 12.5 * 86_400)
    assert later is not None
    assert later.startswith("Audited 12 days ago, on 20")
    for other in (OPENED.replace("f16", "q8_0"), "", OPENED[:-1]):
        assert last_audit(tmp_path, other) is None
    # Of an audit in which nothing was drafted nothing is claimed.
    plain = Judged(position=7, width=1, drafter="none", gap=0.2, flipped=False, logprob=-1.0, moved=0.0)
    keep_audit(tmp_path, "another", Audit([plain]), None)
    assert last_audit(tmp_path, "another") is None
    # Nor for what nobody knows.
    keep_audit(tmp_path, "", Audit([token]), None)
    assert last_audit(tmp_path, "") is None


@pytest.mark.parametrize("content", ["", "[]", '{"a": 1}', "{"])
def test_a_damaged_file_of_audits_is_as_good_as_none(tmp_path: Path, content: str) -> None:
    """Nothing is said, and the next audit is kept."""
    (tmp_path / AUDIT_FILE).write_text(content)
    assert last_audit(tmp_path, OPENED) is None
    token = Judged(position=70, width=5, drafter="draft", gap=0.2, flipped=False, logprob=-1.0, moved=0.0)
    keep_audit(tmp_path, OPENED, Audit([token]), None)
    assert "none of 1 tokens" in (last_audit(tmp_path, OPENED) or "")


AS_NOW = Setting("as now", "f16", 1, "")


def test_bits_are_compared_at_every_width() -> None:
    """Equal ones are called equal; one logit at one place is enough to call them different, and the place is told."""
    text = [index % VOCABULARY for index in range(80)]
    clean = compare(WidthDependent(), text, AS_NOW)
    assert (clean.equal, clean.first_difference, clean.longest) == (True, None, 65)
    assert clean.rows == sum((2, 3, 4, 5, 8, 9, 16, 17, 33))
    crooked = compare(WidthDependent(position=32 + 7, shift=1e-6), text, AS_NOW)
    assert (crooked.equal, crooked.first_difference) == (False, (32, 8))
