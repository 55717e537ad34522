"""Edits replayed on a simulated device: how many tokens a step, and how fast, by each way of drafting.

The loop, the chain and the policy are the engine's own, without a draft model; only the target is replaced, by the edited
text, and the time of its passes by a device profile. What a way of drafting has learned comes from other texts: every pair
starts from a fresh copy of it and goes on learning within the pair.
"""

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from localspec.engine.costs import CostCurve, Costs
from localspec.engine.drafters.base import Drafter
from localspec.engine.drafters.place import Span
from localspec.engine.policy import Chooser
from localspec.engine.step import Totals
from localspec.measure.edits import EditPair
from localspec.measure.profiles import Profile
from localspec.measure.replay import device_ms, run_loop

Piece = Callable[[int], bytes]
"""The bytes of a token; a plain function, which copies of what holds it share."""
Render = Callable[[str, str], tuple[list[int], Span]]
"""A document and the words of a person about it as the token ids of a prompt, and where the document lies in it."""


class Words(Protocol):
    """The vocabulary of the target."""

    @property
    def eos(self) -> int:
        """The token that ends an answer."""

    def tokenize(self, text: str, *, special: bool) -> list[int]:
        """The token ids of a text."""


@dataclass(frozen=True, slots=True, eq=False)
class EditAnswer:
    """A pair as a model would have met and answered it."""

    pair: EditPair
    prompt: NDArray[np.int32]
    """Token ids, shape (P,)."""
    document: Span
    answer: NDArray[np.int32]
    """The edited text and the token that ends it, shape (N,)."""


def answer_of(pair: EditPair, render: Render, words: Words) -> EditAnswer:
    """The tokens of a pair."""
    prompt, document = render(pair.source, pair.instruction)
    answer = [*words.tokenize(pair.target, special=False), words.eos]
    return EditAnswer(pair, np.array(prompt, np.int32), document, np.array(answer, np.int32))


class Way(Protocol):
    """A way of drafting, with all it has learned; copied by deepcopy."""

    def begin(self, edit: EditAnswer) -> tuple[Chooser, Sequence[Drafter]]:
        """The chooser of one answer, and what has to be told of every token of it."""


@dataclass(frozen=True, slots=True)
class EditArm:
    """One way of drafting in a comparison of edits."""

    name: str
    learns: bool
    """Whether it remembers anything from answer to answer."""
    start: Callable[[Costs, Piece], Way]
    """One that knows nothing yet but what passes cost, how tokens are spelled, and what is shipped."""
    untaught: Callable[[Costs, Piece], Way] | None = None
    """The same without what is shipped, which was learned from the design half; None where that is nothing."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """What one arm made of one pair."""

    pair: EditPair
    tokens: int
    steps: int
    ms: float
    """In plain steps of the target."""

    @property
    def tokens_per_step(self) -> float:
        """Over all target passes."""
        return self.tokens / self.steps

    @property
    def speed(self) -> float:
        """Over plain decoding."""
        return self.tokens / self.ms


def costs_of(profile: Profile) -> Costs:
    """What passes cost, as an engine would have measured it."""
    return Costs(CostCurve.measured({width: profile.target_ms(width) for width in profile.widths}))


@dataclass(frozen=True, slots=True)
class Replay:
    """Replays of one arm on one device."""

    arm: EditArm
    profile: Profile
    piece: Piece

    def run(self, edits: Sequence[EditAnswer], training: Sequence[EditAnswer] = ()) -> Iterator[Replayed]:
        """Every edit, each from the same state: after all of `training`, one after the other."""
        trained = self.arm.start(costs_of(self.profile), self.piece)
        if self.arm.learns:
            for edit in training:
                self._once(edit, trained)
        for edit in edits:
            totals = self._once(edit, deepcopy(trained))
            yield Replayed(edit.pair, totals.tokens, totals.steps, device_ms(totals) / self.profile.target_ms(1))

    def run_folds(self, edits: Sequence[EditAnswer]) -> Iterator[Replayed]:
        """Every edit in its turn, after learning from the others alone: the pairs of every second text follow those of the
        rest, and the other way round."""
        arm = replace(self.arm, start=self.arm.untaught or self.arm.start)
        even = set(list(dict.fromkeys(edit.pair.document for edit in edits))[::2])
        folds = {side: [edit for edit in edits if (edit.pair.document in even) is side] for side in (True, False)}
        untaught = replace(self, arm=arm)
        replayed = {side: untaught.run(folds[side], folds[not side]) for side in folds}
        for edit in edits:
            yield next(replayed[edit.pair.document in even])

    def _once(self, edit: EditAnswer, way: Way) -> Totals:
        chooser, drafters = way.begin(edit)
        return run_loop(edit, self.profile, chooser, drafters)
