"""The speculation view: what guessing ahead brings, live. A column where there is room, else a strip of four lines."""

import textwrap
import time
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from textual.content import Content
from textual.widget import Widget

from localspec.engine.rates import share as share_of
from localspec.engine.step import Step
from localspec.tui.blocks import bar, columns, gauge
from localspec.tui.literal import literal
from localspec.tui.speculation import RUNS, Counted, Sums, Tally
from localspec.tui.widgets.drafted import Palette, name_of, styled

_WIDEST_COLUMN = 48
"""Cells; a wider view is a strip. A column has its words beside each other from 33 cells on."""
_CALM_SECONDS = 0.2
"""Between two updates: a number that changes faster cannot be read, and drawing takes time from the model."""
_FEW_TOKENS = 4
"""A step with so many tokens is drawn full height, until one has more."""
_MUTED, _TITLE, _BAR = "$foreground 60%", "bold", "$foreground 40%"
_OFF = "Off now. "
_RUNS_TITLE = "accepted tokens of each draft"

Run = tuple[str, str]
Line = list[Run]


class Speculation(Widget):
    """Counts every step, cheaply, and shows the numbers when it is asked to. Toggle it with `display`."""

    def __init__(self) -> None:
        super().__init__()
        self.tally = Tally()
        self._is_new = True
        self._drawn_at = 0.0

    def begin(self) -> None:
        """A new answer."""
        self.tally.begin()
        self._is_new = True

    def add(self, step: Step, at: float) -> None:
        """One more step, which ended at `at`, in seconds."""
        self.tally.add(step, at)
        self._is_new = True

    def end(self) -> None:
        """The answer is complete, or was stopped. What is shown then is the last word."""
        self.tally.end()
        self._is_new = True
        self.refresh_view()

    def reset(self) -> None:
        """Another chat."""
        self.tally.reset()
        self._is_new = True
        self.refresh_view()

    def load(self, answers: Iterable[Mapping[str, object] | None]) -> None:
        """A chat that was kept: what `figures` gave for each of its answers."""
        self.tally.load(answers)
        self._is_new = True
        self.refresh_view()

    def figures(self) -> dict[str, float | int | str | None]:
        """What this answer adds to the chat's sums, to be kept with it."""
        return self.tally.figures()

    def choose(self, drafter: str) -> None:
        """The drafter setting in force: "auto", "draft", "lookup" or "none"."""
        self.tally.setting = drafter
        self._is_new = True
        self.refresh_view()

    def refresh_view(self) -> None:
        """Show what is new, if the view is shown; while an answer is being written, only a few times a second."""
        if not (self._is_new and self.display and self.is_attached):
            return
        now = time.monotonic()
        if not self.tally.running or now - self._drawn_at >= _CALM_SECONDS:
            self._is_new, self._drawn_at = False, now
            self.refresh()

    def on_show(self) -> None:
        """Steps may have come while nobody looked."""
        self.refresh()

    def render(self) -> Content:
        """The numbers as they are."""
        width, height = self.content_size
        if not width:
            return Content()
        picture = _Picture(self.tally, width, Palette.of(self.app))
        lines = picture.strip() if width > _WIDEST_COLUMN else picture.column(height)
        runs = [run for line in lines[:height] for run in [*_cut(line, width), ("\n", "")]]
        return styled(runs[:-1])


class _Picture:
    """The numbers of one moment as lines."""

    def __init__(self, tally: Tally, width: int, palette: Palette) -> None:
        self._tally, self._width, self._palette = tally, width, palette
        self._now, self._plain_ms = tally.now, tally.plain_token_ms
        self._off = tally.why_off()

    def column(self, height: int) -> list[Line]:
        """As much as fits into so many lines, the most telling first."""
        head: list[Line] = [[("Speculation", _TITLE)], *self._state(), [], *self._table(), []]
        full = [*head, *self._recent(2), *self._drafters(gauges=True), *self._histogram()]
        if len(full) <= height:
            return full
        for section in (self._recent(1), self._drafters(gauges=False), self._small_histogram()):
            if len(head) + len(section) <= height:
                head += section
        return head

    def strip(self) -> list[Line]:
        """Four lines."""
        spark = self._width // 3
        words = self._width - spark - 2
        return [
            [*_filled(self._per_steps(), words), ("  ", ""), *self._spark(spark)[0]],
            self._speeds(),
            *self._shares_or_reason(),
        ]

    # Parts of the column.

    def _state(self) -> list[Line]:
        if self._off:
            return self._reason(self._off)
        draft, answer = self._tally.last_draft, self._tally.answer
        if not answer.steps:
            return [[("waiting for the first step", _MUTED)]]
        if draft is None or not self._tally.running:
            return [[(f"{_counted(answer.tokens, 'token')} in {_counted(answer.steps, 'step')}", "")]]
        style = self._palette.style(draft.drafter)
        tokens = _counted(draft.drafted, "token")
        return [[("draft of ", _MUTED), (tokens, ""), (" by ", _MUTED), (literal(name_of(draft.drafter)), style)]]

    def _table(self) -> list[Line]:
        cells = max(0, self._width - 12) // 3
        scopes = (self._now, self._tally.answer, self._tally.chat)
        head = "".join(f"{name:>{cells}}" for name in ("now", "answer", "chat"))
        rows = (
            ("tokens/step", [_per_step(sums) for sums in scopes]),
            ("tokens/s", [_speed(sums) for sums in scopes]),
            ("speedup", [self._speedup(sums) for sums in scopes]),
            ("draft length", [_length(sums) for sums in scopes]),
        )
        lines: list[Line] = [[(" " * 12 + head, _MUTED)]]
        for name, values in rows:
            now, *others = (f"{value:>{cells}}" for value in values)
            lines.append([(f"{name:<12}", _MUTED), (now, "bold"), ("".join(others), "")])
        return lines

    def _recent(self, rows: int) -> list[Line]:
        return [*self._spark(self._width, rows), [("tokens of the last steps", _MUTED)], []]

    def _spark(self, width: int, rows: int = 1) -> list[Line]:
        steps = list(self._tally.recent)[-width:]
        most = max((step.tokens for step in steps), default=0)
        drawn = columns([step.tokens for step in steps], max(most, _FEW_TOKENS * rows), rows)
        return [[(" " * (width - len(steps)), ""), *self._colored(line, steps)] for line in drawn]

    def _colored(self, characters: str, steps: Sequence[Counted]) -> Line:
        inks = [self._ink(step.drafter) or _MUTED for step in steps]
        cells = groupby(zip(characters, inks, strict=True), key=lambda cell: cell[1])
        return [("".join(character for character, _ in run), ink) for ink, run in cells]

    def _ink(self, who: str) -> str:
        """The color of a drawing; an underlined one would be hard to read."""
        return self._palette.style(who) if self._palette.colors else ""

    def _drafters(self, *, gauges: bool) -> list[Line]:
        lines: list[Line] = [[("drafted and accepted", _MUTED)]]
        for name, drafted, accepted in self._tally.drafters():
            share, style = share_of(accepted, drafted), self._palette.style(name)
            right = f"{accepted:,} of {drafted:,}  {_percent(share)}"
            shown = literal(name_of(name))
            lines.append([(shown, style), (f"{right:>{max(0, self._width - len(shown))}}", "")])
            if gauges:
                reached, rest = gauge(share, self._width)
                lines.append([(reached, self._ink(name)), (rest, "$foreground 20%")])
        if len(lines) == 1:
            lines.append([("nothing yet", "")])
        return [*lines, []]

    def _histogram(self) -> list[Line]:
        runs, drafts = self._tally.runs, sum(self._tally.runs)
        if not drafts:
            return []
        cells, most = max(0, self._width - 5 - 6), max(runs)
        lines: list[Line] = [[(_RUNS_TITLE, _MUTED)]]
        for name, count in zip(RUNS, runs, strict=True):
            drawn = bar(share_of(count, most), cells)
            percent = _percent(share_of(count, drafts)) if count else ""
            lines.append([(f"{name:>4} ", _MUTED), (f"{drawn:<{cells}}", _BAR), (f"{percent:>6}", "")])
        return lines

    def _small_histogram(self) -> list[Line]:
        if not any(self._tally.runs):
            return []
        names = "  ".join(RUNS)
        drawn = "  ".join(f"{column * 2:<{len(name)}}" for name, column in zip(RUNS, self._run_columns(), strict=True))
        return [[(_RUNS_TITLE, _MUTED)], [(drawn, _BAR)], [(names, _MUTED)]]

    def _run_columns(self) -> str:
        runs = self._tally.runs
        return columns(runs, max(*runs, 1))[0]

    def _reason(self, sentence: str) -> list[Line]:
        first, *others = textwrap.wrap(_OFF + literal(sentence), self._width)
        return [[(first[: len(_OFF)], "$text-warning"), (first[len(_OFF) :], "")], *([(line, "")] for line in others)]

    # Parts of the strip.

    # Values have room to grow, so that the words beside them stand still.

    def _per_steps(self) -> Line:
        return [
            ("tokens/step ", _MUTED),
            (f"{_per_step(self._now):<5}", "bold"),
            ("  answer ", _MUTED),
            (f"{_per_step(self._tally.answer):<5}", ""),
            ("  chat ", _MUTED),
            (f"{_per_step(self._tally.chat):<5}", ""),
        ]

    def _speeds(self) -> Line:
        return [
            ("tokens/s    ", _MUTED),
            (f"{_speed(self._now):<5}", "bold"),
            ("  speedup ", _MUTED),
            (f"{self._speedup(self._now):<6}", "bold"),
            ("  draft length ", _MUTED),
            (_length(self._now), ""),
        ]

    def _shares(self) -> Line:
        line: Line = [("accepted    ", _MUTED)]
        for name, drafted, accepted in self._tally.drafters():
            style = self._palette.style(name)
            counts = f" {accepted:,} of {drafted:,}  {_percent(share_of(accepted, drafted))}   "
            line += [(literal(name_of(name)), style), (counts, "")]
        return line if len(line) > 1 else [*line, ("nothing yet", "")]

    def _shares_or_reason(self) -> list[Line]:
        shares = self._shares()
        if self._off:
            reason = self._reason(self._off)
            return reason if len(reason) > 1 else [shares, *reason]
        if not any(self._tally.runs):
            return [shares]
        runs: Line = [("per draft   ", _MUTED)]
        for name, column in zip(RUNS, self._run_columns(), strict=True):
            runs += [(f"{name} ", _MUTED), (f"{column * 2}  ", _BAR)]
        return [shares, runs]

    def _speedup(self, sums: Sums) -> str:
        speedup = sums.speedup(self._plain_ms)
        return "-" if speedup is None else f"{speedup:.2f}x"


def _cut(line: Line, width: int) -> Line:
    """At most `width` cells, all of them in the view's own characters, which are one cell wide."""
    cut: Line = []
    for text, style in line:
        cut.append((text[:width], style))
        width -= len(cut[-1][0])
    return cut


def _filled(line: Line, width: int) -> Line:
    """Exactly so many."""
    cut = _cut(line, width)
    return [*cut, (" " * (width - sum(len(text) for text, _ in cut)), "")]


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def _per_step(sums: Sums) -> str:
    return "-" if sums.tokens_per_step is None else f"{sums.tokens_per_step:.2f}"


def _speed(sums: Sums) -> str:
    speed = sums.tokens_per_second
    return "-" if speed is None else f"{speed:,.{0 if speed >= 100 else 1}f}"


def _length(sums: Sums) -> str:
    return "-" if sums.draft_length is None else f"{sums.draft_length:.1f}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
