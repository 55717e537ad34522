"""Edits that have been seen in this answer, to be expected again: a word that was replaced once may be so everywhere.

Every edit is kept in two forms: with the tokens beside it, and bare. How far a form is trusted is learned from how often
it has come true and how often it has not: one example is a rumour, one confirmation is near proof.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from localspec.engine.calibration import NestedRates

BARE, FULL = 0, 1
LONGEST_EDIT = 40
"""Longer changes are not edits to be repeated."""
_LONGEST_OLD, _LONGEST_NEW = 12, 16
_SPLIT = 2
"""A change with more tokens than this on both sides may be several edits in one."""
_FORGIVENESS = 0.7
"""What a success leaves of the failures before it."""
_PRIOR = {BARE: (0.2, 1.2), FULL: (0.9, 1.0)}
_MOST_RULES = 12
"""Rules kept for one first token."""
_ANY = -1


@dataclass(slots=True, eq=False)
class Rule:
    """Where `old` stands, between `left` and `right` (_ANY: whatever is beside it), `new` is expected."""

    form: int
    left: int
    old: tuple[int, ...]
    right: int
    new: tuple[int, ...]
    successes: float = 1.0
    failures: float = 0.0

    @property
    def key(self) -> int:
        """What its trust depends on."""
        return self.form * 16 + min(int(self.successes), 4) * 4 - 4 + min(round(self.failures), 3)

    @property
    def prior(self) -> float:
        """Its trust before anything is known of such rules."""
        hits, more = _PRIOR[self.form]
        return (self.successes - 1.0 + hits) / (self.successes - 1.0 + self.failures + 1.0 + more)


@dataclass(slots=True, frozen=True)
class Patch:
    """A rule at a place: these tokens instead of the source's, and where the source goes on behind them."""

    rule: Rule
    tokens: tuple[int, ...]
    resume: int
    trust: float


class EditMemory:
    """The rules of one answer, and the trust in rules that outlives it."""

    def __init__(self, trust: NestedRates) -> None:
        self._trust = trust
        self.by_first: dict[int, list[Rule]] = {}
        """Rules by the source's token where they begin."""

    def clear(self) -> None:
        """Another answer begins."""
        self.by_first.clear()

    def learn(self, stream: Sequence[int], old: tuple[int, int], new: tuple[int, int]) -> None:
        """The source's tokens `old` have become the answer's tokens `new`; both are spans of the stream."""
        (start, end), (begin, stop) = old, new
        if end - start > LONGEST_EDIT or stop - begin > LONGEST_EDIT:
            return
        for a, b, c, d in _pieces(stream[start:end], stream[begin:stop]):
            if b - a <= _LONGEST_OLD and d - c <= _LONGEST_NEW:
                self._keep(stream, (start + a, start + b), tuple(stream[begin + c : begin + d]))

    def applying(self, stream: Sequence[int], place: int, end: int) -> list[Patch]:
        """What the rules expect at a place of the source that ends at `end`, the most trusted one first."""
        found: list[Patch] = []
        for rule in self.by_first.get(stream[place], ()):
            resume = place + len(rule.old)
            if rule.form == FULL and (
                stream[place - 1] != rule.left or (resume < end and stream[resume] != rule.right)
            ):
                continue
            if resume > end or (len(rule.old) > 1 and tuple(stream[place:resume]) != rule.old):
                continue
            tokens = rule.new
            if not tokens:
                if resume >= end:
                    continue
                tokens, resume = (stream[resume],), resume + 1
            if tokens[0] != stream[place]:
                found.append(Patch(rule, tokens, resume, self._trust.mean(rule.prior, rule.key)))
        if len(found) > 1:
            found.sort(key=lambda patch: -patch.trust)
        return found

    def judge(self, patch: Patch, right: bool) -> None:
        """A rule has come true or not."""
        rule = patch.rule
        self._trust.learn(float(right), rule.key)
        if right:
            rule.successes += 1.0
            rule.failures *= _FORGIVENESS
        else:
            rule.failures += 1.0

    def _keep(self, stream: Sequence[int], old: tuple[int, int], new: tuple[int, ...]) -> None:
        start, end = old
        replaced = tuple(stream[start:end])
        first = stream[start]
        self._add(first, Rule(FULL, stream[start - 1], replaced, stream[end], new))
        if replaced:
            self._add(first, Rule(BARE, _ANY, replaced, _ANY, new))

    def _add(self, first: int, rule: Rule) -> None:
        rules = self.by_first.setdefault(first, [])
        for index, known in enumerate(rules):
            if (known.form, known.old, known.left, known.right) == (rule.form, rule.old, rule.left, rule.right):
                if known.new == rule.new:
                    known.successes += 1.0
                elif known.failures >= known.successes:
                    rules[index] = rule
                return
        rules.append(rule)
        if len(rules) > _MOST_RULES:
            rules.remove(min(rules, key=lambda rule: rule.successes - rule.failures))


def _pieces(old: Sequence[int], new: Sequence[int]) -> Iterator[tuple[int, int, int, int]]:
    """The changes in a change: (start, end) in the old tokens, (start, end) in the new ones."""
    if min(len(old), len(new)) <= _SPLIT:
        yield 0, len(old), 0, len(new)
        return
    for kind, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind != "equal":
            yield a, b, c, d
