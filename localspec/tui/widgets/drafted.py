"""An answer whose tokens have the color of who drafted them."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from textual.app import App
from textual.content import Content, Span
from textual.widgets import Static

from localspec.engine.step import NO_DRAFTER, Step
from localspec.tui.literal import literal

MODEL = NO_DRAFTER
"""Who wrote a token that nobody had drafted: the model itself."""

_SECONDS_PER_CHARACTER = 60e-6
"""Between two updates while the answer grows. Laying all of it out takes a tenth of that."""
_NAMES = {"lookup": "lookup", "draft": "draft model", MODEL: "the model itself"}


@dataclass(frozen=True, slots=True)
class Palette:
    """The styles of the drafters, readable on every theme, and told apart without colors too."""

    colors: bool = True
    dark: bool = True

    @classmethod
    def of(cls, app: App[object]) -> "Palette":
        """What suits the app's theme and terminal."""
        return cls(not app.no_color, app.current_theme.dark)

    def style(self, who: str) -> str:
        """The style of what somebody drafted; "" for what the model wrote by itself."""
        if who == MODEL:
            return ""
        if not self.colors:
            return {"lookup": "underline", "draft": "bold"}.get(who, "italic")
        draft = "$primary-lighten-1" if self.dark else "$primary"
        return {"lookup": "$text-success", "draft": draft}.get(who, "$text-accent")


def name_of(who: str) -> str:
    """A drafter's name for the screen."""
    return _NAMES.get(who, who)


def attributed(steps: Iterable[Step]) -> list[tuple[str, str]]:
    """The text of an answer in runs of (text, who drafted it); MODEL for tokens that the model wrote by itself.

    The runs together are the steps' text. Text that no token of its step stands for was held back until then, and belongs
    to the token before it.
    """
    runs = _Runs()
    for step in steps:
        runs.add(step)
    return runs.pairs()


class Drafted(Static):
    """The answer's text as it was written, not as Markdown: every token is there to be seen.

    `add` a step at any time; `refresh_view` shows what has come since. Nothing is built while the widget is hidden.
    """

    def __init__(self, steps: Sequence[Step] = ()) -> None:
        super().__init__(markup=False)
        self._runs = _Runs()
        self._is_new = True
        self._built: Content | None = None
        self._palette = Palette()
        self._shown_at = 0.0
        self._is_complete = False
        for step in steps:
            self.add(step)

    def add(self, step: Step) -> None:
        """One more step of the answer."""
        self._runs.add(step)
        self._is_new = self._is_new or bool(step.text)
        self._is_complete = step.finish is not None

    def refresh_view(self, *, at_once: bool = False) -> None:
        """Show what is new, if the widget is shown: the more rarely the longer the text, but its end at once.

        `at_once`: no more steps will come, although none has told how the answer ended.
        """
        if not (self._is_new and self.display and self.is_attached):
            return
        now, pause = time.monotonic(), _SECONDS_PER_CHARACTER * self._runs.characters
        if at_once or self._is_complete or now - self._shown_at >= pause:
            self._shown_at = now
            self.refresh(layout=True)

    def on_show(self) -> None:
        """Steps may have come while nobody looked."""
        self.refresh_view(at_once=True)

    def render(self) -> Content:
        """A legend, and the text."""
        palette = Palette.of(self.app)
        if self._is_new or self._built is None or palette != self._palette:
            self._is_new, self._palette = False, palette
            self._built = self._build(palette)
        return self._built

    def _build(self, palette: Palette) -> Content:
        runs = [("drafted by ", "$foreground 60%"), *legend(palette), ("\n\n", "")]
        ends_with_return = False
        for text, who in self._runs.pairs():
            # A line end can be split between two tokens.
            shown = literal(text.removeprefix("\n") if ends_with_return else text)
            ends_with_return = text.endswith("\r")
            runs.append((shown, palette.style(who)))
        return styled(runs)


def legend(palette: Palette) -> list[tuple[str, str]]:
    """The drafters' names, each in its own style."""
    runs: list[tuple[str, str]] = []
    for who, name in _NAMES.items():
        runs += [(name, palette.style(who)), ("   ", "")]
    return runs[:-1]


def styled(runs: Iterable[tuple[str, str]]) -> Content:
    """One text out of (text, style), taken literally."""
    pieces: list[str] = []
    spans: list[Span] = []
    at = 0
    for text, style in runs:
        pieces.append(text)
        if style and text:
            spans.append(Span(at, at + len(text), style))
        at += len(text)
    return Content("".join(pieces), spans=spans)


class _Runs:
    """Grows step by step; adjacent tokens of the same drafter are one run."""

    def __init__(self) -> None:
        self._who: list[str] = []
        self._texts: list[list[str]] = []
        self.characters = 0

    def add(self, step: Step) -> None:
        for index, piece in enumerate(step.pieces):
            self._put(piece, _who(step, index))
        if rest := step.text[sum(map(len, step.pieces)) :]:
            self._put(rest, MODEL if step.tokens or not self._who else self._who[-1])

    def pairs(self) -> list[tuple[str, str]]:
        return [("".join(texts), who) for texts, who in zip(self._texts, self._who, strict=True)]

    def _put(self, text: str, who: str) -> None:
        if not text:
            return
        if not self._who or self._who[-1] != who:
            self._who.append(who)
            self._texts.append([])
        self._texts[-1].append(text)
        self.characters += len(text)


def _who(step: Step, index: int) -> str:
    if index >= step.accepted:
        return MODEL
    return step.sources[index] if index < len(step.sources) else step.drafter
