"""Which drafter, how many tokens: the most expected tokens per second, plain decoding included.

A step that takes time T and is expected to emit N tokens is worth N - rate * T, where `rate` is what this answer has been
reaching: a step is good if it beats spending its time the usual way (Dinkelbach's form of maximizing a ratio). Plain
decoding, a copy by lookup and a draft by the draft model are weighed like that at every step. While the draft model is at
work the same question decides before each of its tokens whether to go on (optimal stopping).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from localspec.engine.chain import Chain
from localspec.engine.drafters.base import Draft
from localspec.engine.step import NO_DRAFTER, Decision

CHOICES = ("auto", "draft", "lookup", "none")

_MARGIN = 0.02
"""Speculation has to promise this share of a plain step more than plain decoding does."""
_MEMORY = 0.998
"""How much of the rate so far is kept per step: the rate is that of the session, not of the moment."""
_FIRST_STEPS = 8.0
"""Plain steps that the rate begins with."""
_LEAST_PLAIN_STEPS = 1e-3
"""A clock that stands still makes no session infinitely fast."""
_FIRST_PROBE, _RAREST_PROBE = 16, 256
"""Steps without a look after which the draft model is asked again; twice as many after each probe that came to nothing."""
_LONGEST_TIMED = 33
_PROBE_TAX = 0.01
_WORTH_MEMORY = 0.985
_FIRST_RETIME, _RAREST_RETIME = 8, 96
"""Steps without a plain one after which plain decoding is timed again: soon at first, then ever more rarely."""


class Chooser(Protocol):
    """What the loop asks before a step, and tells after it."""

    decision: Decision | None

    def choose(self, room: int, step: int) -> Draft:
        """The draft of this step, of at most `room` tokens; empty for plain decoding."""

    def learn(self, emitted: Sequence[int], draft: Draft, width: int, verify_ms: float, draft_ms: float) -> None:
        """What became of it."""


@dataclass(slots=True)
class Session:
    """What `auto` remembers from answer to answer."""

    chain: Chain
    tokens: float = _FIRST_STEPS
    plain_steps: float = _FIRST_STEPS
    """Time, in plain steps."""
    probe_gap: int = _FIRST_PROBE
    idle: int = 0
    """Steps since the draft model was last asked."""
    since_plain: int = 0
    retime_gap: int = _FIRST_RETIME
    worth: float = 0.15
    """What asking the draft model has won per step of late, in plain steps; below 0 it is asked only now and then."""

    @property
    def rate(self) -> float:
        """Tokens per millisecond that this session reaches, never less than plain decoding gives."""
        return max(1.0, self.tokens / max(self.plain_steps, _LEAST_PLAIN_STEPS)) / self.chain.costs.plain_ms


@dataclass(slots=True)
class Policy:
    """The chooser of `auto`, for one answer."""

    session: Session
    draft_max: int
    decision: Decision | None = None
    _probing: bool = False

    def __post_init__(self) -> None:
        self.session.chain.begin()

    def choose(self, room: int, step: int) -> Draft:
        """The step with the most expected tokens for its time."""
        session, limit = self.session, min(room, self.draft_max)
        chain, rate = session.chain, session.rate
        chain.rest()
        self._probing = False
        if limit <= 0:
            return self._plain("there is no room for a draft")
        if session.since_plain >= session.retime_gap:
            session.retime_gap = min(_RAREST_RETIME, 2 * session.retime_gap)
            return self._plain("plain decoding is timed again")
        if chain.costs.target.plain_is_stale:
            return self._plain("plain decoding is timed again")
        self._probing = self._probe_is_due()
        draft, gain = chain.build(limit, rate, step, self._probing, self._probing or session.worth > 0.0)
        session.idle = 0 if chain.looked else session.idle + 1
        # What was drawn to be judged by rejection stays: dropping it for what came of it would bias the text.
        may_drop = draft.q is None
        if not draft.tokens or (may_drop and gain <= _MARGIN * rate * chain.costs.plain_ms):
            return self._plain(self._why_not())
        self.decision = self._explain(draft)
        return draft

    def learn(self, emitted: Sequence[int], draft: Draft, width: int, verify_ms: float, draft_ms: float) -> None:
        """Follow the rate, the costs and the acceptance."""
        session, costs = self.session, self.session.chain.costs
        session.chain.learn(emitted)
        session.chain.follow(emitted)
        costs.target.observe(width, verify_ms)
        if session.chain.looked and session.chain.model and costs.draft:
            for tokens, ms in session.chain.model.passes:
                # A long catch-up is several passes, and says little about the next.
                if tokens <= _LONGEST_TIMED:
                    costs.draft.observe(tokens, ms)
        session.since_plain = 0 if width == 1 else session.since_plain + 1
        session.tokens = session.tokens * _MEMORY + len(emitted)
        session.plain_steps = session.plain_steps * _MEMORY + (verify_ms + draft_ms) / costs.plain_ms
        if session.chain.looked:
            won = len(emitted) - (verify_ms + draft_ms) / costs.plain_ms
            session.worth = _WORTH_MEMORY * session.worth + (1.0 - _WORTH_MEMORY) * won
        if self._probing:
            paid = bool(draft.tokens) and len(emitted) > 1
            session.probe_gap = _FIRST_PROBE if paid else min(_RAREST_PROBE, 2 * session.probe_gap)

    def _probe_is_due(self) -> bool:
        """Whether to ask a draft model that has not been worth it: rarely, and never at more than a small share of the time
        since it was last asked."""
        session, chain = self.session, self.session.chain
        if chain.model is None or session.idle < session.probe_gap:
            return False
        price = chain.costs.draft_ms(chain.model.lag)
        return price <= _PROBE_TAX * session.idle * chain.costs.plain_ms

    def _plain(self, reason: str) -> Draft:
        rate = 1000.0 / self.session.chain.costs.plain_ms
        self.decision = Decision(NO_DRAFTER, 0, rate, rate, reason)
        return Draft(NO_DRAFTER)

    def _explain(self, draft: Draft) -> Decision:
        costs, length = self.session.chain.costs, len(draft.tokens)
        time = self.session.chain.spent_ms + costs.target.ms(1 + length)
        promised = 1000.0 * (1.0 + sum(draft.survival)) / time
        return Decision(draft.drafter, length, 1000.0 / costs.plain_ms, promised)

    def _why_not(self) -> str:
        chain = self.session.chain
        return _too_little(round(100 * (chain.costs.target.ms(2) / chain.costs.plain_ms - 1.0)), chain.model is None)


@lru_cache
def _too_little(needed: int, alone: bool) -> str:
    """Why nothing was drafted where the second token of a pass costs `needed` per cent of a plain step."""
    if alone:
        return f"nothing in the text so far is {needed}% likely to be repeated, which a longer pass costs here"
    return f"no token is likely enough: one more in a pass costs {needed}% of a plain step here, besides drafting it"
