"""From settings to a loaded engine and the options of an answer."""

import math
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

from localspec.console import Progress
from localspec.engine.engine import Engine, EngineSettings, Options
from localspec.engine.errors import UserError
from localspec.engine.llama.model import ALL_LAYERS
from localspec.engine.sampling import Sampling
from localspec.hub.catalog import Catalog, usable_catalog
from localspec.hub.catalog_file import USER_CATALOG
from localspec.hub.meant import meant
from localspec.hub.opening import choose
from localspec.hub.pull import fetch_first_model
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

    @cache
    def catalog() -> Catalog:
        return usable_catalog(folders.config / USER_CATALOG)

    found = meant(settings, folders.models, catalog)
    target = found.target or fetch_first_model(folders.models, progress, cancelled)
    layers = ALL_LAYERS if settings.gpu_layers == "all" else settings.gpu_layers
    opening = choose(target, found.draft, settings.ctx, layers, settings.kv_type)
    # Asked for only where the catalog was needed: it takes longer to read than the first paint may wait.
    problem = catalog().problem if catalog.cache_info().currsize else ""
    remarks = [sentence for sentence in (opening.note, found.missing, problem) if sentence]
    return EngineSettings(
        target=target,
        draft=found.draft,
        context_length=opening.context,
        gpu_layers=opening.gpu_layers,
        threads=settings.threads,
        kv_type=settings.kv_type,
        measure_costs=settings.drafter == "auto",
        cost_file=_cost_file(folders),
        note="; ".join(sentence.rstrip(".") for sentence in remarks) + "." * bool(remarks),
    )


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
        return not interruption.stop.asked

    chosen = adjust(engine_settings(settings, folders, fetching, lambda: interruption.stop.asked))
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
