"""Times as a person says them."""

from datetime import datetime, timedelta

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def when(at: float, now: datetime) -> str:
    """`at` (seconds since the epoch) in words: "today 14:03", "yesterday", "12 May", "12 May 2024".

    `now` is local time; a moment in its future has a date, too.
    """
    try:
        moment = datetime.fromtimestamp(at, now.tzinfo)
    except (OverflowError, OSError, ValueError):
        return ""
    if moment.date() == now.date():
        return f"today {moment:%H:%M}"
    if moment.date() == now.date() - timedelta(days=1):
        return "yesterday"
    day = f"{moment.day} {_MONTHS[moment.month - 1]}"
    return day if moment.year == now.year else f"{day} {moment.year}"
