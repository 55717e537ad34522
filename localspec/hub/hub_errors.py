"""What the hub refuses, as sentences that say what to do."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

from localspec.engine.errors import UserError

_QUOTE_CHARACTERS = 120
_MOST_DIGITS = 12
"""Nobody waits for thousands of years."""
_RATE_LIMIT = re.compile(r";\s*r\s*=\s*0\s*;\s*t\s*=\s*(\d{1,9})", re.ASCII)
_PASSING = (408, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529)


class OfflineError(UserError):
    """HF_HUB_OFFLINE is set."""


class UnreachableError(UserError):
    """The hub did not answer, or is out of order, for longer than we tried."""


class PassingError(Exception):
    """A failure that may be over in a moment."""

    def __init__(self, sentence: str, wait: float | None = None) -> None:
        super().__init__(sentence)
        self.wait = wait
        """Seconds that the hub asks to wait."""


@dataclass(frozen=True)
class Asked:
    """What was asked of the hub, for the sentences."""

    endpoint: str
    repository: str
    revision: str | None = None
    file: str | None = None
    has_token: bool = False


def refusal(status: int, headers: Mapping[str, str], asked: Asked) -> UserError | PassingError:
    """The error for an answer with a status from 400 on. Header names are in lower case."""
    if status in _PASSING:
        wait = asked_wait(headers)
        if status == 429:
            when = f"in {_duration(wait)}" if wait else "in some minutes"
            more = "" if asked.has_token else "; with a token in HF_TOKEN it allows more"
            return PassingError(f"The hub has had too many requests from here: try again {when}{more}.", wait)
        return PassingError(f"The hub is out of order (status {status}): try again later.", wait)
    code, repository = headers.get("x-error-code", ""), asked.repository
    if code == "GatedRepo":
        page = f"{asked.endpoint}/{repository}"
        if asked.has_token:
            return UserError(
                f"{repository} is gated, and the account of this token has no access: ask for it at {page}, or set "
                "HF_TOKEN to a token of an account that has it."
            )
        return UserError(
            f"{repository} is gated: accept its conditions at {page} and set HF_TOKEN to a token of that account."
        )
    if code == "RevisionNotFound":
        return UserError(
            f"{repository} has no revision {asked.revision}: give a branch, a tag or a commit, or leave out "
            f"@{asked.revision}."
        )
    if code == "EntryNotFound" or (status == 404 and asked.file and code != "RepoNotFound"):
        return UserError(f"{repository} has no file {asked.file} any more: leave out the revision and try again.")
    if status == 401 and asked.has_token and code != "RepoNotFound":
        return UserError(
            f"The hub does not accept the token: set HF_TOKEN to a valid one from {asked.endpoint}/settings/tokens, or "
            "unset it."
        )
    if status in (401, 404):
        return UserError(
            f"The hub has no repository {repository}, or it is private: check the name, or set HF_TOKEN to a token that "
            "may read it."
        )
    said = "".join(filter(str.isprintable, headers.get("x-error-message", "")))
    reason = said.strip()[:_QUOTE_CHARACTERS].rstrip(".") or f"status {status}"
    if status == 403:
        return UserError(
            f"The hub refuses access to {repository} ({reason}): set HF_TOKEN to a token that may read it."
        )
    return UserError(f"The hub does not give {repository} ({reason}): check the name and HF_ENDPOINT, if that is set.")


def asked_wait(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Seconds that an answer asks to wait: Retry-After, in seconds or as a date, else the time until the rate limit of
    the hub is reset."""
    value = headers.get("retry-after", "").strip()
    if value.isascii() and value.isdigit():
        return float(value[:_MOST_DIGITS])
    with contextlib.suppress(ValueError, TypeError, OverflowError):
        return max(0.0, parsedate_to_datetime(value).timestamp() - (time.time() if now is None else now))
    found = _RATE_LIMIT.search(headers.get("ratelimit", ""))
    return float(found[1]) if found else None


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} seconds" if seconds < 100 else f"{seconds / 60:.0f} minutes"
