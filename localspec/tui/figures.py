"""The figures of the status line, from the steps of one answer."""

from collections import deque
from dataclasses import dataclass, field

from localspec.engine.step import NO_DRAFTER, Step, Totals

WINDOW_SECONDS = 2.0


@dataclass(slots=True)
class Figures:
    """Sums over one answer, and its speed over the last steps. Times are seconds of one clock."""

    totals: Totals = field(default_factory=Totals)
    _begun: float | None = None
    _marks: deque[tuple[float, int]] = field(default_factory=deque)
    """(end of a step, its tokens), from just before the window on."""

    def begin(self, at: float) -> None:
        """The prompt has been read: decoding begins."""
        self._begun = at
        self._marks.clear()
        self._marks.append((at, 0))

    def add(self, step: Step, at: float) -> None:
        """One more step, which ended at `at`."""
        self.totals.add(step)
        if step.width == 0:
            return
        if self._begun is None:
            self.begin(at - (step.verify_ms + step.draft_ms + step.host_ms) / 1000)
        self._marks.append((at, len(step.tokens)))
        # The mark before the window stays: a step longer than the window has a speed too.
        while self._marks[1][0] <= at - WINDOW_SECONDS:
            self._marks.popleft()

    @property
    def tokens_per_step(self) -> float | None:
        """Tokens per target pass; None before the first."""
        return self.totals.tokens_per_step

    @property
    def recent_speed(self) -> float | None:
        """Tokens per second over the last two seconds; None while there is nothing to measure."""
        if not self._marks:
            return None
        tokens = sum(tokens for _, tokens in self._marks) - self._marks[0][1]
        return _per_second(tokens, self._marks[-1][0] - self._marks[0][0])

    @property
    def mean_speed(self) -> float | None:
        """Tokens per second over the whole answer, reading the prompt left out; None where not measured."""
        if self._begun is None:
            return None
        return _per_second(self.totals.tokens, self._marks[-1][0] - self._begun)

    def shares(self) -> list[tuple[str, float]]:
        """For each drafter that drafted, the share of the answer (0 to 1) that it got accepted; largest first."""
        if not self.totals.tokens:
            return []
        drafters = self.totals.by_drafter.items()
        found = [(name, sums.accepted / self.totals.tokens) for name, sums in drafters if name != NO_DRAFTER]
        return sorted(found, key=lambda share: -share[1])


def _per_second(tokens: int, seconds: float) -> float | None:
    return tokens / seconds if tokens and seconds > 0 else None


def in_words(figures: Figures, *, running: bool) -> list[str]:
    """The figures that there are: tokens per step, tokens/s, who drafted."""
    words = []
    if (per_step := figures.tokens_per_step) is not None:
        words.append(f"{per_step:.2f} tokens/step")
    speed = figures.recent_speed if running else figures.mean_speed
    if speed is not None:
        words.append(f"{speed:,.{0 if speed >= 100 else 1}f} tokens/s")
    if figures.totals.steps:
        shares = figures.shares()
        words.append(", ".join(f"{name} {100 * share:.0f} %" for name, share in shares) or "plain")
    return words
