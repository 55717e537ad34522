"""How long something takes, in words."""

import time

_MOST_SECONDS = 100 * 3600


def clock(seconds: float) -> str:
    """As in 4:59 or 1:02:03; more than some days are "days", whatever they are."""
    if not seconds < _MOST_SECONDS:
        return "days"
    seconds = max(0.0, seconds)
    minutes, rest = divmod(int(seconds + 0.5), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def time_left(started: float, done: int, total: int) -> str:
    """As in ", 12 s left" or ", 3 min left", if it goes on like since `started`, a time of time.monotonic; empty before the
    first is done."""
    if not done:
        return ""
    left = max(0.0, (time.monotonic() - started) / done * (total - done))
    return f", {left:.0f} s left" if left < 90 else f", {left / 60:.0f} min left"
