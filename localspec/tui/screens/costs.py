"""What a pass costs on this machine: the reason why guessing ahead can be worth it, or not; and whether it was seen to change
texts here."""

from collections.abc import Mapping

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from localspec.engine.rates import ratio, share
from localspec.tui.blocks import bar
from localspec.tui.widgets.drafted import styled

_BAR_CELLS = 32
_UNKNOWN = "Nothing has been measured yet: ask something first, or choose a drafter other than none."
_WHAT = (
    "The model reads its own weights once for every pass. A pass that checks several guessed tokens costs more than a plain "
    "one, but often less than as many plain ones. These are the times measured here, corrected by every pass since."
)
_NO_AUDIT = (
    "Whether a text goes another way here because passes of several tokens round differently has not been looked at for this "
    "model and these settings: localspec doctor --audit, with the options of this chat, does that."
)


class CostsScreen(ModalScreen[None]):
    """The cost curve as bars. Closes with esc."""

    BINDINGS = [
        Binding("escape,enter,q,ctrl+c", "dismiss", "Close", show=False),
        Binding("up", "scroll(-1)", show=False),
        Binding("down", "scroll(1)", show=False),
    ]

    def __init__(self, curve: Mapping[int, float], audit: str | None = None) -> None:
        """`curve`: milliseconds of a pass by its tokens; empty when unknown. `audit`: what the last audit has found, a
        sentence; None where there was none."""
        super().__init__()
        self._audit = audit
        self._curve = dict(sorted(curve.items()))

    def compose(self) -> ComposeResult:
        """A box over the chat."""
        with VerticalScroll(id="costs") as box:
            box.border_title = "What a pass costs"
            box.border_subtitle = "up and down scroll, esc closes"
            for sentence in meaning(self._curve) if self._curve else [_UNKNOWN]:
                yield Static(Content(sentence))
            # Above the bars, of which there can be more than there are lines.
            if self._audit:
                yield Static(Content(self._audit), classes="audit")
            if self._curve:
                yield Static(chart(self._curve), classes="chart")
                yield Static(Content(_WHAT), classes="what")
            if not self._audit:
                yield Static(Content(_NO_AUDIT), classes="what audit")

    def action_scroll(self, lines: int) -> None:
        """Scroll the page."""
        self.query_one("#costs").scroll_relative(y=lines, animate=False)


def chart(curve: Mapping[int, float]) -> Content:
    """A line for every width: its tokens, the bar, milliseconds, and plain passes of the same time."""
    most = max(curve.values())
    runs = [(f"{'tokens':>6}  {'':{_BAR_CELLS}} {'ms':>9} {'plain passes':>14}", "$foreground 60%")]
    for width, ms in curve.items():
        passes = ratio(ms, curve.get(1, 0.0))
        relative = "-" if passes is None else f"{passes:.2f}"
        runs += [
            (f"\n{width:>6}  ", ""),
            (f"{bar(share(ms, most), _BAR_CELLS):<{_BAR_CELLS}}", "$primary" if width > 1 else "$foreground 40%"),
            (f" {_ms(ms):>9} {relative:>14}", ""),
        ]
    return styled(runs)


def meaning(curve: Mapping[int, float]) -> list[str]:
    """What the curve says, in sentences; none without the cost of a plain pass."""
    gains = {width: ratio(width * curve.get(1, 0.0), ms) for width, ms in curve.items()}
    known = {width: gain for width, gain in gains.items() if gain}
    if len(known) < max(2, len(curve)):
        return []
    sentences = []
    if 2 in known and (passes := ratio(2, known[2])):
        need = round(100 * (passes - 1))
        words = f"Two tokens in one pass cost {passes:.2f} plain passes"
        worth = f": a guess that costs nothing pays off when it is right more than {need} times in 100."
        sentences.append(words + (worth if 0 < need < 100 else "."))
    width, best = max(known.items(), key=lambda item: item[1])
    if width > 1 and best > 1:
        sentences.append(
            f"If every guess were right, {width} tokens in a pass would be {best:.1f} times as fast as plain decoding."
        )
    else:
        sentences.append("No pass is cheaper by the token than a plain one: guessing ahead cannot be faster here.")
    return sentences


def _ms(ms: float) -> str:
    return f"{ms:,.{0 if ms >= 100 else 1}f}"
