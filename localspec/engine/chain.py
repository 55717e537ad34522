"""Building one draft out of two sources: at each token copy what lookup says, ask the draft model, or stop.

A copied token is free and as good as its match; a look by the draft model costs time and says more: how sure it is, and
whether it agrees with the copy, which is the strongest sign there is. Whichever token is likelier then joins the draft.
Every decision weighs expected tokens against time at the current rate; in rejection mode, before the token's own value is
drawn.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

from localspec.engine.calibration import RateTable
from localspec.engine.costs import Costs
from localspec.engine.distribution import Distribution
from localspec.engine.drafters.base import Draft
from localspec.engine.drafters.draft_model import DraftModel
from localspec.engine.drafters.lookup import Lookup
from localspec.engine.horizon import BINS, LONGEST, Horizon

# How sure the draft model is of its most probable token, in classes, and how often that token is right: where lookup is
# silent, where it says the same, where it says something else.
_CONFIDENCES = (0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.97)
_SILENT = (0.16, 0.28, 0.46, 0.64, 0.75, 0.86, 0.94, 0.97)
_AGREES = (0.50, 0.62, 0.73, 0.84, 0.93, 0.96, 0.985, 0.995)
_DIFFERS = (0.17, 0.31, 0.40, 0.57, 0.66, 0.72, 0.86, 0.96)
# How sure lookup is, in classes, and how often it is right against the draft model's word.
_COPY_CLASSES = (0.3, 0.6, 0.85)
_COPY_DIFFERS = (0.06, 0.15, 0.35, 0.60)
_RELATIONS = len(_COPY_DIFFERS)
_USAGE_MEMORY = 0.9
_LONG_COPY = 4
_TRUST_WEIGHT, _TRUST_AT_FIRST, _TRUST_CARRIED = 16.0, 0.5, 0.3
"""How far long copies are trusted before an answer has shown how far they carry: a share, the tokens it weighs like, and
how much the answers before it count."""
_SURE_COPY = 0.85
"""Without a look only copies that are at least this sure are taken."""
_ACCEPTANCES = tuple((index + 0.5) / BINS for index in range(BINS))
_OUTLOOK_SIZE = 200.0
"""Looks that an outlook remembers, about."""
_SOLVE_EVERY = 8
"""Steps after which the value of going on is computed anew."""

_Key = tuple[int, int]


@dataclass(slots=True)
class _Look:
    """What a look said about one position, to be judged when the truth is out."""

    position: int
    own: int
    copied: int | None
    key: _Key


@dataclass(slots=True)
class _Run:
    """A copy that is being watched."""

    copy: Draft
    matched: int = 0


@dataclass(slots=True)
class Chain:
    """The builder of drafts for one engine; it remembers how good each kind of token has been."""

    costs: Costs
    lookup: Lookup | None
    model: DraftModel | None
    own_rates: RateTable = field(default_factory=lambda: RateTable(weight=12.0, memory=0.997))
    copy_rates: RateTable = field(default_factory=lambda: RateTable(weight=12.0, memory=0.997))
    outlooks: dict[_Key, list[float]] = field(default_factory=dict)
    looks: list[_Look] = field(default_factory=list)
    horizon: Horizon = field(default_factory=Horizon)
    looked: bool = False
    """Whether the draft model was asked for the last draft."""
    spent_ms: float = 0.0
    """What asking it was expected to cost."""
    copied: float = 0.0
    promised: float = 0.0
    """Tokens that copies have carried in this answer, and those they had promised."""
    proposed: Draft = field(default_factory=lambda: Draft("lookup"))
    run: _Run | None = None
    usage: float = 0.5
    """Share of steps, of late, that asked the draft model."""
    _since_solved: int = _SOLVE_EVERY

    def build(
        self, limit: int, rate: float, step: int, probe: bool = False, may_look: bool = True
    ) -> tuple[Draft, float]:
        """The draft of a step, and how much more it is worth than plain decoding from here on, in tokens; an empty one
        where nothing is.

        `rate`: tokens per millisecond that time is worth. `probe`: ask the draft model first, whatever it promises.
        `may_look`: it may be asked at all.
        """
        model = self.model if may_look and self.model and self.model.room > 0 else None
        self._since_solved += 1
        if model and self._since_solved > _SOLVE_EVERY:
            self._since_solved = 0
            self._solve(rate)
        return _Build(self, model, limit, rate, step, probe).run()

    def rest(self) -> None:
        """A new step: what the last one looked at has been judged."""
        self.usage = _USAGE_MEMORY * self.usage + (1.0 - _USAGE_MEMORY) * self.looked
        self.looks, self.looked, self.spent_ms = [], False, 0.0
        self.proposed = Draft("lookup")

    def begin(self) -> None:
        """A new answer begins: how far copies carry in it is hardly known yet."""
        self.rest()
        self.copied = _TRUST_AT_FIRST * _TRUST_WEIGHT + _TRUST_CARRIED * self.copied
        self.promised = _TRUST_WEIGHT + _TRUST_CARRIED * self.promised
        self.run = None

    def follow(self, emitted: Sequence[int]) -> None:
        """Watch how far a copy would have carried, used or not; then look at the next one."""
        run = self.run or (_Run(self.proposed) if len(self.proposed.tokens) >= _LONG_COPY else None)
        self.run = run
        if run is None:
            return
        for token in emitted:
            if run.matched < len(run.copy.tokens) and run.copy.tokens[run.matched] == token:
                run.matched += 1
                continue
            self.promised += sum(run.copy.survival)
            self.copied += run.matched
            self.run = None
            return

    @property
    def trust(self) -> float:
        """How much of what long copies promise they have been keeping in this answer, at most all of it."""
        return min(1.0, self.copied / self.promised)

    def _solve(self, rate: float) -> None:
        outlook = [sum(column) for column in zip(*self.outlooks.values(), strict=True)] or [1.0] * (2 * BINS)
        outlook = [one + other for one, other in zip(outlook[:BINS], outlook[BINS:], strict=True)]
        target_ms = [0.0, *(self.costs.target.ms(width) for width in range(1, LONGEST + 1))]
        self.horizon.solve(rate, self.costs.draft_ms(1), target_ms, outlook)

    def learn(self, emitted: Sequence[int]) -> None:
        """The tokens that really came judge every look as far as they reach, used or not."""
        for look in self.looks:
            if look.position >= len(emitted):
                break
            truth = emitted[look.position]
            self.own_rates.learn(look.key, own_prior(look.key), float(look.own == truth))
            if look.key[1] > _RELATIONS:
                self.copy_rates.learn(look.key, copy_prior(look.key), float(look.copied == truth))
        self.looks = []


def own_prior(key: _Key) -> float:
    """How often the draft model's own token is right, before anything is known."""
    confidence, relation = key
    if relation == 0:
        return _SILENT[confidence]
    return _AGREES[confidence] if relation <= _RELATIONS else _DIFFERS[confidence]


def copy_prior(key: _Key) -> float:
    """How often the copied token is right where the draft model says another one."""
    confidence, relation = key
    return _COPY_DIFFERS[relation - _RELATIONS - 1] * (1.0 - 0.5 * _SILENT[confidence])


@dataclass(slots=True)
class _Build:
    """One draft in the making."""

    chain: Chain
    model: DraftModel | None
    limit: int
    rate: float
    step: int
    probe: bool
    tokens: list[int] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    survival: list[float] = field(default_factory=list)
    q: list[Distribution | None] = field(default_factory=list)
    reached: float = 1.0
    state: int = 0
    """What the last token was like: 0 before the first, then its class of acceptance."""
    copy: Draft | None = None
    copy_start: int = 0

    def run(self) -> tuple[Draft, float]:
        """Add tokens while they pay."""
        model = self.model
        if model:
            model.open(self.step)
        while len(self.tokens) < self.limit:
            copied = self._copied()
            can_look = model is not None and len(self.tokens) < model.room
            look_gain = self._look_gain(copied) if can_look else float("-inf")
            if self.probe and can_look and not self.chain.looked:
                look_gain = float("inf")
            copy_gain = self._copy_gain(copied)
            if max(look_gain, copy_gain) <= 0.0:
                break
            if look_gain > copy_gain and model:
                if not self._look(model, copied):
                    break
            else:
                self._add(copied.tokens[0], copied.survival[0], copied.drafter, None)
        return self._finish()

    def _copied(self) -> Draft:
        """What lookup says from here on: the rest of its first proposal while the draft follows it."""
        lookup = self.chain.lookup
        if lookup is None:
            return Draft("lookup")
        n = len(self.tokens)
        if self.copy is None:
            self.copy = self.chain.proposed = lookup.propose(self.limit, self.step)
        done = n - self.copy_start
        if self.tokens[self.copy_start :] != list(self.copy.tokens[:done]) or done > len(self.copy.tokens):
            self.copy, self.copy_start, done = lookup.extend(self.tokens, self.limit - n), n, 0
        before = self.copy.survival[done - 1] if done else 1.0
        trust = self.chain.trust
        survival = tuple(
            reached / before * (1.0 if index == 0 else trust) for index, reached in enumerate(self.copy.survival[done:])
        )
        return Draft(self.copy.drafter, self.copy.tokens[done:], survival)

    def _copy_gain(self, copied: Draft) -> float:
        """The most that copying on from here can gain."""
        if self.model and copied.survival and copied.survival[0] < _SURE_COPY:
            return 0.0
        n, cost, beyond = len(self.tokens), self.chain.costs.target.ms, self.chain.horizon.beyond
        here, best, gain = cost(1 + n), 0.0, 0.0
        for more, survival in enumerate(copied.survival, start=1):
            reached = self.reached * survival
            gain += reached
            value = gain - self.rate * (cost(1 + n + more) - here)
            if self.model:
                value += beyond(n + more, reached)
            best = max(best, value)
        return best

    def _look_gain(self, copied: Draft) -> float:
        """What a look is expected to gain: the better token of two, or the knowledge to stop, for its price."""
        assert self.model is not None
        n, costs, beyond = len(self.tokens), self.chain.costs, self.chain.horizon.beyond
        price = self.rate * (costs.target.ms(2 + n) - costs.target.ms(1 + n))
        bins = self._outlook(copied)
        confirmed = self._confirmed_copy_gain(copied) if len(copied.tokens) > 1 else 0.0
        gain = 0.0
        for acceptance, differs, agrees in zip(_ACCEPTANCES, bins[:BINS], bins[BINS:], strict=True):
            reached = self.reached * acceptance
            onward = beyond(n + 1, reached)
            gain += differs * max(0.0, reached - price + onward)
            gain += agrees * max(0.0, reached - price + max(onward, confirmed * reached))
        look_ms = costs.draft_ms(1)
        catch_up = costs.draft_ms(self.model.lag) - look_ms
        # Catching up serves the steps after this one too, as far as they use the draft model.
        return gain / sum(bins) - self.rate * (look_ms + (1.0 - self.chain.usage) * catch_up)

    def _confirmed_copy_gain(self, copied: Draft) -> float:
        """What copying on behind a look that agreed gains, per unit of survival."""
        n, cost = len(self.tokens), self.chain.costs.target.ms
        reached = 0.95 * self.reached
        here, best, gain = cost(2 + n), 0.0, 0.0
        for more, survival in enumerate(copied.survival[1:], start=1):
            gain += reached * survival / copied.survival[0]
            best = max(best, gain - self.rate * (cost(2 + n + more) - here))
        return best / reached

    def _look(self, model: DraftModel, copied: Draft) -> bool:
        """Let the draft model say what it thinks, and add the likelier token; False when neither is worth it."""
        self.chain.looked = True
        self.chain.spent_ms += self.chain.costs.draft_ms(model.lag)
        own = model.look()
        key = (bisect_right(_CONFIDENCES, model.confidence()), self._relation(own, copied))
        acceptance, copy_acceptance = self.chain.own_rates.mean(key, own_prior(key)), 0.0
        if key[1] > _RELATIONS:
            copy_acceptance = self.chain.copy_rates.mean(key, copy_prior(key))
        best = max(acceptance, copy_acceptance)
        agrees = 1 <= key[1] <= _RELATIONS
        self._foresee(copied, agrees * BINS + min(BINS - 1, int(best * BINS)))
        self.chain.looks.append(_Look(len(self.tokens), own, copied.tokens[0] if copied.tokens else None, key))
        if not model.may_cut and not self._worth_adding(best):
            # What the token would have been stays unknown, and so does whether it would have been accepted.
            self.chain.looks.pop()
            return False
        if copy_acceptance > acceptance:
            self._add(copied.tokens[0], copy_acceptance, copied.drafter, None)
        else:
            token, q = model.take()
            self.chain.looks[-1].own = token
            self._add(token, acceptance, model.name, q, own=True)
        return True

    def _worth_adding(self, acceptance: float) -> bool:
        """In rejection mode a token that is drawn stays in the draft, so it is asked before."""
        n, cost = len(self.tokens), self.chain.costs.target.ms
        reached = self.reached * acceptance
        return reached + self.chain.horizon.beyond(n + 1, reached) > self.rate * (cost(2 + n) - cost(1 + n))

    def _relation(self, own: int, copied: Draft) -> int:
        """How lookup stands to the draft model's token: silent, the same, or another one, by how sure it is."""
        if not copied.tokens:
            return 0
        sure = bisect_right(_COPY_CLASSES, copied.survival[0])
        return 1 + sure + (0 if copied.tokens[0] == own else _RELATIONS)

    def _outlook(self, copied: Draft) -> list[float]:
        """How often looks in such a place have ended in each class of acceptance."""
        sure = bisect_right(_COPY_CLASSES, copied.survival[0]) + 1 if copied.tokens else 0
        bins = self.chain.outlooks.get((self.state, sure))
        if bins is None:
            center = 0.62 + 0.05 * sure
            bins = [max(0.2, 1.0 - 2.0 * abs(center - (index + 0.5) / BINS)) for index in range(BINS)] * 2
            self.chain.outlooks[self.state, sure] = bins
        return bins

    def _foresee(self, copied: Draft, seen: int) -> None:
        """Count how a look has ended; what was long ago counts less."""
        bins = self._outlook(copied)
        bins[seen] += 1.0
        if sum(bins) > _OUTLOOK_SIZE:
            bins[:] = [weight / 2 for weight in bins]

    def _add(self, token: int, acceptance: float, source: str, q: Distribution | None, own: bool = False) -> None:
        self.tokens.append(token)
        self.sources.append(source)
        self.reached *= acceptance
        self.survival.append(self.reached)
        self.q.append(q)
        self.state = 1 + min(3, int(acceptance * 4))
        if self.model and not own:
            self.model.push(token)

    def _finish(self) -> tuple[Draft, float]:
        """The part of the chain that is worth verifying."""
        cost = self.chain.costs.target.ms
        expected, best, plain = 1.0, 0, 1.0 - self.rate * cost(1)
        best_value = plain
        fixed = 0
        if self.model and not self.model.may_cut:
            fixed = max((i + 1 for i, q in enumerate(self.q) if q is not None), default=0)
        for index, reached in enumerate(self.survival):
            expected += reached
            value = expected - self.rate * cost(2 + index)
            if value > best_value or index < fixed:
                best, best_value = index + 1, value
        q = tuple(self.q[:best])
        draft = Draft(
            max(dict.fromkeys(self.sources[:best]), key=self.sources[:best].count) if best else "none",
            tuple(self.tokens[:best]),
            tuple(self.survival[:best]),
            q if any(item is not None for item in q) else None,
            tuple(self.sources[:best]),
        )
        return draft, best_value - plain
