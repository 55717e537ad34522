"""Which files a run uses: from the settings to the target and the draft model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from localspec.engine.errors import UserError
from localspec.hub.catalog import Catalog
from localspec.hub.resolve import default_model, pair_meant, paired_draft, resolve
from localspec.settings import Settings


@dataclass(frozen=True, slots=True)
class Meant:
    """The files of a pair."""

    target: Path | None
    """None where no model is named and none is installed."""
    draft: Path | None
    missing: str = ""
    """Why there is no draft model although the pair has one: a sentence, or empty."""


def meant(settings: Settings, models: Path, catalog: Callable[[], Catalog]) -> Meant:
    """What is to be loaded from the folder `models` or elsewhere. The name of a pair alone brings its draft model along,
    where that is installed. Raises UserError."""
    missing = ""
    draft = resolve(settings.draft, models, catalog) if settings.draft and settings.draft != "none" else None
    if not settings.draft and settings.model and settings.drafter in ("auto", "draft"):
        draft = paired_draft(settings.model, models, catalog)
        missing = "" if draft else _missing_draft(settings.model, models, catalog)
    if settings.drafter == "draft" and draft is None:
        # Said before gigabytes are loaded in vain.
        remedy = missing or "name one with --draft, or choose --drafter lookup."
        raise UserError(f"There is no draft model to draft with; {remedy}")
    target = resolve(settings.model, models, catalog) if settings.model else default_model(models)
    return Meant(target, draft, missing)


def _missing_draft(model: str, models: Path, catalog: Callable[[], Catalog]) -> str:
    """Where `model` is a pair of which only the target is installed: the sentence that says so."""
    pair = pair_meant(model, models, catalog)
    if pair is None:
        return ""
    return f"{pair.draft.name}, which drafts for {pair.name}, is not installed; localspec pull {pair.name} gets it."
