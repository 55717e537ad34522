"""What time it is, for a file that outlives wrong clocks."""

import sqlite3
import time

_LAST = 253_370_764_800.0
"""1 January 9999: what a calendar can say."""
EARLIEST = 1_735_689_600.0
"""1 January 2025. No chat is older than this program: a clock that says so has lost its battery."""

_NEWEST = """SELECT max(coalesce((SELECT max(updated) FROM chats), 0), coalesce((SELECT max(deleted_at) FROM chats), 0),
    coalesce((SELECT max(updated) FROM versions), 0))"""


def now() -> float:
    """Seconds since the epoch, to be written down; the order of things never depends on them."""
    return max(time.time(), EARLIEST)


def moment(kept: object) -> float:
    """A time that was kept, as a calendar can say it: a damaged one is that of the beginning."""
    return float(kept) if isinstance(kept, int | float) and 0 <= kept <= _LAST else 0.0


def now_for_dropping(database: sqlite3.Connection) -> float:
    """By what the age is judged of that which is dropped when it is old: no later than the newest that is in the file.

    A clock that has run ahead for once makes nothing old; for who comes back after a year, it is dropped a little later."""
    (newest,) = database.execute(_NEWEST).fetchone()
    return min(now(), moment(newest))
