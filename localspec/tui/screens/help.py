"""The keys, and what the figures mean."""

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

_KEYS = (
    ("enter", "send"),
    ("ctrl+j, shift+enter", "new line"),
    ("up, down", "on the first or last line: what you sent before"),
    ("esc", "stop the answer; what is written stays"),
    ("ctrl+c", "copy what is selected, else stop, else quit when pressed twice"),
    ("pageup, pagedown", "scroll; end goes back to the newest words"),
    ("ctrl+n", "new chat"),
    ("ctrl+p", "all commands, and the theme"),
    ("ctrl+q", "quit; ctrl+d as well, when the prompt is empty"),
)
_COMMANDS = (
    ("/help", "this page"),
    ("/new", "new chat"),
    ("/quit", "quit; /exit and /bye too"),
)
_FIGURES = (
    ("tokens/step", "words come in tokens; this many for each pass of the model (1 is plain decoding)"),
    ("tokens/s", "speed over the last two seconds; afterwards, over the whole answer"),
    ("lookup 62 %", "so much of the answer was guessed from earlier text, and the model agreed"),
    ("draft 62 %", "so much was guessed by the small draft model, and the model agreed"),
    ("plain", "nobody guessed: the model wrote every token by itself"),
    ("context", "tokens of this chat, and how many the model can look back on"),
)
_SECTIONS = (("Keys", _KEYS), ("Figures", _FIGURES), ("Commands", _COMMANDS))


class HelpScreen(ModalScreen[None]):
    """Closes with esc."""

    BINDINGS = [
        Binding("escape,f1,enter,q,ctrl+c", "dismiss", "Close", show=False),
        Binding("up", "scroll(-1)", show=False),
        Binding("down", "scroll(1)", show=False),
    ]

    def compose(self) -> ComposeResult:
        """A box over the chat."""
        with VerticalScroll(id="help") as box:
            box.border_title = "Help"
            box.border_subtitle = "up and down scroll, esc closes"
            for title, rows in _SECTIONS:
                yield Static(title, classes="section")
                yield from (_row(left, right) for left, right in rows)

    def action_scroll(self, lines: int) -> None:
        """Scroll the page."""
        self.query_one("#help").scroll_relative(y=lines, animate=False)


def _row(left: str, right: str) -> Horizontal:
    return Horizontal(Static(Content(left), classes="word"), Static(Content(right)), classes="row")
