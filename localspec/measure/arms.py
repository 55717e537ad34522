"""Arms of a comparison: ways of choosing drafts, by the names they have on the command line."""

import re
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from enum import Enum

from localspec.engine import policy
from localspec.engine.chain import Chain
from localspec.engine.drafters.base import Draft
from localspec.engine.drafters.draft_model import DraftModel
from localspec.engine.drafters.lookup import LONGEST_DRAFT, Lookup
from localspec.engine.drafters.place import PlaceLookup
from localspec.engine.engine import DEFAULT_LENGTHS
from localspec.engine.errors import UserError
from localspec.engine.fixed import Fixed
from localspec.engine.step import Decision
from localspec.measure.baselines import BestSuffix, Copying, LongestMatch, PromptLookup, Rule
from localspec.measure.replay import MakeChooser

PLAIN, AUTO = "plain", "auto"
KNOWN = (PLAIN, AUTO, "draft:K", "lookup", "lookup:nNkK", "longest5", "suffix", "first")

_FIRST_LOOKUP, _FIRST_DRAFT = (3, 10), 3
_LONGEST_NGRAM = 16


class Kind(Enum):
    """What an arm is in a comparison."""

    PLAIN = "plain"
    ADAPTIVE = "adaptive"
    """Weighs costs and learns from answer to answer."""
    FIXED = "fixed"
    """Always the same drafter and the same length, or two of them in a fixed order."""
    RULE = "rule"
    """A published rule of when to copy, and how much."""


@dataclass(frozen=True, slots=True)
class Arm:
    """One way of choosing drafts."""

    name: str
    kind: Kind
    needs_draft: bool
    start: Callable[[], MakeChooser]
    """A run of the arm that knows nothing yet. What it learns stays its own: no arm profits from another one that has
    written the same text before it."""


def parse_arms(names: str, longest: int | None = None) -> list[Arm]:
    """Arms from their names, separated by commas, each once; `plain` comes first, named or not.

    `longest`: longest draft of the arms that choose it themselves; None for the engine's own. Raises UserError for a name
    that is none.
    """
    wanted = [name.strip().lower() for name in names.split(",") if name.strip()]
    length = DEFAULT_LENGTHS["auto"] if longest is None else longest
    return [_arm(name, length) for name in dict.fromkeys([PLAIN, *wanted])]


def _arm(name: str, longest: int) -> Arm:
    simple: dict[str, Callable[[], Arm]] = {
        PLAIN: lambda: Arm(name, Kind.PLAIN, False, lambda: lambda _session: Fixed()),
        AUTO: lambda: Arm(name, Kind.ADAPTIVE, False, lambda: _Learning(longest, with_model=True)),
        "lookup": lambda: Arm(name, Kind.ADAPTIVE, False, lambda: _Learning(longest, with_model=False)),
        "longest5": lambda: _copying(name, Kind.RULE, LongestMatch),
        "suffix": lambda: _copying(name, Kind.RULE, BestSuffix),
        "first": lambda: _copying(name, Kind.FIXED, lambda: PromptLookup(*_FIRST_LOOKUP), _FIRST_DRAFT),
    }
    if name in simple:
        return simple[name]()
    if found := re.fullmatch(r"draft:(\d+)", name):
        length = _whole(name, found[1], LONGEST_DRAFT)
        return Arm(name, Kind.FIXED, True, lambda: lambda session: Fixed(_model(session), length))
    if found := re.fullmatch(r"lookup:n(\d+)k(\d+)", name):
        ngram, copied = _whole(name, found[1], _LONGEST_NGRAM), _whole(name, found[2], LONGEST_DRAFT)
        return _copying(name, Kind.FIXED, lambda: PromptLookup(ngram, copied))
    raise UserError(f"There is no arm {name}; the arms are {', '.join(KNOWN[:-1])} and {KNOWN[-1]}.")


def _whole(name: str, digits: str, most: int) -> int:
    # A number of many digits need not be read to be too large.
    value = int(digits) if len(digits) < 4 else most + 1
    if not 1 <= value <= most:
        raise UserError(f"The arm {name} makes no sense: give a number from 1 to {most} in the place of {digits}.")
    return value


def _copying(name: str, kind: Kind, rule: Callable[[], Rule], draft_length: int = 0) -> Arm:
    def make(session: policy.Session) -> policy.Chooser:
        followed = rule()
        followed.follow(_stream(session))
        return Copying(followed, _model(session) if draft_length else None, draft_length)

    return Arm(name, kind, draft_length > 0, lambda: make)


class _Learning:
    """The engine's own policy, with a memory of its own that lasts from answer to answer."""

    def __init__(self, longest: int, with_model: bool) -> None:
        self._longest, self._with_model = longest, with_model
        self._memory: policy.Session | None = None
        self._lookup: Lookup | PlaceLookup = Lookup()

    def __call__(self, session: policy.Session) -> policy.Chooser:
        chain = session.chain
        theirs = chain.lookup if isinstance(chain.lookup, PlaceLookup) else None
        if self._memory is None:
            if theirs:
                self._lookup = theirs.untaught()
            model = chain.model if self._with_model else None
            self._memory = policy.Session(Chain(deepcopy(chain.costs), self._lookup, model))
        self._lookup.rewind(0)
        self._lookup.observe(_stream(session))
        if theirs and isinstance(self._lookup, PlaceLookup):
            self._lookup.begin(theirs.documents)
        return _Own(policy.Policy(self._memory, self._longest), self._lookup)


class _Own:
    """A policy whose lookup is not the engine's, and has to be told what was emitted."""

    def __init__(self, chooser: policy.Policy, lookup: Lookup | PlaceLookup) -> None:
        self._chooser, self._lookup = chooser, lookup
        self.decision: Decision | None = None

    def choose(self, room: int, step: int) -> Draft:
        draft = self._chooser.choose(room, step)
        self.decision = self._chooser.decision
        return draft

    def learn(self, emitted: Sequence[int], draft: Draft, width: int, verify_ms: float, draft_ms: float) -> None:
        # In the loop's order: drafters see the tokens before the policy does.
        self._lookup.observe(emitted)
        self._chooser.learn(emitted, draft, width, verify_ms, draft_ms)


def _stream(session: policy.Session) -> Sequence[int]:
    if session.chain.lookup is None:
        raise ValueError("an arm reads the text from the session's lookup, and this session has none")
    return session.chain.lookup.stream


def _model(session: policy.Session) -> DraftModel:
    if session.chain.model is None:
        raise ValueError("this arm needs a draft model, and the session has none")
    return session.chain.model
