"""How many tokens of a document's copy to verify at once: now, or after the text has confirmed a token or two.

The text of an answer is what it is, so its least total time is the largest sum, over all steps, of the tokens of a step less
the time that it takes, counted in tokens that could be had in that time without a copy. A copy that is not drafted now can be
drafted a step later, surer by one token; a copy that is right goes on behind the draft. Both are in the value of a length,
which is found backwards from the end of the copy (Bellman's equation): in doubt a dear device waits, and a cheap one tries.
"""

from collections.abc import Mapping, Sequence
from itertools import takewhile

_LENGTHS = (1, 2, 3, 4, 5, 6, 7, 8, 11, 15, 19, 23, 27)
"""Lengths that are tried, beside the whole copy."""
_LATER = (3, 7, 15, 23)
"""Those that are tried for the steps after this one."""


def lengths(count: int) -> list[int]:
    """The lengths that are tried for a copy of `count` tokens, rising."""
    return [*takewhile(lambda length: length < count, _LENGTHS), count]


def best_length(survival: Sequence[float], extra: Mapping[int, float]) -> tuple[int, float]:
    """The length with the largest value, 0 for none, and how much more it is worth than none, in tokens.

    `survival`: for each token of the copy the chance that it and all before it are right, one token at least. `extra`: what a
    pass with so many drafted tokens takes beyond a plain step, in tokens that the time is worth otherwise, for each of
    `lengths`.
    """
    count = len(survival)
    total, sums = 0.0, [0.0]
    for chance in survival:
        total += chance
        sums.append(total)
    # later[j]: the value of the copy from its token j on, times the chance that the text gets there. A pass that is right
    # to its end gives one token more than was drafted.
    later = [0.0] * (count + 2)
    tried = [(length, extra[length]) for length in _LATER if length < count]
    known, above = list(extra.items()), 0
    for start in range(count - 1, 0, -1):
        best, here, before, left = later[start + 1], survival[start - 1], sums[start], count - start
        # The whole rest of it, at the price of the next length that is tried.
        while known[above][0] < left:
            above += 1
        value = total - before - here * known[above][1]
        if value > best:
            best = value
        for length, time in tried:
            if length >= left:
                break
            value = sums[start + length] - before - here * time + later[start + length + 1]
            if value > best:
                best = value
        later[start] = best
    waiting = best = later[1]
    chosen = 0
    for length, time in extra.items():
        value = sums[length] - time + later[length + 1]
        if value > best:
            best, chosen = value, length
    return chosen, best - waiting
