"""The keys, and what the figures mean."""

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from localspec.tui.commands import Command
from localspec.tui.speculation import NOW_STEPS

_KEYS = (
    ("enter", "send"),
    ("ctrl+j, shift+enter", "new line"),
    ("up, down", "on the first or last line: what you sent before"),
    ("esc", "stop the answer; what is written stays"),
    ("ctrl+c", "copy what is selected, else stop, else quit when pressed twice"),
    ("pageup, pagedown", "scroll; end goes back to the newest words"),
    ("ctrl+up", "select a message"),
    ("ctrl+n, ctrl+r", "new chat, earlier chats"),
    ("ctrl+g", "write in your editor; f4: edit the last document"),
    ("f6", "go to the documents above the prompt"),
    ("f7", "models: choose who answers, download, delete"),
    ("f2", "show or hide the figures of speculation"),
    ("f3, ctrl+t", "color the words by who drafted them"),
    ("ctrl+p", "all commands, and the theme"),
    ("ctrl+q", "quit; ctrl+d as well, when the prompt is empty"),
)
_MESSAGE_KEYS = (
    ("up, down", "the message before, the message after"),
    ("y, b", "copy it; copy the next code block"),
    ("e", "change it, and go on from there"),
    ("r, c", "answer again; go on with the answer"),
    ("left, right", "other versions of it"),
    ("t", "open or fold what the model thought"),
    ("esc", "back to the prompt"),
)
_DOCUMENT_KEYS = (
    ("enter", "all that can be done with it; so does a click"),
    ("v, w", "view it; rewrite it"),
    ("n, e", "rename it; edit it"),
    ("delete", "take it away; ctrl+z brings it back"),
    ("esc", "back to the prompt"),
)
_MODEL_KEYS = (
    ("enter", "answer with it in this chat; the chat is read again by the new model"),
    ("f5", "the same, and in all chats that have not chosen"),
    ("d", "draft with it for the model that answers now"),
    ("p, x", "download it; stop the download, which goes on from there later"),
    ("delete", "delete its files, after a question"),
    ("shift+up, shift+down", "read on in what is said about it"),
    ("letters", "search; user/repo:QUANT is a model on the hub"),
    ("fits", "in the memory that is free now, with its draft model"),
    ("target, draft", "the model that answers, and the one that guesses for it"),
)
_REWRITE_KEYS = (
    ("n, p", "the next change, the one before"),
    ("a, r", "accept or reject it; space turns it round"),
    ("A, R", "accept or reject all changes"),
    ("[-so-] {+so+}", "what goes, and what comes in its place"),
    ("[=so=] {-so-}", "of a rejected change: what stays, and what does not come"),
    ("c", "go on with a text that was stopped, or was being written when the app ended"),
    ("i", "another instruction for the text with what is accepted: a new version"),
    ("left, right", "the versions of it; the first one is the document itself"),
    ("e, y, s", "edit it by hand; copy it; save it to a file"),
    ("v", "the other text, where there is room for one only"),
    ("esc", "stop, and keep what is written; else leave"),
)
_FIGURES = (
    ("tokens/step", "words come in tokens; this many for each pass of the model (1 is plain decoding)"),
    ("tokens/s", "speed over the last two seconds; afterwards, over the whole answer"),
    ("lookup 62 %", "so much of the answer was guessed from earlier text, and the model agreed"),
    ("draft 62 %", "so much was guessed by the small draft model, and the model agreed"),
    ("plain", "nobody guessed: the model wrote every token by itself"),
    ("context", "tokens of this chat, and how many the model can look back on"),
)
_SPECULATION = (
    ("draft", "tokens guessed ahead; one pass checks them all"),
    ("lookup", "guesses copied from earlier text"),
    ("draft model", "guesses of a small, fast model"),
    ("now, answer, chat", f"the last {NOW_STEPS} steps, this answer, all answers"),
    ("speedup", "times as fast as plain decoding, measured here"),
    ("draft length", "how many tokens are guessed at a time"),
    ("tokens of the last steps", "a column for each pass, in the color of who guessed; gray: nobody"),
    ("63 of 84  75 %", "63 of 84 guessed tokens were right and stayed"),
    ("accepted tokens of each draft", "how often so many guesses in a row were right; 0: not even the first"),
    ("off now", "guessing would not pay; it comes back by itself"),
    ("colors of an answer", "a token has the color of who guessed it; without one, it is the model's own"),
    ("what a pass costs", "its time by the tokens in it: the less a further one costs, the more guessing pays"),
)
_COMMANDS = tuple((command.usage, command.description) for command in Command)
_SECTIONS = (
    ("Keys", _KEYS),
    ("Keys on a selected message", _MESSAGE_KEYS),
    ("Keys on a document", _DOCUMENT_KEYS),
    ("Keys in the list of models", _MODEL_KEYS),
    ("Keys while a text is rewritten", _REWRITE_KEYS),
    ("Figures below the prompt", _FIGURES),
    ("Figures of speculation", _SPECULATION),
    ("Commands", _COMMANDS),
)


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
                yield Static(Content(title), classes="section")
                yield from (_row(left, right) for left, right in rows)

    def action_scroll(self, lines: int) -> None:
        """Scroll the page."""
        self.query_one("#help").scroll_relative(y=lines, animate=False)


def _row(left: str, right: str) -> Horizontal:
    return Horizontal(Static(Content(left), classes="word"), Static(Content(right)), classes="row")
