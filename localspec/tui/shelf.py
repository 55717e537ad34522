"""What there is to choose from: the models that are installed, and the pairs of the catalog. Knows no widgets.

Reading it takes a moment, since it looks into every file, and is done on a thread; what it needs of the hub is imported
there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from localspec.chat.attach import is_file
from localspec.engine.errors import ModelError

if TYPE_CHECKING:
    from localspec.engine.gguf import GgufHeader
    from localspec.hub.catalog import Catalog, CatalogModel
    from localspec.hub.fit import Verdict
    from localspec.hub.machine import Machine
    from localspec.hub.offers import Choice, Offer
    from localspec.hub.resolve import InstalledModel
    from localspec.hub.suggest import Suggestion
    from localspec.settings import Folders

UNKNOWN = "…"
"""Stands for a verdict that is being found."""


class Kind(Enum):
    """What a row stands for."""

    INSTALLED = "installed"
    PAIR = "pair"
    REFERENCE = "reference"
    FILE = "file"


@dataclass(frozen=True)
class Row:
    """Something to choose."""

    kind: Kind
    name: str
    bytes: int = 0
    """Size of the files; of a pair that is not here, what is to be downloaded."""
    fit: str = UNKNOWN
    fits: bool = True
    is_here: bool = True
    path: Path | None = None
    """Of an installed model, its file."""
    reference: str = ""
    """What settings call it, where that is not its name."""
    draft: str | None = None
    """The draft model that goes with it: a name, "none", or None for the one of the pair."""
    facts: tuple[tuple[str, str], ...] = ()
    """What there is to know: a word and a text each."""
    short: str = ""
    """The same in a few words."""

    @property
    def id(self) -> str:
        """The same after everything was read anew."""
        return f"{self.kind.value}:{self.name}"

    @property
    def model(self) -> str:
        """What settings call it."""
        return self.reference or self.name


@dataclass(frozen=True)
class Shelf:
    """All rows, and the machine that they were judged for."""

    rows: tuple[Row, ...]
    machine: str = ""
    """In words; empty where it is not known."""
    problem: str = ""
    """Why a person's own catalog is missing: a sentence."""

    def find(self, name: str) -> Row | None:
        """The row of exactly this name, installed ones first, in any case."""
        return next((row for row in self.rows if row.name.casefold() == name.casefold()), None)


class ShelfReader:
    """Reads the shelf in two steps: what there is, at once, and how it fits this machine."""

    def __init__(self, folders: Folders, used: Sequence[Path] = ()) -> None:
        """`used`: files outside the models folder that are to be seen, too."""
        from localspec.hub.catalog import usable_catalog
        from localspec.hub.catalog_file import USER_CATALOG
        from localspec.hub.resolve import installed, installed_at

        self.catalog: Catalog = usable_catalog(folders.config / USER_CATALOG)
        self._folder = folders.models
        found = installed(folders.models)
        others = [installed_at(path) for path in used if is_file(path) and path.parent != folders.models]
        self._found: list[InstalledModel] = [*found, *others]

    def list(self) -> Shelf:
        """The names and sizes."""
        rows = [self._row(item) for item in self._found]
        pairs = [
            Row(Kind.PAIR, pair.name, 0, is_here=False, facts=_pair_facts(pair.target, pair.draft.name, pair.why))
            for pair in self.catalog.pairs
        ]
        return Shelf((*rows, *pairs), problem=self.catalog.problem)

    def judge(self, machine: Machine) -> Shelf:
        """The same with the verdicts for a machine, and draft models for what is installed."""
        from localspec.hub.offers import offers

        rows = [self._installed_row(item, machine) for item in self._found]
        pairs = [_pair_row(offer) for offer in offers(self.catalog, self._found, machine)]
        return Shelf((*rows, *pairs), _machine_words(machine), self.catalog.problem)

    def _row(self, item: InstalledModel) -> Row:
        return Row(Kind.INSTALLED, item.name, item.bytes, path=item.path, reference=self._reference(item.path))

    def _reference(self, path: Path) -> str:
        """Outside the models folder only the path will do."""
        return "" if path.parent == self._folder else str(path)

    def _installed_row(self, item: InstalledModel, machine: Machine) -> Row:
        from localspec.engine.gguf import inspect
        from localspec.hub.fit import Sized, verdict
        from localspec.hub.shape import shape_of
        from localspec.hub.suggest import drafts_for

        known = self.catalog.model_of(item.path)
        row = replace(self._row(item), draft="none")
        try:
            header = inspect(item.path)
            found = verdict(Sized(shape_of(header), item.bytes), None, machine)
        except ModelError as error:
            return replace(row, fit="cannot be used", fits=False, facts=(("problem", str(error)),))
        drafts = drafts_for(item, self._found, self.catalog)
        ready = next((draft for draft in drafts if draft.path), None)
        facts = [
            *_header_facts(header, known),
            *_draft_facts(drafts),
            ("memory", _memory(found)),
            ("file", str(item.path)),
        ]
        return replace(
            row,
            fit=found.text,
            fits=found.fits,
            draft=self._reference(ready.path) or ready.path.stem if ready and ready.path else "none",
            facts=tuple(facts),
            short=known.good_at if known else header.architecture,
        )


def size(count: int) -> str:
    """Bytes for people."""
    return f"{count / 1e9:.1f} GB" if count >= 999_500_000 else f"{count / 1e6:.0f} MB"


def _pair_row(offer: Offer) -> Row:
    target = offer.target.model
    facts = [*_pair_facts(target, offer.pair.draft.name, offer.pair.why), ("memory", _memory(offer.verdict))]
    facts += [("target", _choice(offer.target)), ("draft model", _choice(offer.draft))]
    missing = offer.missing_bytes
    return Row(
        Kind.PAIR,
        offer.pair.name,
        missing or offer.target.bytes + offer.draft.bytes,
        offer.verdict.text,
        offer.verdict.fits,
        is_here=offer.is_installed,
        facts=tuple(facts),
        short=target.good_at,
    )


def _pair_facts(target: CatalogModel, draft: str, why: str) -> tuple[tuple[str, str], ...]:
    facts = [
        ("good at", target.good_at),
        ("why this draft", f"{draft}: {why}"),
        ("license", target.license + (", to be accepted on the hub first" if target.gated else "")),
        ("languages", target.languages),
        ("context", f"{target.context_length:,} tokens"),
    ]
    if target.unchecked:
        facts.append(("not checked", ", ".join(target.unchecked)))
    return tuple((word, text) for word, text in facts if text)


def _header_facts(header: GgufHeader, known: CatalogModel | None) -> list[tuple[str, str]]:
    facts = [("good at", known.good_at), ("license", known.license), ("languages", known.languages)] if known else []
    facts.append(("architecture", header.architecture))
    if header.context_length:
        facts.append(("context", f"{header.context_length:,} tokens"))
    return [(word, text) for word, text in facts if text]


def _draft_facts(drafts: Sequence[Suggestion]) -> list[tuple[str, str]]:
    if not drafts:
        return [("draft model", "none that is known: lookup drafts alone")]
    best = next((draft for draft in drafts if draft.path), drafts[0])
    state = "" if best.path else ", to be downloaded"
    return [("draft model", f"{best.name}{state}: {best.why}")]


def _choice(choice: Choice) -> str:
    state = "installed" if choice.installed else f"from {choice.model.repository}"
    return f"{choice.model.name} {choice.quantization}, {size(choice.bytes)}, {state}".replace("  ", " ")


def _memory(found: Verdict) -> str:
    return f"{size(found.bytes)} with a context of {found.context:,} tokens"


def _machine_words(machine: Machine) -> str:
    words = f"{size(machine.memory)} free"
    if machine.has_gpu:
        words += f", {size(machine.gpu)} {'of it ' if machine.unified else ''}for the GPU"
    return words
