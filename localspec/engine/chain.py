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
from localspec.engine.copy_length import best_length, lengths
from localspec.engine.copying import Copy
from localspec.engine.costs import Costs
from localspec.engine.distribution import Distribution
from localspec.engine.drafters.base import Copier, Draft
from localspec.engine.drafters.draft_model import DraftModel
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
_TRUST_WEIGHT, _TRUST_CARRIED = 16.0, 0.3
"""How far long copies are trusted before an answer has shown how far they carry: the tokens that this weighs like, and how
much the answers before it count."""
_DOCUMENT, _TRUST_AT_FIRST, _TRUST_WITHOUT_DOCUMENT = 250, 0.5, -1.0
"""A text of so many tokens has something to copy from, and copies are half trusted. In a shorter one long ones are silent
until they would have carried far: where only long copies pay, each one that fails costs a hundredth of some answers."""
_CONFIRMED = 0.95
"""How likely a copied token is that the draft model has said too."""
_SURE_COPY = 0.85
"""Without a look only copies that are at least this sure are taken."""
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
    lookup: Copier | None
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
    uncopied: float = 1.0
    """Tokens per plain step where there is nothing to copy."""
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
        has_document = self.lookup is not None and len(self.lookup.stream) >= _DOCUMENT
        first = _TRUST_AT_FIRST if has_document else _TRUST_WITHOUT_DOCUMENT
        self.copied = first * _TRUST_WEIGHT + _TRUST_CARRIED * self.copied
        self.promised = _TRUST_WEIGHT + _TRUST_CARRIED * self.promised
        self.run = None

    def follow(self, emitted: Sequence[int]) -> None:
        """Watch how far a copy would have carried, used or not; then look at the next one."""
        if self.lookup is not None and self.lookup.calibrated:
            return
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
        return max(0.0, min(1.0, self.copied / self.promised))

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
    copy: Copy | None = None
    planned: int = 0
    """Tokens at the beginning that are copied from a document at once, without a look."""
    planned_gain: float = 0.0

    def run(self) -> tuple[Draft, float]:
        """Add tokens while they pay."""
        model, stride = self.model, 1
        if model:
            model.open(self.step)
        while len(self.tokens) < self.limit:
            copy = self._copied()
            copy_gain, length = self._copy_gain(copy)
            can_look = model is not None and len(self.tokens) < model.room
            look_gain = self._look_gain(copy) if can_look else float("-inf")
            if self.probe and can_look and not self.chain.looked:
                look_gain = float("inf")
            if max(look_gain, copy_gain) <= 0.0:
                break
            if look_gain > copy_gain and model:
                stride = 1
                if not self.tokens:
                    self.planned = 0
                if not self._look(model, copy):
                    break
            else:
                # Where copying on is best, it is so for many tokens: whether to look is asked ever more rarely.
                if self.planned and copy:
                    self._copy_planned(copy)
                    continue
                self._copy_on(copy, min(length, stride) if can_look else length)
                stride *= 2
        return self._finish()

    def _copied(self) -> Copy | None:
        """What lookup says from here on: the rest of its first proposal while the draft follows it."""
        lookup, n = self.chain.lookup, len(self.tokens)
        if self.copy is None and lookup:
            if n == 0:
                draft = self.chain.proposed = lookup.propose(self.limit, self.step)
            else:
                draft = lookup.extend(self.tokens, self.limit - n)
            self.copy = Copy(draft, n, 1.0 if lookup.calibrated else self.chain.trust)
        return self.copy if self.copy and self.copy.left else None

    def _copy_on(self, copy: Copy | None, length: int) -> None:
        """Copy up to `length` tokens, as long as they are sure enough to be taken without a look."""
        for count in range(length):
            if copy is None or (count and self.model and copy.acceptance < _SURE_COPY):
                return
            self._add(copy.token, copy.acceptance, copy.draft.drafter, None)

    def _copy_gain(self, copy: Copy | None) -> tuple[float, int]:
        """The most that copying on from here can gain, and by how many tokens."""
        if copy is None or (self.model and copy.acceptance < _SURE_COPY):
            return 0.0, 0
        if self.chain.lookup and self.chain.lookup.calibrated and not (self.chain.looked or copy.start):
            return self._plan(copy)
        beyond = self.chain.horizon.beyond if self.model else None
        return copy.gain(self.reached, self.rate, self.chain.costs.target.ms, beyond)

    def _plan(self, copy: Copy) -> tuple[float, int]:
        """How much of a copy of a document to take, decided once."""
        if self.tokens:
            return 0.0, 0
        costs = self.chain.costs
        plain, target_ms = costs.plain_ms, costs.target.ms
        price = self.chain.uncopied / plain
        extra = {length: price * (target_ms(1 + length) - plain) for length in lengths(copy.left)}
        self.planned, self.planned_gain = best_length(copy.draft.survival, extra)
        return self.planned_gain, self.planned

    def _copy_planned(self, copy: Copy) -> None:
        """Take what was decided to be taken."""
        length, draft = self.planned, copy.draft
        self.tokens += draft.tokens[:length]
        self.sources += [draft.drafter] * length
        self.survival += draft.survival[:length]
        self.q += [None] * length
        self.reached = draft.survival[length - 1]
        copy.done = length
        self.state = 1 + min(3, int(4 * self.reached / draft.survival[length - 2])) if length > 1 else 1
        if self.model:
            for token in draft.tokens[:length]:
                self.model.push(token)

    def _look_gain(self, copy: Copy | None) -> float:
        """What a look is expected to gain: the better token of two, or the knowledge to stop, for its price."""
        assert self.model is not None
        n, costs = len(self.tokens), self.chain.costs
        price = self.rate * (costs.target.ms(2 + n) - costs.target.ms(1 + n))
        bins = self._outlook(copy)
        confirmed = 0.0
        if copy and copy.left > 1:
            after = _CONFIRMED * self.reached
            confirmed = copy.confirmed_gain(after, self.rate, costs.target.ms) / after
        gain = 0.0
        for index, (acceptance, onward) in enumerate(self.chain.horizon.after_look(n + 1, self.reached)):
            differs = acceptance - price + onward
            if differs > 0.0:
                gain += bins[index] * differs
            agrees = differs + max(0.0, confirmed * acceptance - onward)
            if agrees > 0.0:
                gain += bins[BINS + index] * agrees
        look_ms = costs.draft_ms(1)
        catch_up = costs.draft_ms(self.model.lag) - look_ms
        # Catching up serves the steps after this one too, as far as they use the draft model.
        return gain / sum(bins) - self.rate * (look_ms + (1.0 - self.chain.usage) * catch_up)

    def _look(self, model: DraftModel, copy: Copy | None) -> bool:
        """Let the draft model say what it thinks, and add the likelier token; False when neither is worth it."""
        self.chain.looked = True
        self.chain.spent_ms += self.chain.costs.draft_ms(model.lag)
        own = model.look()
        key = (bisect_right(_CONFIDENCES, model.confidence()), self._relation(own, copy))
        acceptance, copy_acceptance = self.chain.own_rates.mean(key, own_prior(key)), 0.0
        if key[1] > _RELATIONS:
            copy_acceptance = self.chain.copy_rates.mean(key, copy_prior(key))
        best = max(acceptance, copy_acceptance)
        agrees = 1 <= key[1] <= _RELATIONS
        self._foresee(copy, agrees * BINS + min(BINS - 1, int(best * BINS)))
        self.chain.looks.append(_Look(len(self.tokens), own, copy.token if copy else None, key))
        if not model.may_cut and not self._worth_adding(best):
            # What the token would have been stays unknown, and so does whether it would have been accepted.
            self.chain.looks.pop()
            return False
        if copy and copy_acceptance > acceptance:
            self._add(copy.token, copy_acceptance, copy.draft.drafter, None)
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

    def _relation(self, own: int, copy: Copy | None) -> int:
        """How lookup stands to the draft model's token: silent, the same, or another one, by how sure it is."""
        if copy is None:
            return 0
        sure = bisect_right(_COPY_CLASSES, copy.acceptance)
        return 1 + sure + (0 if copy.token == own else _RELATIONS)

    def _outlook(self, copy: Copy | None) -> list[float]:
        """How often looks in such a place have ended in each class of acceptance."""
        sure = bisect_right(_COPY_CLASSES, copy.acceptance) + 1 if copy else 0
        bins = self.chain.outlooks.get((self.state, sure))
        if bins is None:
            center = 0.62 + 0.05 * sure
            bins = [max(0.2, 1.0 - 2.0 * abs(center - (index + 0.5) / BINS)) for index in range(BINS)] * 2
            self.chain.outlooks[self.state, sure] = bins
        return bins

    def _foresee(self, copy: Copy | None, seen: int) -> None:
        """Count how a look has ended; what was long ago counts less."""
        bins = self._outlook(copy)
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
        if self.copy and not self.copy.follow(token):
            self.copy = None
        if self.model and not own:
            self.model.push(token)

    def _finish(self) -> tuple[Draft, float]:
        """The part of the chain that is worth verifying."""
        cost = self.chain.costs.target.ms
        expected, best, plain = 1.0, 0, 1.0 - self.rate * cost(1)
        best_value = plain
        fixed = self.planned
        if self.model and not self.model.may_cut:
            fixed = max((fixed, *(i + 1 for i, q in enumerate(self.q) if q is not None)))
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
        # What time is worth to a copy of a document is not what it is worth here.
        planned = self.planned_gain * self.rate * self.chain.costs.plain_ms if self.planned else 0.0
        return draft, max(best_value - plain, planned)
