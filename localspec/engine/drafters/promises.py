"""How one answer keeps the promises of what has been learned from others: corrections that hold for this answer alone."""

from collections.abc import Sequence

from localspec.engine.drafters.base import Draft

FADING = 0.96
"""What counts of an observation one step later."""
_COPY_WEIGHT, _LEAST_DOUBT, _MOST_DOUBT = 1.5, 0.4, 4.0
_FIRST_WEIGHT, _LEAST_SHARE, _MOST_SHARE = 3.0, 0.15, 1.2


class Share:
    """How much of what first tokens promise they have been keeping, between bounds."""

    __slots__ = ("_hits", "_promised")

    def __init__(self) -> None:
        self._hits = self._promised = 0.0

    def judge(self, promised: float, right: bool) -> None:
        """One more first token."""
        self._hits = FADING * self._hits + right
        self._promised = FADING * self._promised + promised

    @property
    def factor(self) -> float:
        """What to multiply a promise by."""
        share = (self._hits + _FIRST_WEIGHT) / (self._promised + _FIRST_WEIGHT)
        return max(_LEAST_SHARE, min(_MOST_SHARE, share))


class Promises:
    """The corrections of copies and of votes."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """A new answer."""
        self._failures = self._expected = 0.0
        self._votes = Share()

    @property
    def doubt(self) -> float:
        """How many more copied tokens have been wrong than was expected."""
        doubt = (self._failures + _COPY_WEIGHT) / (self._expected + _COPY_WEIGHT)
        return max(_LEAST_DOUBT, min(_MOST_DOUBT, doubt))

    def judge_copy(self, tokens: Sequence[tuple[float, bool]]) -> None:
        """The tokens of one step that were copied: the chance of each, and whether it was right."""
        if tokens:
            self._failures = FADING * self._failures + sum(not right for _, right in tokens)
            self._expected = FADING * self._expected + sum(1.0 - chance for chance, _ in tokens)

    def judge_votes(self, promised: float, right: bool) -> None:
        """The first token of the votes."""
        self._votes.judge(promised, right)

    def corrected(self, draft: Draft) -> Draft:
        """The votes' draft, as far as this answer has been keeping such promises."""
        doubt, before, reached = self.doubt, 1.0, 1.0
        survival: list[float] = []
        for promised in draft.survival:
            chance, before = promised / before, promised
            if survival:
                reached *= 1.0 - min(1.0, (1.0 - chance) * doubt)
            else:
                reached = min(1.0, chance * self._votes.factor)
            survival.append(reached)
        return Draft(draft.drafter, draft.tokens, tuple(survival))
