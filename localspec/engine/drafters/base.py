"""The protocol of a drafter: it follows the verified tokens and proposes what could come next."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from localspec.engine.distribution import Distribution


@dataclass(frozen=True, slots=True)
class Draft:
    """Proposed tokens, first to last.

    `survival`: for each token the drafter's estimate that it and all before it are accepted; falls along the draft.
    `q`: for sampled drafts, the distribution that each token was really drawn from; None where the draft is a function
    of the text before it (or of the target's own random numbers), and the match rule applies; so it does for a single
    token whose entry is None. `sources`: who proposed each token, where it was not one drafter alone.
    """

    drafter: str
    tokens: tuple[int, ...] = ()
    survival: tuple[float, ...] = ()
    q: tuple[Distribution | None, ...] | None = None
    sources: tuple[str, ...] = ()


class Drafter(Protocol):
    """Whatever proposes tokens. A new drafter is one new file in this folder."""

    name: str

    def observe(self, tokens: Sequence[int]) -> None:
        """These tokens follow the stream so far: the prompt, or what a step has emitted, whoever drafted it."""

    def rewind(self, length: int) -> None:
        """The stream is only its first `length` tokens from now on (an edit, another answer)."""

    def propose(self, limit: int, step: int) -> Draft:
        """Up to `limit` tokens that could follow the stream. `step` tells the target passes of an answer apart, for
        drafters that need random numbers."""


class Copier(Drafter, Protocol):
    """A drafter that copies from the stream."""

    @property
    def stream(self) -> Sequence[int]:
        """The text as it has been followed so far."""

    @property
    def calibrated(self) -> bool:
        """Whether its promises are corrected already by what became of them in this answer."""

    def extend(self, after: Sequence[int], limit: int) -> Draft:
        """What it would propose if `after` followed the stream."""
