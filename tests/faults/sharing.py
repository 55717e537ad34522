"""What processes of their own do to files that others use as well."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

CHANGES = ("deleted", "emptied", "cut", "replaced", "overwritten")
"""What may happen to a model's file: it goes, or loses its content, or its second half; another takes its name, or is written
over it."""
MOMENTS = ("before it is opened", "while it is read")


def change(path: Path, how: str, other: Path) -> None:
    """Do it. `other` is a model of the same measures."""
    if how == "deleted":
        path.unlink()
    elif how == "emptied":
        os.truncate(path, 0)
    elif how == "cut":
        os.truncate(path, path.stat().st_size // 2)
    elif how == "replaced":
        new = path.with_name("new")
        new.write_bytes(other.read_bytes())
        new.replace(path)
    else:
        with path.open("r+b") as file:
            file.write(other.read_bytes())


def prepare(model: Path, progress: object, cancelled: object) -> Any:
    """Engine settings, in the engine's process."""
    from localspec.engine.engine import EngineSettings

    return EngineSettings(model, context_length=512, threads=1)


def prepare_badly(model: Path, how: str, other: Path, moment: str, progress: object, cancelled: object) -> Any:
    """The same, and the file changes once the engine has looked into it, or when llama.cpp has begun to read."""
    from localspec.engine.engine import Engine

    load = Engine._load

    def loaded(engine: Engine, header: Any, name: str, tell: Callable[[str, float], bool | None] | None) -> Any:
        def told(what: str, share: float) -> bool | None:
            if model.exists() and not done:
                done.append(how)
                change(model, how, other)
            return tell(what, share) if tell else None

        done: list[str] = []
        if moment == MOMENTS[0]:
            told(name, 0.0)
        return load(engine, header, name, told)

    Engine._load = loaded  # type: ignore[method-assign, assignment]
    return prepare(model, progress, cancelled)


def write(kind: str, folder: Path, writer: str, count: int) -> None:
    """Put `count` entries into a file that other writers put theirs into."""
    from localspec.config_file import update_config
    from localspec.engine.measuring import save_curve
    from localspec.hub.origins import record_origins
    from localspec.hub.remote import RemoteFile
    from localspec.whole_file import put_entry

    for number in range(count):
        name = f"{writer}{number}"
        if kind == "costs":
            save_curve(folder / kind, name, {1: 1.0, 2: 2.0, 4: 4.0})
        elif kind == "audits":
            put_entry(folder / kind, name, {"flips": 0})
        elif kind == "settings":
            update_config(folder / kind, {name: number})
        else:
            (folder / name).touch()
            record_origins(folder, {name: RemoteFile("user/repo", "c" * 40, name, 0, "e", None)})


def hold_lock(folder: Path) -> None:
    """Take the lock of a folder, and never give it back."""
    from localspec.whole_file import locked

    with locked(folder):
        os.write(1, b"held\n")
        sys.stdin.read()


if __name__ == "__main__":
    if sys.argv[1] == "hold":
        hold_lock(Path(sys.argv[2]))
    else:
        write(sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
