"""What the last audit of a model has found, kept until another one is made or the model is opened in another way."""

import json
import os
import time
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from localspec.measure.audit import Audit

AUDIT_FILE = "audits.json"


def audit_key(model: Path, threads: int, kv_type: str, gpu_layers: int) -> str:
    """What a verdict holds for: the file of the target, how it is opened, and the library that opens it."""
    try:
        library = version("llama-cpp-python")
    except PackageNotFoundError:
        library = "unknown"
    try:
        state = model.stat()
    except OSError:
        return ""
    file = f"{model.name}/{state.st_size}/{state.st_mtime_ns}"
    return f"{file}/gpu{gpu_layers}/threads{threads}/{kv_type}/llama-cpp-python {library}"


def keep_audit(folder: Path, key: str, audit: Audit, draft: str | None) -> None:
    """Keep a verdict in the cache folder, which exists. One that cannot be kept is only said once."""
    if not key or not audit.wide:
        return
    found = {
        "day": time.strftime("%Y-%m-%d"),
        "draft": draft,
        "tokens": audit.tokens,
        "wide": audit.wide,
        "flips": len(audit.flips),
        "max_gap": round(audit.max_gap, 4),
        "longest": max(token.position for token in audit.judged),
    }
    file = folder / AUDIT_FILE
    part = file.with_name(f"{file.name}.{os.getpid()}")
    try:
        part.write_text(json.dumps({**_read(file), key: found}, indent=1), encoding="utf-8")
        part.replace(file)
    except OSError:
        part.unlink(missing_ok=True)


def last_audit(folder: Path, model: Path, threads: int, kv_type: str, gpu_layers: int) -> str | None:
    """A sentence about the last audit of `model` opened like that on this machine, None where there was none. `folder`: the
    cache folder."""
    found = _read(folder / AUDIT_FILE).get(audit_key(model, threads, kv_type, gpu_layers))
    if not isinstance(found, Mapping):
        return None
    try:
        flips, tokens, gap = int(found["flips"]), int(found["tokens"]), float(found["max_gap"])
        day, longest = str(found["day"]), int(found["longest"])
    except (KeyError, TypeError, ValueError):
        return None
    return f"Audited on {day}: {verdict(flips, tokens, gap, longest)}"


def verdict(flips: int, tokens: int, gap: float, longest: int) -> str:
    """The finding of an audit, in words."""
    if flips:
        behind = f"the top two at most {gap:.2f} logit apart"
        return f"{flips} of {tokens} tokens would have been others by plain decoding, {behind}."
    return f"none of {tokens} tokens would have been another by plain decoding, in contexts of up to {longest} tokens."


def _read(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
