"""Replays of recorded answers on a simulated device: real tokens, real acceptance, a virtual clock.

The loop, the drafters and the policy are the engine's own; only the two models are replaced, by what they once said, and
the time of their passes by a device profile. The same recording and profile give the same result everywhere.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from localspec.engine import policy
from localspec.engine.chain import Chain
from localspec.engine.costs import CostCurve, Costs
from localspec.engine.distribution import Distribution
from localspec.engine.drafters.base import Drafter
from localspec.engine.drafters.draft_model import Drafting, DraftModel
from localspec.engine.drafters.lookup import Lookup
from localspec.engine.drafters.place import PlaceLookup, Span
from localspec.engine.generate import Loop, Request
from localspec.engine.step import Totals
from localspec.measure.profiles import Profile
from localspec.measure.recording import Recording

_NO_TOKEN = -1
_CONTEXT = 1 << 17


class Answered(Protocol):
    """A prompt and the answer to it."""

    @property
    def prompt(self) -> NDArray[np.int32]:
        """Token ids."""

    @property
    def answer(self) -> NDArray[np.int32]:
        """Token ids."""


class RecordedTarget:
    """An evaluator that says what the target once said."""

    def __init__(self, recording: Answered | None, profile: Profile) -> None:
        self.tokens: list[int] = []
        self.length, self.batch_size = _CONTEXT, 512
        self.busy_seconds = 0.0
        self._start = len(recording.prompt) if recording else 0
        self._answer: list[int] = recording.answer.tolist() if recording else []
        self._profile = profile
        self._first_row = 0

    def decode(self, tokens: Sequence[int], rows: int = 0) -> None:
        """Takes the time of a pass of that width; reading the prompt is free."""
        if rows:
            self.busy_seconds += self._profile.target_ms(len(tokens)) / 1000
        self.tokens.extend(tokens)
        self._first_row = len(self.tokens) - rows

    def row(self, index: int) -> NDArray[Any]:
        """The token that follows, in the place of logits."""
        at = self._first_row + index + 1 - self._start
        return np.array([self._answer[at] if at < len(self._answer) else _NO_TOKEN])

    def truncate(self, length: int) -> int:
        """Roll back."""
        del self.tokens[length:]
        return len(self.tokens)

    def mark(self, name: str) -> None:
        """Nothing to save."""


class RecordedDraftContext(RecordedTarget):
    """An evaluator that says what the draft model once said, and how sure it was; also a few tokens down its own wrong
    way."""

    def __init__(self, recording: Recording | None, profile: Profile) -> None:
        super().__init__(recording, profile)
        self._recording = recording

    def decode(self, tokens: Sequence[int], rows: int = 0) -> None:
        """Takes the time of the draft's pass."""
        if rows:
            self.busy_seconds += self._profile.draft_ms(len(tokens)) / 1000
        self.tokens.extend(tokens)

    def row(self, index: int) -> NDArray[Any]:
        """(token, top probability)."""
        record, at = self._recording, len(self.tokens) - self._start
        if record is None or at >= len(self._answer):
            return np.array([_NO_TOKEN, 0.5])
        drafted = self.tokens[self._start + max(0, at - 64) :]
        known = self._answer[max(0, at - 64) : at]
        wrong = next((i for i, (a, b) in enumerate(zip(drafted, known, strict=True)) if a != b), None)
        if wrong is None:
            return np.array([record.drafted[at], record.draft_top[at]])
        left = max(0, at - 64) + wrong
        ahead = at - left - 1
        if ahead < record.branch.shape[1] and record.branch[left, ahead] >= 0:
            return np.array([record.branch[left, ahead], record.branch_top[left, ahead]])
        return np.array([_NO_TOKEN, record.draft_top[at]])


class RecordedDraft(DraftModel):
    """The draft model's own logic over its recording."""

    def _read_row(self) -> tuple[int, Distribution | None]:
        return int(self.context.row(0)[0]), None

    def confidence(self) -> float:
        """The recorded probability."""
        return float(self.context.row(0)[1])


class RecordedSampler:
    """Takes what the row says."""

    def begin(self, tokens: Iterable[int]) -> None:
        """Nothing to remember."""

    def accept(self, token: int) -> None:
        """Nothing to remember."""

    def fork(self) -> "RecordedSampler":
        """Itself, having no state."""
        return self

    def distribution(self, row: NDArray[Any]) -> Distribution:
        """All on one token."""
        return Distribution(np.array([int(row[0])], np.int32), np.ones(1))

    def draw(self, row: NDArray[Any], key: int) -> int:
        """The recorded token."""
        return int(row[0])


class _NoText:
    def piece(self, token: int) -> bytes:
        return b""

    def is_end(self, token: int) -> bool:
        return False


MakeChooser = Callable[[policy.Session], policy.Chooser]
"""An arm of a comparison: its chooser for one answer, from what the session has learned so far."""


class Session:
    """A loaded pair on a simulated device, answering one recording after the other as the app would."""

    def __init__(self, profile: Profile, lookup: Lookup | PlaceLookup | None = None) -> None:
        """`lookup`: the engine's own, which knows documents; None: one that does not."""
        self._profile = profile
        self._lookup = lookup or Lookup()
        self._draft_model = RecordedDraft(RecordedDraftContext(None, profile), 1 << 30)
        curve = CostCurve.measured({width: profile.target_ms(width) for width in profile.widths})
        draft_curve = CostCurve.measured({width: profile.draft_ms(width) for width in (1, 2, 4, 8, 16, 32, 64)})
        self._learned = policy.Session(Chain(Costs(curve, draft_curve), self._lookup, self._draft_model))

    def replay(self, recording: Recording, make: MakeChooser, documents: Sequence[Span] = ()) -> Totals:
        """One answer under one arm. `documents`: which tokens of the prompt are. The totals' times are the profile's."""
        self._draft_model.context = RecordedDraftContext(recording, self._profile)
        prompt = recording.prompt.tolist()
        for drafter in (self._lookup, self._draft_model):
            drafter.rewind(0)
            drafter.observe(prompt)
        if isinstance(self._lookup, PlaceLookup):
            self._lookup.begin(documents)
        self._draft_model.read(len(prompt) - 1)
        self._draft_model.begin(RecordedSampler(), Drafting.COUPLED, 0, greedy=True)
        return run_loop(recording, self._profile, make(self._learned), (self._lookup, self._draft_model))


def run_loop(recorded: Answered, profile: Profile, chooser: policy.Chooser, drafters: Sequence[Drafter]) -> Totals:
    """Write an answer once more with drafters that have followed its prompt. The totals' times are the profile's."""
    prompt = recorded.prompt.tolist()
    target = RecordedTarget(recorded, profile)
    if len(prompt) > 1:
        target.decode(prompt[:-1])
    loop = Loop(
        target=target,
        sampler=RecordedSampler(),
        policy=chooser,
        drafters=drafters,
        codec=_NoText(),
        request=Request(0, max_tokens=len(recorded.answer)),
        stream=prompt,
    )
    totals = Totals()
    for step in loop.run():
        totals.add(step)
    return totals


def device_ms(totals: Totals) -> float:
    """Simulated milliseconds of an answer: the two models' passes."""
    return 1000 * (totals.draft_seconds + totals.verify_seconds)
