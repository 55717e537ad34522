"""How far downloads are."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content
from textual.widgets import Static

from localspec.durations import clock
from localspec.tui.downloads import Download, State
from localspec.tui.literal import literal
from localspec.tui.shelf import size

_BAR_CELLS = 12
_EIGHTHS = " ▏▎▍▌▋▊▉█"


class PullLines(Static):
    """A line for each download under way."""

    def show(self, downloads: Sequence[Download]) -> None:
        """Those there are now; nothing takes no place."""
        self.display = bool(downloads)
        self.update(Content("\n").join(pull_line(download) for download in downloads))


def pull_line(download: Download) -> Content:
    """A bar, the bytes, the speed and the time left."""
    name = Content(literal(download.name))
    if download.note:
        return name + Content.styled(f"  {literal(download.note)}", "$text-warning")
    if download.state is State.ASKING or not download.total:
        return name + Content.styled(f"  {download.state.value}", "dim")
    return name + Content("  ") + _bar(download.share) + Content(f"  {progress_words(download)}")


def progress_words(download: Download) -> str:
    """As in "42 %  512 MB of 1.1 GB  12 MB/s  1:02 left"."""
    words = [f"{int(100 * download.share)} %", f"{size(download.done)} of {size(download.total)}"]
    if download.speed:
        words.append(f"{size(int(download.speed))}/s")
    if (left := download.seconds_left) is not None and download.done < download.total:
        words.append(f"{clock(left)} left")
    return "  ".join(words)


def _bar(share: float) -> Content:
    whole, part = divmod(round(max(0.0, min(1.0, share)) * _BAR_CELLS * 8), 8)
    bar = (_EIGHTHS[8] * whole + (_EIGHTHS[part] if part else "")).ljust(_BAR_CELLS)
    return Content.styled(bar, "$primary on $foreground 15%")
