"""Loading other models while the chat stays."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from localspec.config_file import update_config
from localspec.engine.errors import UserError
from localspec.settings import CONFIG_FILE, Settings
from localspec.tui import chat_settings
from localspec.tui.choosing import Choosing, LaterLoad, files_of, own_pair, pair_of, same_pair
from localspec.tui.messages import Loaded
from localspec.tui.screens.answering import Answering
from localspec.tui.widgets.turn import Notice

Keep = Literal["chat", "default", "nothing"]
"""Whether a choice holds for this chat, for this one and all without a choice of their own, or was made before."""


@dataclass(frozen=True)
class _Switch:
    """Other models are being loaded."""

    wanted: Settings
    before: Settings | None
    """What is loaded again where that fails; None where nothing was."""
    keep: Keep


class ModelLoading(Answering):
    """What is loaded, and how something else is."""

    _choosing: Choosing | None = None
    _later: LaterLoad | None = None
    """The load that waits for a first choice."""
    _switch: _Switch | None = None

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._in_force = self._start
        """What is loaded, or being loaded."""

    def begin_with(self, choosing: Choosing, in_force: Settings, later: LaterLoad | None) -> None:
        """`in_force`: what the worker loads; `later`: the load that waits for a first choice."""
        self._choosing, self._later, self._in_force = choosing, later, in_force
        if later:
            self._loading = "no model yet"
        elif not same_pair(in_force, self._start):
            self._switch = _Switch(in_force, self._start, "nothing")

    async def use(self, wanted: Settings, keep: Keep) -> None:
        """Load other models; the chat stays, and is read again by them. Those before come back where that fails."""
        if self._choosing is None:
            return
        if self._later and keep == "chat":
            # The first model is what the next start begins with, too.
            keep = "default"
        # What the engine has said until now is about those before.
        await self._tick()
        if same_pair(wanted, self._in_force) and self._loaded and not self._switch:
            self._keep_choice(wanted, keep)
            self.say(f"{self._loaded.target} answers already.")
            return
        if self._asked and self._loaded:
            self.say("The answer is stopped, because other models are loaded; what is written stays.")
        before = self._switch.before if self._switch else self._in_force if self._loaded else None
        self._switch, self._in_force = _Switch(wanted, before, keep), wanted
        self._load(wanted)

    def _load(self, wanted: Settings) -> None:
        assert self._choosing is not None
        self._transcript.welcome.show("starting", 0.0)
        self._loaded, self._has_failed, self._is_gone, self._loading = None, False, False, "starting"
        load = self._choosing.loader(wanted)
        later, self._later = self._later, None
        self._transcript.welcome.end_offer()
        if later:
            later.choose(load)
        else:
            self._worker.reload(load)
        self._ticks.resume()
        self._show_status()

    def models_loaded(self, event: Loaded) -> None:
        """The choice was good: it is remembered."""
        switch, self._switch = self._switch, None
        if switch:
            self._keep_choice(switch.wanted, switch.keep)
            who = f"{event.target} with {event.draft}" if event.draft else event.target
            self.say(f"{who} answers from now on.")

    async def models_refused(self, sentence: str) -> bool:
        """Back to those before."""
        switch, self._switch = self._switch, None
        if switch is None or switch.before is None:
            return False
        before = switch.before.model or "the model before"
        await self._transcript.add(Notice(f"{sentence} {before} is loaded again.", error=True))
        self._in_force = switch.before
        self._load(switch.before)
        return True

    def _keep_choice(self, wanted: Settings, keep: Keep) -> None:
        if keep == "default" and self._choosing:
            try:
                update_config(
                    self._choosing.folders.config / CONFIG_FILE, {"model": wanted.model, "draft": wanted.draft}
                )
            except UserError as error:
                self.say(str(error))
            else:
                self._start = replace(self._start, model=wanted.model, draft=wanted.draft)
        if keep != "nothing":
            changes = own_pair(self._start, wanted)
            self._chat.configure(*chat_settings.changed(self._chat.system, self._chat.settings, changes))

    def how_used(self, path: Path) -> str:
        """What the chat does with the file of a model now, to be said behind its name; empty where the file can go."""
        if self._loaded and path.stem in (self._loaded.target, self._loaded.draft):
            return "is loaded"
        if self._choosing is None or self._loaded or self._later or self._has_failed or self._is_gone:
            return ""
        before = self._switch.before if self._switch else None
        wanted = [settings for settings in (self._in_force, before) if settings]
        return "is being loaded" if any(path in files_of(self._choosing.folders, each) for each in wanted) else ""

    async def follow_chat(self) -> None:
        """The chat that is shown may have chosen other models than those that are loaded."""
        wanted = pair_of(self._start, self._chat.settings)
        if self._choosing and not self._later and not same_pair(wanted, self._in_force):
            await self.use(wanted, "nothing")

    def keep_models(self) -> None:
        """A new chat goes on with the models that are loaded."""
        changes = own_pair(self._start, self._in_force)
        system, settings = chat_settings.changed(self._chat.system, self._chat.settings, changes)
        self._chat.system, self._chat.settings = system, settings
