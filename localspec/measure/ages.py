"""How long ago something was measured, in words and as a moment."""

from datetime import UTC, datetime

JUST_NOW = "just now"
_DAY, _FRESH = 86_400, 300


def ago(at: float | None, now: float) -> str | None:
    """As in "12 days ago, on 2026-05-12"; both times in seconds since 1970. None for what is no time."""
    when = moment(at)
    if at is None or when is None:
        return None
    if abs(now - at) < _FRESH:
        return JUST_NOW
    day, days = when[:10], int((now - at) // _DAY)
    if days < 0:
        # The clock was put back.
        return f"on {day}"
    words = "less than a day ago" if not days else "a day ago" if days == 1 else f"{days} days ago"
    return f"{words}, on {day}"


def moment(at: float | None) -> str | None:
    """As in 2026-05-12T14:03:00+00:00; None for what is no time."""
    try:
        return None if at is None else datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")
    except (OverflowError, OSError, ValueError):
        return None
