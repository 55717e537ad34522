"""From settings to a loaded engine and the options of an answer."""

from collections.abc import Callable

from localspec.engine.engine import DEFAULT_DRAFT_MAX, Engine, EngineSettings, Options
from localspec.engine.llama.model import ALL_LAYERS
from localspec.engine.sampling import Sampling
from localspec.hub.resolve import default_model, resolve
from localspec.hub.starter import fetch_starter
from localspec.settings import Folders, Settings

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
    """What to load. With no model named and none installed, the starter model is fetched first; `progress` and `cancelled`
    are those of `fetch_starter`. Raises UserError."""
    if settings.model:
        target = resolve(settings.model, folders.models)
    else:
        target = default_model(folders.models) or fetch_starter(folders.models, progress, cancelled)
    wants_draft = settings.draft is not None and settings.draft != "none"
    return EngineSettings(
        target=target,
        draft=resolve(settings.draft or "", folders.models) if wants_draft else None,
        context_length=settings.ctx,
        gpu_layers=ALL_LAYERS if settings.gpu_layers == "all" else int(settings.gpu_layers),
        threads=settings.threads,
        kv_type=settings.kv_type,
    )


def options(settings: Settings, engine: Engine) -> Options:
    """How to answer: a given setting, else the model's own recommendation, else the default."""
    recommended = engine.target.recommended_sampling()
    chosen = {}
    for name, ours in _SAMPLING.items():
        value = getattr(settings, name)
        value = recommended.get(name) if value is None else value
        if value is not None:
            chosen[ours] = int(value) if name == "top_k" else float(value)
    return Options(
        sampling=Sampling(**chosen),  # type: ignore[arg-type]
        drafter=settings.drafter,
        draft_max=settings.draft_max or DEFAULT_DRAFT_MAX,
        verification=settings.verification,
        seed=settings.seed,
        max_tokens=settings.max_tokens,
    )
