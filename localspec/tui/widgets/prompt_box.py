"""The prompt, and what belongs to it."""

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical

from localspec.tui.widgets.prompt import Prompt
from localspec.tui.widgets.suggestions import Suggestions


class PromptBox(Vertical):
    """A prompt with its documents above the text, and over the conversation what it suggests."""

    def __init__(self, prompt: Prompt) -> None:
        super().__init__()
        self._prompt = prompt

    def compose(self) -> ComposeResult:
        """From top to bottom."""
        yield self._prompt.suggestions
        yield self._prompt.chips
        yield self._prompt

    @on(Suggestions.Clicked)
    def _choose(self) -> None:
        self._prompt.focus()
        # What a widget posts while its parent handles something goes no further than the parent.
        self._prompt.call_later(self._prompt.choose_suggestion)
