"""From settings to a loaded engine and the options of an answer."""

import math
from collections.abc import Callable, Mapping
from pathlib import Path

from localspec.console import Progress
from localspec.engine.engine import Engine, EngineSettings, Options
from localspec.engine.errors import UserError
from localspec.engine.llama.model import ALL_LAYERS
from localspec.engine.sampling import Sampling
from localspec.hub.catalog import Catalog, load_catalog
from localspec.hub.catalog_file import USER_CATALOG
from localspec.hub.opening import choose
from localspec.hub.pull import fetch_first_model
from localspec.hub.resolve import default_model, pair_meant, paired_draft, resolve
from localspec.interruption import Stoppable
from localspec.settings import Folders, Settings, make_private

_SAMPLING = {
    "temp": "temperature",
    "top_k": "top_k",
    "top_p": "top_p",
    "min_p": "min_p",
    "repeat_penalty": "repeat_penalty",
    "frequency_penalty": "frequency_penalty",
    "presence_penalty": "presence_penalty",
}
"""Name of a setting -> name of the sampling setting."""


def engine_settings(
    settings: Settings,
    folders: Folders,
    progress: Callable[[str, int, int], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> EngineSettings:
    """What to load. The name of a pair alone brings its draft model along, where that is installed. With no model named and
    none installed, the starter model is fetched first; `progress` and `cancelled` are those of `fetch_first_model`. Raises
    UserError."""

    def catalog() -> Catalog:
        return load_catalog(folders.config / USER_CATALOG)

    missing = ""
    draft = resolve(settings.draft, folders.models, catalog) if settings.draft and settings.draft != "none" else None
    if not settings.draft and settings.model and settings.drafter in ("auto", "draft"):
        draft = paired_draft(settings.model, folders.models, catalog)
        missing = "" if draft else _missing_draft(settings.model, folders, catalog)
    if settings.drafter == "draft" and draft is None:
        # Said before gigabytes are loaded in vain.
        remedy = missing or "name one with --draft, or choose --drafter lookup."
        raise UserError(f"There is no draft model to draft with; {remedy}")
    if settings.model:
        target = resolve(settings.model, folders.models, catalog)
    else:
        target = default_model(folders.models) or fetch_first_model(folders.models, progress, cancelled)
    layers = ALL_LAYERS if settings.gpu_layers == "all" else settings.gpu_layers
    opening = choose(target, draft, settings.ctx, layers, settings.kv_type)
    return EngineSettings(
        target=target,
        draft=draft,
        context_length=opening.context,
        gpu_layers=opening.gpu_layers,
        threads=settings.threads,
        kv_type=settings.kv_type,
        measure_costs=settings.drafter == "auto",
        cost_file=_cost_file(folders),
        note=f"{opening.note.rstrip('.')}; {missing}" if opening.note and missing else opening.note or missing,
    )


def _missing_draft(model: str, folders: Folders, catalog: Callable[[], Catalog]) -> str:
    """Where `model` is a pair of which only the target is installed: the sentence that says so."""
    pair = pair_meant(model, folders.models, catalog)
    if pair is None:
        return ""
    return f"{pair.draft.name}, which drafts for {pair.name}, is not installed; localspec pull {pair.name} gets it."


def _cost_file(folders: Folders) -> Path | None:
    try:
        return make_private(folders.cache) / "costs.json"
    except UserError:
        # Costs can be measured at every start.
        return None


def load_engine(
    settings: Settings,
    folders: Folders,
    progress: Progress,
    interruption: Stoppable,
    adjust: Callable[[EngineSettings], EngineSettings] = lambda chosen: chosen,
) -> Engine:
    """Find or fetch what to load and load it, showing how far that is. `adjust` may change what `engine_settings` chose.

    Raises UserError; LoadCancelledError or FetchCancelledError when a stop is requested meanwhile.
    """

    def fetching(phase: str, done: int, total: int) -> None:
        progress.show(f"{phase} a model to start with, only once: {done / 1e6:.0f} of {total / 1e6:.0f} MB")

    def loading(what: str, share: float) -> bool:
        progress.show(f"{doing.get(what, what)} {share:4.0%}")
        return not interruption.requested

    chosen = adjust(engine_settings(settings, folders, fetching, lambda: interruption.requested))
    doing = {"target": f"loading {chosen.target.stem}", "costs": "measuring how long this machine takes, only once"}
    if chosen.draft:
        doing["draft"] = f"loading {chosen.draft.stem}"
    if chosen.note:
        progress.tell(chosen.note)
    return Engine(chosen, loading)


def options(settings: Settings, engine: Engine) -> Options:
    """How to answer: a given setting, else the model's own recommendation, else the default."""
    given = {ours: value for name, ours in _SAMPLING.items() if (value := getattr(settings, name)) is not None}
    return Options(
        sampling=Sampling(**{**_recommended(engine.target.recommended_sampling()), **given}),
        drafter=settings.drafter,
        draft_max=settings.draft_max,
        verification=settings.verification,
        seed=settings.seed,
        max_tokens=settings.max_tokens,
    )


def _recommended(found: Mapping[str, float]) -> dict[str, float]:
    """What a model file recommends, by our names. Nonsense in it is nobody's fault who can mend it, and is left out."""
    sensible = {}
    for name, value in found.items():
        ours = _SAMPLING[name]
        if not math.isfinite(value):
            continue
        value = int(value) if ours == "top_k" else value
        try:
            Sampling(**{ours: value})  # type: ignore[arg-type]
        except UserError:
            continue
        sensible[ours] = value
    return sensible
