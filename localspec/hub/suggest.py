"""Draft models for a target that is installed already: from the catalog by name, and from what is installed by header."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from localspec.engine.errors import ModelError
from localspec.engine.gguf import GgufHeader, inspect, read_header
from localspec.hub.catalog import Catalog, CatalogModel
from localspec.hub.compatible import VOCABULARY, match, may_match
from localspec.hub.resolve import InstalledModel, installed_draft

LEAST_RATIO = 2.5
"""A draft model takes a share of the target's time that it has to win back: half as large is too large."""
_MOST_OFFERED = 2
"""Models of the catalog that are named where it has no pair with the target."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A draft model for a target."""

    name: str
    """As `--draft` and `localspec pull` take it."""
    path: Path | None
    """Where it is installed; None where it is to be downloaded."""
    why: str
    """A sentence."""


def drafts_for(target: InstalledModel, found: Sequence[InstalledModel], catalog: Catalog) -> list[Suggestion]:
    """The draft models to try with `target`, the best first; none for a file that cannot be read."""
    model = catalog.model_of(target.path)
    known = _known(model, found, catalog) if model else []
    named = {suggestion.name for suggestion in known}
    others = [item for item in found if (other := catalog.model_of(item.path)) is None or other.name not in named]
    return known + _by_header(target, others)


def _known(model: CatalogModel, found: Sequence[InstalledModel], catalog: Catalog) -> list[Suggestion]:
    pairs = catalog.pairs_with(model)
    if pairs:
        return [_suggestion(pair.draft, pair.why, found, catalog) for pair in pairs]
    smaller = [
        (model.parameters / other.parameters, other)
        for other in catalog.models
        if other.vocabulary == model.vocabulary and other.parameters * LEAST_RATIO <= model.parameters
    ]
    smaller.sort(key=lambda item: item[0], reverse=True)
    return [_suggestion(other, smaller_by(ratio), found, catalog) for ratio, other in smaller[:_MOST_OFFERED]]


def _suggestion(draft: CatalogModel, why: str, found: Sequence[InstalledModel], catalog: Catalog) -> Suggestion:
    ours = installed_draft(draft, found, catalog)
    return Suggestion(draft.name, ours.path if ours else None, why)


def matching(header: GgufHeader, found: Iterable[InstalledModel]) -> list[InstalledModel]:
    """Those of the installed models that have the tokens of `header`, which was read with `keep=VOCABULARY`, the smallest
    first; the larger of the two would be the target."""
    ours = sorted(found, key=lambda item: item.bytes)
    return [item for item in ours if _is_candidate(header, item.path) and _matches(header, item)]


def _by_header(target: InstalledModel, found: Sequence[InstalledModel]) -> list[Suggestion]:
    """Installed models that are small enough and have the tokens of the target, the smallest first."""
    smaller = [item for item in found if item.bytes * LEAST_RATIO <= target.bytes and item.path != target.path]
    try:
        header = inspect(target.path)
        candidates = [item for item in smaller if _is_candidate(header, item.path)]
        matches = matching(read_header(target.path, keep=VOCABULARY), candidates) if candidates else []
    except ModelError:
        return []
    return [Suggestion(item.name, item.path, smaller_by(target.bytes / item.bytes)) for item in matches]


def smaller_by(ratio: float) -> str:
    """Why a model of the same vocabulary is suggested, where nothing more is known of it."""
    return f"{ratio:.0f} times smaller with the same tokens."


def _is_candidate(target: GgufHeader, path: Path) -> bool:
    try:
        return may_match(target, inspect(path))
    except ModelError:
        return False


def _matches(header: GgufHeader, item: InstalledModel) -> bool:
    try:
        match(header, read_header(item.path, keep=VOCABULARY))
    except ModelError:
        return False
    return True
