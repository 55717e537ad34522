"""A person's shelf of models for the tests of the app: a hub with tiny models, a catalog that knows them, and engines that
are only scripts but called as the models are."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hub_server import Content, HubServer
from localspec.engine.errors import UserError
from localspec.hub.machine import Machine, laptop
from localspec.settings import Settings, find_folders
from localspec.tui.app import ChatApp
from localspec.tui.backend import Load, LoadReport
from localspec.tui.choosing import Choosing
from scripted import Script, ScriptedBackend

REPOSITORY = "maker/tiny-GGUF"
TARGET, DRAFT = "tiny-8m-Q8_0", "tiny-1m-Q8_0"
PAIR = "tiny-8m"
_SHAPE = (
    "shape = { layers = 2, embedding = 64, feed_forward = 128, heads = 2, kv_heads = 1, key_length = 32, "
    "value_length = 32, vocabulary = 261, trained_context = 2048 }"
)


def write_catalog(config: Path, target: Content, draft: Content) -> None:
    """A catalog of one's own with a pair whose files are these."""
    models = [
        f'[models."{name}"]\nrepository = "{REPOSITORY}"\nlicense = "MIT"\nparameters = {parameters}\n'
        f'context_length = 2048\nlanguages = "none"\ngood_at = "{good_at}"\nvocabulary = "tiny"\n'
        f'files = [{{ quantization = "Q8_0", bytes = {content.size}, file = "{name}-Q8_0.gguf" }}]\n{_SHAPE}\n'
        for name, parameters, good_at, content in (
            ("tiny-8m", 8_000_000, "nothing [at all]", target),
            ("tiny-1m", 1_000_000, "even less", draft),
        )
    ]
    pair = f'[pairs."{PAIR}"]\ntarget = "tiny-8m"\ndraft = "tiny-1m"\nwhy = "8 times smaller."\n'
    config.mkdir(parents=True, exist_ok=True)
    (config / "catalog.toml").write_text("\n".join([pair, *models]), "utf-8")


def stock(hub: HubServer, target: Content, draft: Content) -> None:
    """Put the pair's files on the hub, and into the catalog."""
    hub.add(REPOSITORY, {f"{TARGET}.gguf": target, f"{DRAFT}.gguf": draft})
    write_catalog(find_folders().config, target, draft)


def hold(hub: HubServer, after: int) -> threading.Event:
    """Have the hub wait after so many bytes, until the event is set."""
    go = threading.Event()

    def sent() -> None:
        if hub.served >= after:
            go.wait(30)

    hub.sent = sent
    return go


def install(*names: str, content: bytes = b"GGUF") -> list[Path]:
    """Files in the models folder."""
    folder = find_folders().models
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / f"{name}.gguf").write_bytes(content)
    return [folder / f"{name}.gguf" for name in names]


@dataclass
class Engines:
    """Loads scripts that are called as the settings say, and remembers them."""

    scripts: dict[str, Iterable[Script]] = field(default_factory=dict)
    """What a target answers, by its name."""
    refused: dict[str, str] = field(default_factory=dict)
    """The sentence with which a target or a draft model cannot be loaded."""
    loaded: list[ScriptedBackend] = field(default_factory=list)
    wait_for: threading.Event | None = None

    def __call__(self, settings: Settings) -> Load:
        """As Choosing.loader."""

        def load(report: LoadReport) -> ScriptedBackend:
            while self.wait_for and not self.wait_for.wait(0.005):
                if not report.loading("target", 0.5):
                    raise UserError("given up")
            for name in (settings.model, settings.draft):
                if name in self.refused:
                    raise UserError(self.refused[str(name)])
            backend = ScriptedBackend(*self.scripts.get(str(settings.model), [["It ", "says ", "so."]] * 9))
            backend.target = Path(settings.model or "starter").name.removesuffix(".gguf")
            backend.draft = None if settings.draft in (None, "none") else settings.draft  # type: ignore[assignment]
            self.loaded.append(backend)
            return backend

        return load

    def named(self, name: str) -> list[ScriptedBackend]:
        """Those that are called so."""
        return [backend for backend in self.loaded if backend.target == name]


def shelf_app(
    engines: Engines, start: Settings | None = None, *, machine: Machine | None = None, **more: Any
) -> ChatApp:
    """A chat whose models can be changed."""
    folders, start = find_folders(), start or Settings()
    choosing = Choosing(folders, engines, lambda: machine or laptop(16))
    return ChatApp(engines(start), start=start, choosing=choosing, **more)
