"""A sparse distribution over token ids, and how a token is drawn from it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from localspec.engine.noise import uniforms


@dataclass(frozen=True, slots=True, eq=False)
class Distribution:
    """Probabilities of the tokens that can be sampled at all; every other token has probability 0.

    `ids`: shape (n,), int32, distinct, in any order. `probs`: shape (n,), float64, sums to 1.
    """

    ids: NDArray[np.int32]
    probs: NDArray[np.float64]

    @classmethod
    def from_logits(cls, ids: NDArray[np.int32], logits: NDArray[np.floating]) -> "Distribution":
        """The softmax of `logits`, shape (n,), in float64."""
        weights = logits.astype(np.float64)
        weights -= np.maximum.reduce(weights)
        np.exp(weights, out=weights)
        weights /= np.add.reduce(weights)
        return cls(ids, weights)

    def of(self, token: int) -> float:
        """The probability of one token."""
        where = np.flatnonzero(self.ids == token)
        return float(self.probs[where[0]]) if where.size else 0.0

    @property
    def top(self) -> float:
        """The largest probability."""
        return float(self.probs.max())

    def mode(self) -> int:
        """The most probable token."""
        return int(self.ids[self.probs.argmax()])

    def pick(self, u: float) -> int:
        """The token at `u` (a uniform number) in the distribution laid out end to end: one number, and quicker than `draw`,
        but two distributions that nearly agree need not pick the same token."""
        place = int(self.probs.cumsum().searchsorted(u, "right"))
        return int(self.ids[min(place, self.ids.size - 1)])

    def draw(self, key: int) -> int:
        """The token that the random field of `key` picks: token i wins with probability probs[i].

        An exponential race: with E_i independent and exponential, the smallest E_i / p_i is token i's with
        probability p_i (the Gumbel-max trick in other clothes; Maddison, Tarlow, Minka: A* Sampling, 2014). Each token
        runs with its own number, so two distributions that nearly agree nearly always pick the same token (Daliri,
        Musco, Suresh: Coupling without Communication, 2024), and the order of the candidates does not matter.
        """
        if self.ids.size == 1:
            return int(self.ids[0])
        race = np.log(uniforms(key, self.ids))
        with np.errstate(divide="ignore"):
            race /= self.probs
        return int(self.ids[race.argmax()])


def draw_from_logits(ids: NDArray[np.int32], logits: NDArray[np.floating], key: int) -> int:
    """The token that `Distribution.from_logits(ids, logits).draw(key)` is, without the softmax: with Gumbel noise
    -log(E_i) added, the largest logit wins exactly where the smallest E_i / p_i does. `ids`, `logits`: shape (n,)."""
    if ids.size == 1:
        return int(ids[0])
    noise = np.log(uniforms(key, ids))
    np.negative(noise, out=noise)
    np.log(noise, out=noise)
    return int(ids[(logits - noise).argmax()])
