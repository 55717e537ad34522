"""The fields of a form: a label, a value, where it comes from, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Sequence

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Input, Select, Static, TextArea

from localspec.chat.store import JSON
from localspec.engine.errors import UserError
from localspec.settings import check_value
from localspec.tui.literal import literal

HERE, CHANGED = "this chat", "changed"
"""Where a value comes from, when it is not the one of the start."""


class Field(Vertical):
    """One setting. `own` is what this chat sets, None when it sets nothing; `origin` says where the other value is from."""

    def __init__(self, name: str, label: str, own: JSON, origin: str) -> None:
        super().__init__(id=f"field-{name.replace('_', '-')}")
        self.setting, self._label, self._own, self._origin = name, label, own, origin
        self._from, self._wrong = Static(classes="from"), Static(classes="wrong")

    def compose(self) -> ComposeResult:
        """On one line, and the problem below it."""
        with Horizontal(classes="row"):
            yield Static(Content(self._label), classes="label")
            yield self.make_control()
            yield self._from
        yield self._wrong

    def on_mount(self) -> None:
        """Say where the value is from."""
        self.refresh_origin()

    def make_control(self) -> Widget:
        """What the value is typed into or chosen from."""
        raise NotImplementedError

    def read(self) -> JSON:
        """The value for this chat, None when it sets nothing. Raises UserError."""
        raise NotImplementedError

    @property
    def is_changed(self) -> bool:
        """Whether it is another value than before, or nonsense."""
        try:
            return self.read() != self._own
        except UserError:
            return True

    def check(self) -> bool:
        """Whether the value is good; if not, why not is shown below it."""
        try:
            self.read()
        except UserError as error:
            self.show_problem(str(error))
            return False
        self.show_problem("")
        return True

    def show_problem(self, sentence: str) -> None:
        """Below the value; empty when there is none."""
        self._wrong.update(Content(literal(sentence)))
        self._wrong.display = bool(sentence)

    def refresh_origin(self) -> None:
        """The value has changed, or not yet."""
        try:
            value = self.read()
        except UserError:
            value = ""
        self.show_origin(CHANGED if value != self._own else HERE if value is not None else self._origin)

    def show_origin(self, words: str) -> None:
        """Beside the value."""
        self._from.update(Content(literal(words)))


class TypedField(Field):
    """A number, as it is typed; nothing typed is the value of the start, which stands there faintly."""

    def __init__(self, name: str, label: str, own: JSON, origin: str, inherited: str) -> None:
        super().__init__(name, label, own, origin)
        self._inherited = inherited

    def make_control(self) -> Widget:
        """An input of one line."""
        value = "" if self._own is None else _shown(self._own)
        return Input(value, placeholder=self._inherited, select_on_focus=False, compact=True)

    def read(self) -> JSON:
        """The number. Raises UserError."""
        typed = self.query_one(Input).value.strip()
        if not typed:
            return None
        value = check_value(self.setting, typed)
        # A number that was stored without its point is the same number.
        return value if isinstance(value, int | float) else typed

    @on(Input.Changed)
    def _change(self) -> None:
        self.show_problem("")
        self.refresh_origin()

    @on(Input.Blurred)
    def _leave(self) -> None:
        self.check()


class ChosenField(Field):
    """One of a few words; the first stands for the value of the start."""

    def __init__(
        self, name: str, label: str, own: JSON, origin: str, choices: Sequence[str], inherited: str | None
    ) -> None:
        """`inherited`: the value of the start; None when there is always a choice of its own."""
        super().__init__(name, label, own, origin)
        words = [(Content(word), word) for word in choices]
        self._choices = words if inherited is None else [(Content(f"as started: {inherited}"), ""), *words]

    def make_control(self) -> Widget:
        """A list that opens."""
        values = [value for _, value in self._choices]
        chosen = self._own if isinstance(self._own, str) and self._own in values else values[0]
        return Select[str](self._choices, value=chosen, allow_blank=False, compact=True)

    def read(self) -> JSON:
        """The word."""
        return str(self.query_one(Select).value) or None

    @on(Select.Changed)
    def _change(self) -> None:
        self.refresh_origin()


class TextField(Field):
    """A text of several lines. It begins with the value of the start, and is this chat's own as soon as it differs."""

    def __init__(self, name: str, label: str, own: JSON, origin: str, inherited: str) -> None:
        super().__init__(name, label, own, origin)
        self._inherited = inherited

    def compose(self) -> ComposeResult:
        """As wide as the form, below its label."""
        with Horizontal(classes="row"):
            yield Static(Content(self._label), classes="label")
            yield self._from
        yield self.make_control()

    def make_control(self) -> Widget:
        """An editor."""
        text = self._own if isinstance(self._own, str) else self._inherited
        return TextArea(text, placeholder="none", tab_behavior="focus", highlight_cursor_line=False, compact=True)

    def read(self) -> JSON:
        """The text, as it was written."""
        text = self.query_one(TextArea).text
        return None if text == self._inherited else text

    @on(TextArea.Changed)
    def _change(self) -> None:
        self.refresh_origin()


def _shown(value: JSON) -> str:
    return f"{value:.15g}" if isinstance(value, float) else literal(str(value))
