"""What the app talks to: a loaded pair and one conversation with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Protocol

from localspec.engine.step import Step

if TYPE_CHECKING:
    from localspec.chat.conversation import Conversation
    from localspec.engine.engine import Engine, EngineSettings, Options

PromptProgress = Callable[[int, int], None]
"""Called with the prompt tokens read so far and their number."""


class LoadReport(Protocol):
    """Where loading says how far it is, and asks whether to go on. Fits the hub's and the engine's callbacks."""

    def fetching(self, phase: str, done: int, total: int) -> None:
        """Bytes of a download: `phase` is "downloading" or "unpacking"."""

    def loading(self, what: str, share: float) -> bool:
        """Share (0 to 1) of the "target" or the "draft" that is in memory. False: give up."""

    def cancelled(self) -> bool:
        """Whether to give up."""


class Backend(Protocol):
    """One thread at a time, but for `stop`."""

    @property
    def target(self) -> str:
        """Name of the target."""

    @property
    def draft(self) -> str | None:
        """Name of the draft model, None without one."""

    @property
    def context_length(self) -> int:
        """Tokens the conversation can have."""

    @property
    def context_used(self) -> int:
        """Tokens of the conversation so far."""

    def ask(self, words: str, on_prompt: PromptProgress) -> Iterator[Step]:
        """Add a turn and stream its answer. A turn stopped or failed before the first word is not in the conversation:
        a long one would be read again with the next. Raises UserError."""

    def restart(self) -> None:
        """Begin an empty conversation."""

    def stop(self) -> None:
        """End the answer under way, from any thread; what has been written stays."""

    def close(self) -> None:
        """Free everything."""


Load = Callable[[LoadReport], Backend]
"""Runs on the engine's thread. Raises UserError with the sentence to show."""
Prepare = Callable[[Callable[[str, int, int], None], Callable[[], bool]], "EngineSettings"]
"""Called with the progress and the cancelled callbacks of `fetch_starter`; decides what to load."""


class EngineBackend:
    """An engine in this process."""

    def __init__(self, engine: Engine, options: Options, system: str | None) -> None:
        self._engine, self._options, self._system = engine, options, system
        self._conversation = self._new_conversation()

    @property
    def target(self) -> str:
        """The file's name without its ending."""
        return self._engine.settings.target.stem

    @property
    def draft(self) -> str | None:
        """The file's name without its ending."""
        draft = self._engine.settings.draft
        return draft.stem if draft else None

    @property
    def context_length(self) -> int:
        """Tokens the conversation can have."""
        return self._engine.context_length

    @property
    def context_used(self) -> int:
        """Tokens of the conversation so far."""
        return len(self._engine.stream)

    def ask(self, words: str, on_prompt: PromptProgress) -> Iterator[Step]:
        """Add a turn and stream its answer. Raises UserError."""
        return self._conversation.ask(words, self._options, on_prompt=on_prompt)

    def restart(self) -> None:
        """Begin an empty conversation; what it shares with the old one stays in the cache."""
        self._conversation = self._new_conversation()

    def stop(self) -> None:
        """End the answer under way, from any thread."""
        self._engine.stop()

    def close(self) -> None:
        """Free the engine."""
        self._engine.close()

    def _new_conversation(self) -> Conversation:
        from localspec.chat.conversation import Conversation

        return Conversation(self._engine, self._system)


def engine_loader(
    engine_settings: EngineSettings | Prepare, options: Options | Callable[[Engine], Options], system: str | None
) -> Load:
    """Loading of an engine in this process. The heavy imports happen on the thread that loads, behind the screen."""

    def load(report: LoadReport) -> Backend:
        from localspec.engine.engine import Engine

        settings = engine_settings(report.fetching, report.cancelled) if callable(engine_settings) else engine_settings
        engine = Engine(settings, report.loading)
        try:
            return EngineBackend(engine, options(engine) if callable(options) else options, system)
        except BaseException:
            engine.close()
            raise

    return load
