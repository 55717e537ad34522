"""Trying again after a failure that may be over in a moment."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from localspec.hub.hub_errors import PassingError, UnreachableError

Result = TypeVar("Result")

Pause = Callable[[float, str], None]
"""Waits so many seconds, for a reason that is a sentence. May raise, to stop waiting."""

_LONGEST_ASKED = 320.0
"""Seconds: the hub counts requests over five minutes."""
_LONGEST = 16.0


def sleep(seconds: float, _why: str) -> None:
    """Just wait."""
    time.sleep(seconds)


def patiently(
    attempt: Callable[[], Result],
    pause: Pause = sleep,
    tries: int = 4,
    progressed: Callable[[], bool] = lambda: False,
) -> Result:
    """What `attempt` returns, after up to `tries` tries in a row that failed with PassingError.

    Between them passes what the hub asks for, else 1, 2, 4... seconds. After a try in which something was `progressed`
    the count begins anew. Raises UnreachableError after the last; whatever else `attempt` raises comes through.
    """
    failed = 0
    while True:
        try:
            return attempt()
        except PassingError as error:
            failed = 1 if progressed() else failed + 1
            wait = min(_LONGEST, 2.0 ** (failed - 1)) if error.wait is None else error.wait
            if failed >= tries or wait > _LONGEST_ASKED:
                raise UnreachableError(str(error)) from error
            pause(wait, str(error))
