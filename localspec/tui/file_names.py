"""Names of files, for completing a path that is being written."""

from __future__ import annotations

import itertools
import os
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from localspec.chat.attach import expanded

MOST_SHOWN = 20
_MOST_LOOKED_AT = 4000
"""Entries of folders; a home folder can hold millions."""
_LEAST_SEARCHED = 2
"""So many letters are looked for in folders below as well; one letter is in every name."""


def matching_paths(fragment: str) -> list[str]:
    """Paths that `fragment` may be the beginning of, written the same way; those of folders end with a slash.

    Relative to the current folder. Names that begin with the last part of `fragment` come first, then those that hold
    it; if there is only that part, names in folders below too. Hidden files are found by their dot. At most MOST_SHOWN.
    """
    if fragment == "~":
        return ["~/"]
    head, slash, tail = fragment.rpartition("/")
    folder = expanded(Path(head + slash or "."))
    found = _ranked(_named(itertools.islice(_entries(folder), _MOST_LOOKED_AT), head + slash), tail)
    if not slash and len(tail) >= _LEAST_SEARCHED:
        deeper = _ranked(_below(folder), tail)
        found = list(dict.fromkeys([*found, *deeper]))
    return found[:MOST_SHOWN]


def _ranked(paths: Iterator[str], tail: str) -> list[str]:
    wanted = tail.casefold()
    ranked = []
    for path in paths:
        name = path.rstrip("/").rpartition("/")[2]
        if name.startswith(".") and not tail.startswith("."):
            continue
        at = name.casefold().find(wanted)
        if at >= 0:
            ranked.append((path.count("/", 0, -1), at > 0, name.casefold(), path))
    return [path for *_, path in sorted(ranked)]


def _named(entries: Iterator[os.DirEntry[str]], head: str) -> Iterator[str]:
    for entry in entries:
        yield f"{head}{entry.name}{'/' if _is_folder(entry, follow=True) else ''}"


def _below(folder: Path) -> Iterator[str]:
    """What is in the folders below, the near ones first; hidden folders are left alone."""
    waiting = deque([(folder, "")])
    left = _MOST_LOOKED_AT
    while waiting and left > 0:
        here, head = waiting.popleft()
        for entry in itertools.islice(_entries(here), left):
            left -= 1
            # A link may lead back up.
            if _is_folder(entry, follow=False):
                if not entry.name.startswith("."):
                    waiting.append((Path(entry.path), f"{head}{entry.name}/"))
            elif head:
                yield head + entry.name


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            yield from entries
    except (OSError, ValueError):
        return


def _is_folder(entry: os.DirEntry[str], *, follow: bool) -> bool:
    try:
        return entry.is_dir(follow_symlinks=follow)
    except OSError:
        return False
