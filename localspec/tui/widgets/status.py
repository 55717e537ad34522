"""The two lines at the bottom: who answers and how much fits, what is going on and how fast."""

from collections.abc import Iterator
from typing import ClassVar

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.timer import Timer
from textual.widgets import Static

from localspec.tui.literal import literal

HELP_HINT = "f1 help"
STOP_HINT = "esc stop"
KILL_HINT = "esc ends the engine"
NEARLY_FULL = "context nearly full: the oldest turns will be left out"
_WARN_FROM = 0.85
_METER_CELLS = 8
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_GAP = 2
_LEAST_MODEL_CELLS = 16


class Status(Vertical):
    """Six places for text; a message covers the activity for a few seconds."""

    MESSAGE_SECONDS: ClassVar = 6.0
    """So long every sentence of the app stands at the bottom of a screen."""

    def __init__(self) -> None:
        super().__init__()
        self._activity = ""
        self._places: dict[str, Content] = {}
        self._message: Timer | None = None
        self._models = self._sampling = ""
        self._tokens: tuple[int, int] | None = None
        self._has_warned = False

    def compose(self) -> ComposeResult:
        """Models, sampling and context above; activity, a download and the key that matters below."""
        with Horizontal():
            yield Static("", id="models")
            yield Static("", id="sampling")
            yield Static("", id="context")
        with Horizontal():
            yield Static("", id="activity")
            yield Static("", id="pull")
            yield Static(HELP_HINT, id="key")

    def on_resize(self) -> None:
        """There is more room, or less."""
        self._show_above()

    def show_models(self, target: str, draft: str | None) -> None:
        """Who answers, and who drafts."""
        self._models = literal(f"{target} + {draft}" if draft else target)
        self._show_above()

    def show_sampling(self, temperature: float | None, seed: int | None) -> None:
        """How the next answer is sampled; None is not known, or drawn anew for every answer. Shown where there is room."""
        words = [] if temperature is None else [f"temp {temperature:g}"]
        self._sampling = ", ".join([*words, *([] if seed is None else [f"seed {seed}"])])
        self._show_above()

    def show_context(self, used: int, length: int) -> None:
        """Tokens of the conversation, and how many it can have. Says so once when it is nearly full."""
        if self._tokens == (used, length):
            return
        self._tokens = used, length
        self._show_above()
        nearly_full = self._nearly_full
        self.query_one("#context").set_class(nearly_full, "-full")
        if nearly_full and not self._has_warned:
            self.say(NEARLY_FULL)
        self._has_warned = nearly_full

    def show_activity(self, words: str, key: str = HELP_HINT) -> None:
        """What is going on or what came of it, and the key to press."""
        self._activity = words
        self._put("key", Content(key))
        if self._message is None:
            self._put("activity", Content(literal(words)))

    def show_pull(self, words: str) -> None:
        """How far a download is; empty without one."""
        self._put("pull", Content(literal(words)))
        self.query_one("#pull").display = bool(words)

    def say(self, message: str) -> None:
        """Show a message for a few seconds."""
        self.unsay()
        self._message = self.set_timer(self.MESSAGE_SECONDS, self.unsay)
        self._put("activity", Content(literal(message)))
        self.query_one("#activity").add_class("-message")

    def unsay(self) -> None:
        """The message is no longer true, or has been there long enough."""
        if self._message:
            self._message.stop()
            self._message = None
        self._put("activity", Content(literal(self._activity)))
        self.query_one("#activity").remove_class("-message")

    @property
    def _nearly_full(self) -> bool:
        used, length = self._tokens or (0, 1)
        return used >= _WARN_FROM * length

    def _show_above(self) -> None:
        """The most that fits: first the sampling gives way, then the ends of the models' names, then the context's words."""
        self._put("models", Content(self._models))
        room = self.content_size.width
        models = Content(self._models).cell_length
        nothing, sampling = Content(), Content(self._sampling)
        contexts = list(self._contexts())
        choices = [(sampling, contexts[0], models), (nothing, contexts[0], models)]
        if self._nearly_full:
            # The long words have been said before: they are not worth a part of a name.
            del contexts[0]
            choices.append((sampling, contexts[0], models))
        choices += [(nothing, context, min(models, _LEAST_MODEL_CELLS)) for context in contexts]
        for sampling, context, names in choices:
            taken = sum(content.cell_length + _GAP for content in (sampling, context) if content)
            if names + taken <= room:
                break
        self._put("sampling", sampling)
        self.query_one("#sampling").display = bool(sampling)
        self._put("context", context)

    def _contexts(self) -> Iterator[Content]:
        """The context in more and in fewer words."""
        if self._tokens is None:
            yield Content()
            return
        used, length = self._tokens
        numbers = f"{used:,} / {length:,}"
        meter = _meter(used / max(1, length), "$warning" if self._nearly_full else "$primary")
        if self._nearly_full:
            yield Content(f"{NEARLY_FULL}  {numbers} ") + meter
            yield Content(f"context nearly full  {numbers} ") + meter
        yield Content(f"context {numbers} ") + meter
        yield Content(f"context {numbers}")
        yield Content(numbers)
        yield Content(f"{100 * used / max(1, length):.0f} %")

    def _put(self, place: str, words: Content) -> None:
        # Called many times a second, mostly with what stands there already; an update would lay out the whole screen.
        before = self._places.get(place)
        if before is None or not before.is_same(words):
            self._places[place] = words
            self.query_one(f"#{place}", Static).update(words)


def _meter(share: float, color: str) -> Content:
    """A bar of a few cells, filled in eighths of a cell."""
    eighths = round(max(0.0, min(1.0, share)) * _METER_CELLS * 8)
    if share > 0:
        eighths = max(1, eighths)
    whole, part = divmod(eighths, 8)
    bar = (_EIGHTHS[8] * whole + (_EIGHTHS[part] if part else "")).ljust(_METER_CELLS)
    return Content.styled(bar, f"{color} on $foreground 15%")
