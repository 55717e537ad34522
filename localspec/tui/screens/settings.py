"""The settings of answers: for this chat, or as the default for all."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Select, Static, TextArea

from localspec.chat.store import JSON
from localspec.config_file import update_config
from localspec.engine.errors import UserError
from localspec.settings import CONFIG_FILE, Settings, find_folders, origins
from localspec.tui.literal import literal
from localspec.tui.widgets.field import CHANGED, ChosenField, Field, TextField, TypedField

DEFAULTS = {
    "temp": "0.7",
    "top_k": "40",
    "top_p": "0.95",
    "min_p": "0",
    "repeat_penalty": "1",
    "seed": "random",
    "max_tokens": "until the model ends",
}
"""What holds when nobody says anything."""

_LABELS = {
    "temp": "temperature",
    "top_k": "top-k",
    "top_p": "top-p",
    "min_p": "min-p",
    "repeat_penalty": "repeat penalty",
    "seed": "seed",
    "max_tokens": "longest answer",
}
_DRAFTERS = ("auto", "draft", "lookup", "none")
_HINT = "ctrl+s saves for this chat   f5 as default   esc leaves"


class _ThemeField(ChosenField):
    """The colors, which are the same for every chat."""

    def show_origin(self, words: str) -> None:
        """Beside the value."""
        super().show_origin(CHANGED if words == CHANGED else "all chats")


class _Form(VerticalScroll, can_focus=False, inherit_bindings=False):
    """Up and down do not scroll it: they go from field to field, and it follows."""


class SettingsScreen(ModalScreen[dict[str, JSON] | None]):
    """Closes with what has changed for this chat, by the names of settings: None is "no longer set here".

    Closes with None when nothing is to change. What is saved as default is in config.toml by then, and changes this chat
    as well. `start`: the settings the program was started with; `chat`: what this chat sets, `system` among it;
    `recommended`: what the model recommends, by the names of settings.
    """

    BINDINGS = [
        Binding("escape,ctrl+c", "leave", "Leave", id="settings.leave", show=False),
        Binding("ctrl+s", "save", "Save for this chat", id="settings.save", priority=True, show=False),
        Binding("f5", "save_default", "Save as default", id="settings.save_default", priority=True, show=False),
        Binding("down", "app.focus_next", show=False),
        Binding("up", "app.focus_previous", show=False),
    ]
    AUTO_FOCUS = "Input"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (60, "-wide")]

    def __init__(
        self,
        start: Settings,
        chat: Mapping[str, JSON],
        *,
        recommended: Mapping[str, float] | None = None,
        has_draft: bool = True,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        super().__init__()
        self._start, self._chat, self._recommended = start, chat, recommended or {}
        self._has_draft = has_draft
        self._file = find_folders(environ).config / CONFIG_FILE
        self._origins = origins(start, environ)
        self._theme = ""
        self._warned = False

    def compose(self) -> ComposeResult:
        """A box over the chat."""
        self._theme = self.app.theme
        with _Form(id="settings") as box:
            box.border_title = "Settings"
            box.border_subtitle = _HINT
            yield from self._fields()
            yield Static(id="settings-said")
            with Horizontal(id="settings-buttons"):
                yield Button("Save for this chat", id="save", compact=True)
                yield Button("Save as default", id="save-default", compact=True)

    def _fields(self) -> Iterator[Field]:
        for name, label in _LABELS.items():
            yield TypedField(name, label, self._chat.get(name), self._origin(name), self._inherited(name))
        choices = [
            word for word in _DRAFTERS if word != "draft" or self._has_draft or self._chat.get("drafter") == word
        ]
        own, origin = self._chat.get("drafter"), self._origin("drafter")
        yield ChosenField("drafter", "drafter", own, origin, choices, self._start.drafter)
        yield _ThemeField("theme", "theme", self._theme, "", sorted(self.app.available_themes), None)
        own, inherited = self._chat.get("system"), self._start.system or ""
        yield TextField("system", "system prompt", own, self._origin("system"), inherited)

    def _origin(self, name: str) -> str:
        if name in self._origins:
            return self._origins[name]
        return "model" if name in self._recommended else "default"

    def _inherited(self, name: str) -> str:
        value = getattr(self._start, name)
        if value is not None:
            return f"{value:.15g}"
        # A file has single precision: 0.6 there is 0.600000023841858.
        return f"{self._recommended[name]:.6g}" if name in self._recommended else DEFAULTS[name]

    # What the person does.

    @on(Input.Submitted)
    def _go_on(self) -> None:
        self.app.action_focus_next()

    @on(Input.Changed)
    @on(TextArea.Changed)
    def _change(self) -> None:
        self._warned = False

    @on(Select.Changed, "#field-theme Select")
    def _show_theme(self, event: Select.Changed) -> None:
        self.app.theme = str(event.value)

    @on(Button.Pressed, "#save")
    def action_save(self) -> None:
        """For this chat."""
        if self._are_good():
            self.dismiss(self._changes())

    @on(Button.Pressed, "#save-default")
    def action_save_default(self) -> None:
        """For this chat and, in config.toml, for all that are begun later."""
        if not self._are_good():
            return
        values = {field.setting: field.read() for field in self.query(Field)}
        if values["theme"] == self._theme:
            # A theme that nobody has chosen here may be the terminal's, or the environment's.
            del values["theme"]
        # A list or a table is no value of a setting.
        wanted = {name: value for name, value in values.items() if isinstance(value, str | int | float)}
        try:
            update_config(self._file, wanted)
        except UserError as error:
            self._say(str(error), error=True)
        else:
            self.dismiss(self._changes())

    def action_leave(self) -> None:
        """Change nothing; what has been typed is lost only when that is really meant."""
        if self._changes(or_nonsense=True) and not self._warned:
            self._warned = True
            self._say("There are changes: ctrl+s saves them, esc again leaves without them.")
            return
        self.app.theme = self._theme
        self.dismiss(None)

    def _are_good(self) -> bool:
        """Whether all values can be used; if not, the first that cannot is where the cursor goes."""
        bad = [field for field in self.query(Field) if not field.check()]
        if bad:
            bad[0].query_one("Input").focus()
            self._say(
                "Not saved: one value cannot be used." if len(bad) == 1 else "Not saved: some values cannot be used.",
                error=True,
            )
        return not bad

    def _changes(self, *, or_nonsense: bool = False) -> dict[str, JSON]:
        """What is different for this chat. The theme is nothing of a chat."""
        changed = [field for field in self.query(Field) if field.is_changed and field.setting != "theme"]
        return {field.setting: None if or_nonsense else field.read() for field in changed}

    def _say(self, sentence: str, *, error: bool = False) -> None:
        said = self.query_one("#settings-said", Static)
        said.update(Content(literal(sentence)))
        said.set_class(error, "-error")
        said.display = True
        if not error:
            said.scroll_visible(animate=False)
