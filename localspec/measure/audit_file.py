"""What the last audit of a model has found, kept until another one is made or the model is opened in another way."""

import contextlib
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from localspec.measure.ages import ago
from localspec.whole_file import put_entry, read_entries

if TYPE_CHECKING:
    from localspec.measure.audit import Audit

AUDIT_FILE = "audits.json"


def keep_audit(folder: Path, opened: str, audit: "Audit", draft: str | None) -> None:
    """Keep a verdict in the cache folder, which exists. `opened`: what it holds for, by Engine.opened. One that cannot be
    kept is only said once."""
    if not opened or not audit.wide:
        return
    found = {
        "measured": int(time.time()),
        "draft": draft,
        "tokens": audit.tokens,
        "wide": audit.wide,
        "flips": len(audit.flips),
        "max_gap": round(audit.max_gap, 4),
        "longest": max(token.position for token in audit.judged),
    }
    with contextlib.suppress(OSError):
        put_entry(folder / AUDIT_FILE, opened, found)


def last_audit(folder: Path, opened: str, now: float | None = None) -> str | None:
    """A sentence about the last audit of what was opened like that on this machine, with its age; None where there was none.
    `folder`: the cache folder. `now`: in seconds since 1970; None: now."""
    found = read_entries(folder / AUDIT_FILE).get(opened) if opened else None
    if not isinstance(found, Mapping):
        return None
    try:
        flips, tokens, gap = int(found["flips"]), int(found["tokens"]), float(found["max_gap"])
        measured, longest = float(found["measured"]), int(found["longest"])
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
    when = ago(measured, time.time() if now is None else now)
    return f"Audited {when}: {verdict(flips, tokens, gap, longest)}" if when else None


def verdict(flips: int, tokens: int, gap: float, longest: int) -> str:
    """The finding of an audit, in words. `gap`: the largest of a flipped token. `longest`: tokens of context."""
    where = f"in contexts of up to {longest} tokens"
    if not flips:
        return f"none of {tokens} tokens would have been another by plain decoding, {where}."
    others = "another" if flips == 1 else "others"
    behind = "the written one is" if flips == 1 else "the written ones are at most"
    return (
        f"{flips} of {tokens} tokens would have been {others} by plain decoding, {where}; by its logits {behind} "
        f"{gap:.2g} behind."
    )
