"""A chat as a text of its own, to keep or to send."""

import json
import re
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

from localspec.chat.store import Chat
from localspec.chat.thread import Entry
from localspec.engine.rates import finite
from localspec.literal import literal_json

_UNTITLED = "Untitled chat"
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_LINE_END = re.compile(r"\r\n|\r|\n")
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~])")


def to_markdown(chat: Chat) -> str:
    """The branch that is shown: title, time and model, and who said what. Times are local.

    What was said stays as it is; a code fence that an answer did not close is closed behind it. Documents are named.
    """
    info = chat.info
    about = [f"- Date: {_local(info.created):%Y-%m-%d %H:%M}"] if info.created else []
    if info.model:
        about.append(f"- Model: {_escaped(info.model)}")
    parts = [f"# {_escaped(info.title) or _UNTITLED}", *(["\n".join(about)] if about else [])]
    if chat.system:
        parts += ["## System prompt", _closed(chat.system)]
    for entry in chat.thread.path():
        parts += _said(entry)
    return "\n\n".join(parts) + "\n"


def to_json(chat: Chat) -> str:
    """Everything: all messages of all branches, and which branch is shown. Times are ISO 8601 with the local offset."""
    info, thread = chat.info, chat.thread
    document = {
        "id": info.id,
        "title": info.title,
        "model": info.model,
        "created": _iso(info.created),
        "updated": _iso(info.updated),
        "system": chat.system,
        "settings": chat.settings,
        "shown": [entry.id for entry in thread.path()],
        "messages": [_values(thread.entries[id_]) for id_ in sorted(thread.entries)],
    }
    return literal_json(json.dumps(finite(document), ensure_ascii=False, allow_nan=False, indent=2)) + "\n"


def _values(entry: Entry) -> dict[str, Any]:
    """Where the person's files lie is nobody's business."""
    documents = [{"name": document.name, "text": document.text} for document in entry.documents]
    return {**asdict(replace(entry, documents=())), "documents": documents}


def _said(entry: Entry) -> list[str]:
    parts = ["## You" if entry.role == "user" else "## Assistant"]
    if entry.documents:
        parts.append("\n".join(f"- Document: {_escaped(document.name)}" for document in entry.documents))
    if entry.text.strip():
        parts.append(_closed(entry.text))
    return parts


def _closed(text: str) -> str:
    """`text` without the empty lines around it; a fence left open would swallow what comes behind."""
    text, fence = text.strip("\r\n").rstrip(), ""
    for line in _LINE_END.split(text):
        found = _FENCE.fullmatch(line)
        if not found:
            continue
        mark, rest = found.groups()
        if not fence:
            # Behind backticks there is no other: that is code within a line.
            fence = "" if mark[0] == "`" and "`" in rest else mark
        elif mark.startswith(fence) and not rest.strip():
            fence = ""
    return text + (f"\n{fence}" if fence else "")


def _escaped(text: str) -> str:
    """`text` on one line, with nothing in it that Markdown would take for its own."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def _iso(seconds: float) -> str:
    return _local(seconds).isoformat(timespec="seconds")


def _local(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds).astimezone()
