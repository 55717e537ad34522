"""Ways of drafting an edit, by the names they have on the command line."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from localspec.engine import policy
from localspec.engine.chain import Chain
from localspec.engine.costs import Costs
from localspec.engine.drafters.base import Copier, Drafter
from localspec.engine.drafters.lookup import LONGEST_DRAFT, Lookup
from localspec.engine.drafters.place import PlaceLookup
from localspec.engine.errors import UserError
from localspec.engine.fixed import Fixed
from localspec.measure.baselines import BestSuffix, Copying, LongestMatch, PromptLookup, Rule
from localspec.measure.edit_parts import PARTS, MakePlace
from localspec.measure.edit_replay import EditAnswer, EditArm, Piece, Way
from localspec.measure.realign import Realignment

PLAIN, PLACE, VOTES, SUFFIX, DIFF, DISTANCE = "plain", "place", "votes", "suffix", "myers", "levenshtein"

C = TypeVar("C", bound=Copier)


class _Plain:
    def begin(self, edit: EditAnswer) -> tuple[policy.Chooser, Sequence[Drafter]]:
        return Fixed(), ()


@dataclass(slots=True)
class _Following:
    """A published rule, which copies from the text so far and knows nothing else."""

    make: Callable[[], Rule]

    def begin(self, edit: EditAnswer) -> tuple[policy.Chooser, Sequence[Drafter]]:
        rule = self.make()
        rule.follow(edit.prompt.tolist())
        return Copying(rule), ()


class _Weighing(Generic[C]):
    """The engine's own policy over some way of copying."""

    def __init__(self, costs: Costs, copier: C, read: Callable[[C, EditAnswer], None]) -> None:
        """`copier`: what the chain asks for copies. `read`: has it follow a prompt."""
        self._copier, self._read = copier, read
        self._session = policy.Session(Chain(costs, copier, None))

    def begin(self, edit: EditAnswer) -> tuple[policy.Chooser, Sequence[Drafter]]:
        """An answer in the session so far."""
        self._read(self._copier, edit)
        return policy.Policy(self._session, LONGEST_DRAFT), (self._copier,)


def _read_as_text(lookup: Lookup, edit: EditAnswer) -> None:
    """Without a word on which part of the prompt is a document."""
    lookup.rewind(0)
    lookup.observe(edit.prompt.tolist())


def _read_as_source(realignment: Realignment, edit: EditAnswer) -> None:
    prompt, (start, stop) = edit.prompt.tolist(), edit.document
    realignment.begin(prompt, prompt[start:stop])


def _read_as_document(lookup: PlaceLookup, edit: EditAnswer) -> None:
    lookup.rewind(0)
    lookup.observe(edit.prompt.tolist())
    lookup.begin((edit.document,), rewrites=True)


def _weighing(make: Callable[[Piece], C], read: Callable[[C, EditAnswer], None]) -> Callable[[Costs, Piece], Way]:
    return lambda costs, piece: _Weighing(costs, make(piece), read)


def _placing(name: str, make: MakePlace, learns: bool = True) -> EditArm:
    return EditArm(
        name,
        learns,
        _weighing(lambda piece: make(piece, None), _read_as_document),
        _weighing(lambda piece: make(piece, {}), _read_as_document),
    )


def _following(rule: Callable[[], Rule]) -> Callable[[Costs, Piece], Way]:
    return lambda _costs, _piece: _Following(rule)


_ARMS = (
    EditArm(PLAIN, False, lambda _costs, _piece: _Plain()),
    EditArm("lookup:n3k10", False, _following(lambda: PromptLookup(3, 10))),
    EditArm("longest5", False, _following(LongestMatch)),
    EditArm(SUFFIX, False, _following(BestSuffix)),
    EditArm(VOTES, True, _weighing(lambda _piece: Lookup(), _read_as_text)),
    EditArm(DIFF, True, _weighing(lambda _piece: Realignment(2), _read_as_source)),
    EditArm(DISTANCE, True, _weighing(lambda _piece: Realignment(1), _read_as_source)),
    _placing(PLACE, PlaceLookup),
)
_NOTHING_BEFOREHAND = _placing("no-priors", lambda piece, _priors: PlaceLookup(piece, {}), learns=False)
_PARTS = (*(_placing(name, make) for name, make in PARTS.items()), _NOTHING_BEFOREHAND)
"""`place` with a part left out."""
EDIT_ARMS = {arm.name: arm for arm in (*_ARMS, *_PARTS)}
"""By name."""


def chosen_edit_arms(names: str | None) -> tuple[EditArm, ...]:
    """Arms from their names, separated by commas, each once; for None all but those with a part left out. Raises UserError
    for a name that is none."""
    if names is None:
        return _ARMS
    wanted = dict.fromkeys(name.strip().lower() for name in names.split(",") if name.strip())
    for name in wanted:
        if name not in EDIT_ARMS:
            raise UserError(f"There is no arm {name} for edits; the arms are {', '.join(EDIT_ARMS)}.")
    return tuple(EDIT_ARMS[name] for name in dict.fromkeys([PLAIN, *wanted]))
