"""Choosers that choose nothing: one drafter, one length. For a person who wants just that, and to compare with."""

from collections.abc import Sequence
from dataclasses import dataclass

from localspec.engine.drafters.base import Draft, Drafter
from localspec.engine.step import NO_DRAFTER, Decision


@dataclass(slots=True)
class Fixed:
    """Every step is drafted by `drafter` (None: by nobody), with up to `length` tokens."""

    drafter: Drafter | None = None
    length: int = 0
    decision: Decision | None = None

    def choose(self, room: int, step: int) -> Draft:
        """Whatever the drafter proposes."""
        limit = min(room, self.length)
        if self.drafter is None or limit <= 0:
            return Draft(NO_DRAFTER)
        return self.drafter.propose(limit, step)

    def learn(self, emitted: Sequence[int], draft: Draft, width: int, verify_ms: float, draft_ms: float) -> None:
        """Nothing to learn."""
