"""What a copy is worth from each of its tokens on: how far it pays to follow what lookup says."""

from collections.abc import Callable

from localspec.engine.drafters.base import Draft

_SAME = 1e-9
"""Survivals that differ by less are the same."""


class Copy:
    """One proposal of lookup, followed token by token while the draft agrees with it."""

    __slots__ = ("_best", "_scale", "_sums", "_survival", "_trust", "done", "draft", "start", "tokens")

    def __init__(self, draft: Draft, start: int, trust: float) -> None:
        """`start`: tokens of the draft before it. `trust`: how much of what copies promise they keep, beyond their first
        token."""
        self.draft, self.start, self.done = draft, start, 0
        self.tokens, self._survival = draft.tokens, draft.survival
        self._trust = trust
        self._scale = -1.0
        self._sums: list[float] = []
        self._best: list[tuple[float, int]] = []

    @property
    def left(self) -> int:
        """Tokens not yet followed."""
        return len(self.tokens) - self.done

    @property
    def token(self) -> int:
        """The next one."""
        return self.tokens[self.done]

    @property
    def acceptance(self) -> float:
        """How likely the next token is, if all before it are right."""
        return self._survival[self.done] / self._before

    @property
    def _before(self) -> float:
        return self._survival[self.done - 1] if self.done else 1.0

    def follow(self, token: int) -> bool:
        """The draft goes on with `token`; whether that is what the copy says."""
        if self.left and self.token == token:
            self.done += 1
            return True
        return False

    def gain(
        self,
        reached: float,
        rate: float,
        cost: Callable[[int], float],
        beyond: Callable[[int, float], float] | None,
    ) -> tuple[float, int]:
        """The most that copying on can gain, in tokens, and how many tokens that takes; (0, 0) where nothing.

        `reached`: survival of the draft so far. `rate`: tokens per ms that time is worth. `cost`: ms of a target pass by
        width. `beyond`: what going on after n tokens is worth, by their survival.
        """
        if not self.left:
            return 0.0, 0
        self._weigh(reached / self._before, rate, cost, beyond)
        done = self.done
        n = self.start + done
        first = reached * self.acceptance
        best, length = first - rate * (cost(2 + n) - cost(1 + n)), 1
        if beyond:
            best += beyond(n + 1, first)
        if self.left > 1:
            value, last = self._best[done + 1]
            value += first - self._sums[done] + rate * cost(1 + n)
            if value > best:
                best, length = value, last - done + 1
        return (best, length) if best > 0.0 else (0.0, 0)

    def confirmed_gain(self, confirmed: float, rate: float, cost: Callable[[int], float]) -> float:
        """What copying on behind the next token gains, in tokens, when the draft model has said it too and the draft then
        survives with probability `confirmed`."""
        width = 2 + self.start + self.done
        share = confirmed * self._trust / self._survival[self.done]
        here, gain, best = cost(width), 0.0, 0.0
        for more, survival in enumerate(self._survival[self.done + 1 :], start=1):
            gain += share * survival
            best = max(best, gain - rate * (cost(width + more) - here))
        return best

    def _weigh(
        self, scale: float, rate: float, cost: Callable[[int], float], beyond: Callable[[int, float], float] | None
    ) -> None:
        """For each token the value of ending there, and then the best of all later ends: one pass over the copy, which
        holds while the draft follows it at the odds it has promised."""
        if abs(scale - self._scale) <= _SAME * scale:
            return
        self._scale = scale
        factor, width, total = scale * self._trust, 2 + self.start, 0.0
        sums, best = [0.0] * self.done, [(0.0, 0)] * len(self.tokens)
        values = [0.0] * self.done
        for index in range(self.done, len(self.tokens)):
            reached = factor * self._survival[index]
            total += reached
            sums.append(total)
            values.append(total - rate * cost(width + index) + (beyond(width + index - 1, reached) if beyond else 0.0))
        end = (float("-inf"), 0)
        for index in range(len(self.tokens) - 1, self.done - 1, -1):
            end = best[index] = max(end, (values[index], index))
        self._sums, self._best = sums, best
