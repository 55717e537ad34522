"""Where the person says what is to become of a text; what people say often is suggested."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Input

from localspec.chat.presets import Preset, find_preset
from localspec.engine.errors import UserError
from localspec.tui.widgets.suggestions import Suggestion, Suggestions

_HINT = "down chooses, tab or enter takes it, esc closes the list"


class Instruction(Input):
    """One line. Enter sends it, or takes the suggestion that was chosen."""

    BINDINGS = [
        Binding("down", "suggest(1)", "The suggestion below", show=False),
        Binding("up", "suggest(-1)", "The suggestion above", show=False),
        Binding("tab", "take", "Take the suggestion", show=False),
        Binding("escape", "close", "Close the suggestions, or leave", show=False),
    ]

    class Given(Message):
        """Enter was pressed. `problem` says why there is no instruction, if so."""

        def __init__(self, instruction: str, problem: str = "") -> None:
            super().__init__()
            self.instruction, self.problem = instruction, problem

    class Left(Message):
        """Esc was pressed and no list was open; or tab was."""

        def __init__(self, closes: bool) -> None:
            super().__init__()
            self.closes = closes

    def __init__(self, presets: Sequence[Preset]) -> None:
        super().__init__(placeholder="What is to become of it? Enter begins.", select_on_focus=False, compact=True)
        self.suggestions = Suggestions()
        self._presets = tuple(presets)
        self._moved = False
        self._declined = False

    def put(self, text: str) -> None:
        """Another text; nothing is suggested for it."""
        self._declined = True
        self.value = text
        self.cursor_position = len(text)
        self.suggestions.close()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Something was typed: there may be something to suggest."""
        event.stop()
        if not self.has_focus:
            return
        self._declined = self._declined and bool(self.value)
        self._suggest()

    def on_focus(self) -> None:
        """An empty line shows all there is."""
        if not self.value:
            self._declined = False
            self._suggest()

    def on_blur(self) -> None:
        """Something else is on."""
        self.suggestions.close()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Take the suggestion, or begin."""
        event.stop()
        if self.suggestions.chosen and (self._moved or not self.value):
            self.action_take()
            return
        self.suggestions.close()
        try:
            self.post_message(self.Given(self._meant(self.value.strip())))
        except UserError as error:
            self.post_message(self.Given("", str(error)))

    def action_suggest(self, by: int) -> None:
        """Go through the suggestions; open them where they are closed."""
        if self.suggestions.chosen is None:
            self._declined = False
            self._suggest(everything=True)
        else:
            self.suggestions.move(by)
        self._moved = True

    def action_take(self) -> None:
        """Write out the suggestion; without one, go on to the texts."""
        chosen = self.suggestions.chosen
        if chosen:
            self.put(chosen.value)
        else:
            self.post_message(self.Left(closes=False))

    def action_close(self) -> None:
        """Close the list; else the screen."""
        if self.suggestions.chosen:
            self._declined = True
            self.suggestions.close()
        else:
            self.post_message(self.Left(closes=True))

    def _suggest(self, *, everything: bool = False) -> None:
        self._moved = False
        words = self.value.strip().casefold()
        if self._declined:
            self.suggestions.close()
            return
        found = [
            Suggestion(f"{preset.name}: " if preset.argument else preset.instruction, preset.shown, preset.instruction)
            for preset in self._presets
            if everything or words in preset.name.casefold()
        ]
        self.suggestions.show(found, _HINT)

    def _meant(self, text: str) -> str:
        """The instruction; that of a preset, where the text is the name of one."""
        name = text.partition(":")[0].strip().casefold()
        return (
            find_preset(text, self._presets) if name in {preset.name.casefold() for preset in self._presets} else text
        )


class InstructionBox(Vertical):
    """The line in its frame, and over the texts what it suggests."""

    def __init__(self, instruction: Instruction) -> None:
        super().__init__()
        self._instruction = instruction

    def compose(self) -> ComposeResult:
        """From top to bottom."""
        yield self._instruction.suggestions
        yield self._instruction

    @on(Suggestions.Clicked)
    def _take(self, event: events.Event) -> None:
        self._instruction.focus()
        self._instruction.action_take()
