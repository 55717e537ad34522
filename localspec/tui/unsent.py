"""What stood in the prompt when the app was left: it stands there again at the next start."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Sequence
from pathlib import Path

from localspec.chat.messages import Document

UNSENT_FILE = "unsent.json"
"""Its name in the data folder."""

_log = logging.getLogger("localspec.tui")


def keep(folder: Path, text: str, documents: Sequence[Document]) -> None:
    """Write it down; nothing is written where nothing was left. A folder that cannot be written is only logged: the app is
    about to close."""
    if not text.strip() and not documents:
        return
    values = {"text": text, "documents": [[document.name, document.text] for document in documents]}
    part = folder / f"{UNSENT_FILE}.{os.getpid()}"
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            json.dump(values, file)
        part.replace(folder / UNSENT_FILE)
    except OSError:
        _log.exception("what was not sent could not be kept")


def take(folder: Path) -> tuple[str, list[Document]]:
    """What was kept, which is forgotten by that; empty when there is nothing that can be read."""
    file = folder / UNSENT_FILE
    mine = folder / f"{UNSENT_FILE}.{os.getpid()}"
    try:
        # Of two apps that start at once only one can rename it.
        file.rename(mine)
        values = json.loads(mine.read_text(encoding="utf-8"))
        mine.unlink()
        return str(values["text"]), [Document(str(name), str(text)) for name, text in values["documents"]]
    except FileNotFoundError:
        return "", []
    except (OSError, ValueError, KeyError, TypeError):
        _log.exception("what was not sent could not be read")
        return "", []
