"""The acceptance rules, pure numpy, no model: every function is one rule of the papers.

Leviathan, Kalman, Matias: Fast Inference from Transformers via Speculative Decoding (2023), called L below.
Chen et al.: Accelerating Large Language Model Decoding with Speculative Sampling (2023), called C below.
p is the target's distribution and q the one that the drafted token was really drawn from, both after the same
temperature, truncation and penalties. The theorem covers no other pair of distributions.
"""

import numpy as np

from localspec.engine.distribution import Distribution


def matches(target_token: int, drafted_token: int) -> bool:
    """Match: the target has drawn its own token, and the drafted one is kept iff it is that token.

    For a drafted token that is a function of the text before it (lookup, argmax), q is a point mass and this is L's
    rule: accepted with probability p(x), and a refusal leaves a draw from p without x, renormalized. Whatever the
    drafter, the token that leaves is the target's own draw.
    """
    return target_token == drafted_token


def acceptance_probability(p: Distribution, q: Distribution, token: int) -> float:
    """min(1, p(x) / q(x)): how likely the drafted token x, drawn from q, is kept (L section 2.3, C algorithm 2)."""
    drawn_with = q.of(token)
    if drawn_with <= 0.0:
        raise ValueError(f"token {token} cannot have been drawn from q, where its probability is 0")
    return min(1.0, p.of(token) / drawn_with)


def accepts(p: Distribution, q: Distribution, token: int, u: float) -> bool:
    """Rejection: keep the drafted token iff the uniform number `u` falls under its acceptance probability."""
    return u < acceptance_probability(p, q, token)


def residual(p: Distribution, q: Distribution) -> Distribution:
    """max(0, p - q), renormalized: what a refused token is replaced from (L section 2.3, C equation 3).

    Subtracted by token id, since p and q list different candidates in different orders. Its mass is the probability of
    a refusal, so it is 0 only where p = q and nothing is ever refused; rounding can still bring us here, and then p is
    the limit of the formula.
    """
    order = np.argsort(q.ids)
    at = np.searchsorted(q.ids, p.ids, sorter=order)
    at[at == q.ids.size] = 0
    at = order[at]
    of_q = np.where(q.ids[at] == p.ids, q.probs[at], 0.0)
    weights = np.maximum(p.probs - of_q, 0.0)
    total = weights.sum()
    if total <= 0.0:
        return p
    keep = weights > 0.0
    return Distribution(p.ids[keep], weights[keep] / total)


def overlap(p: Distribution, q: Distribution) -> float:
    """The sum of min(p, q): the acceptance rate of tokens drawn from q, 1 - TV(p, q) (L corollary 3.6)."""
    common, in_p, in_q = np.intersect1d(p.ids, q.ids, assume_unique=True, return_indices=True)
    return float(np.minimum(p.probs[in_p], q.probs[in_q]).sum()) if common.size else 0.0
