"""What there is of everything at one moment of a long session, and what the same work costs then."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import time
import tracemalloc
from collections import Counter
from pathlib import Path
from typing import Any

from long_session_known import Heard
from textual.app import App
from textual.dom import DOMNode
from textual.timer import Timer
from textual.widget import Widget

from localspec.chat.store import Store

_DATABASE_STEPS = 100
"""Of SQLite's virtual machine: so many are counted at once."""
_FEW = 3
"""Objects of a kind that are not worth a word."""
_TOP = 25


class Work:
    """What an answer makes this process and the engine's do."""

    def __init__(self, app: App[None], store: Store, engine: int) -> None:
        """`engine`: its process."""
        self._engine = engine
        self._done = Counter[str]()
        store._database.set_progress_handler(self._database_works, _DATABASE_STEPS)
        store._database.set_trace_callback(self._statement)
        register = app._register

        def registering(parent: DOMNode, *widgets: Widget, **where: Any) -> list[Widget]:
            new = register(parent, *widgets, **where)
            self._done["widgets"] += len(new)
            return new

        app._register = registering  # type: ignore[method-assign]

    def begin(self) -> None:
        """Count from here."""
        self._done.clear()
        self._processor, self._engine_processor = time.process_time(), _processor_seconds(self._engine)
        self._wall = time.perf_counter()

    def end(self, heard: Heard) -> dict[str, Any]:
        """What was done for an answer: counts, and milliseconds by target pass."""
        per_step = 1000 / max(1, heard.steps)
        return {
            "statements": self._done["statements"],
            "database": self._done["database"],
            "mounted": self._done["widgets"],
            "tokens": heard.tokens,
            "steps": heard.steps,
            "rows": heard.rows,
            "prompt": heard.prompt,
            "stream": heard.stream,
            "app_ms": per_step * (time.process_time() - self._processor),
            "engine_ms": per_step * (_processor_seconds(self._engine) - self._engine_processor),
            "host_ms": per_step * heard.host_ms / 1000,
            "wall_ms": per_step * (time.perf_counter() - self._wall),
        }

    def _database_works(self) -> int:
        self._done["database"] += 1
        return 0

    def _statement(self, _sql: str) -> None:
        self._done["statements"] += 1


class Traces:
    """Where memory that was not there before was taken."""

    def __init__(self, file: Path) -> None:
        """`file` is written anew at each look."""
        self._file = file
        self._first: tracemalloc.Snapshot | None = None
        tracemalloc.start(12)

    def look(self) -> None:
        """The most, since the first look."""
        now = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(False, tracemalloc.__file__)])
        if self._first is None:
            self._first = now
            return
        grown = now.compare_to(self._first, "traceback")
        lines = [f"{sum(found.size_diff for found in grown) / 1e6:.1f} MB in all"]
        for found in grown[:_TOP]:
            lines += [f"{found.size_diff / 1e3:.0f} kB, {found.count_diff} blocks", *found.traceback.format()]
        self._file.write_text("\n".join(lines))


def sizes(app: App[None], engine: int, folder: Path, database: Path) -> dict[str, Any]:
    """Memory in bytes, and how much there is of everything else. `engine`: its process; `folder`: where all files are."""
    gc.collect()
    things = gc.get_objects()
    kinds = Counter(f"{type(thing).__module__}.{type(thing).__qualname__}" for thing in things)
    own = {name: count for name, count in kinds.items() if name.startswith(("localspec", "textual")) and count > _FEW}
    return {
        "rss": _rss(os.getpid()),
        "engine_rss": _rss(engine),
        "descriptors": _count(Path("/proc/self/fd")),
        "engine_descriptors": _count(Path(f"/proc/{engine}/fd")),
        "threads": threading.active_count(),
        "engine_threads": _count(Path(f"/proc/{engine}/task")),
        "children": sum(len((task / "children").read_text().split()) for task in Path("/proc/self/task").iterdir()),
        "tasks": len(asyncio.all_tasks()),
        "timers": sum(isinstance(thing, Timer) for thing in things),
        "widgets": sum(isinstance(thing, Widget) for thing in things),
        "on_screen": len(app.screen.query("*")),
        "all_objects": len(things),
        "objects": own,
        "files": sorted(str(path.relative_to(folder)) for path in folder.rglob("*")),
        "bytes": {path.name: path.stat().st_size for path in database.parent.glob("*") if path.is_file()},
        "log": sum(path.stat().st_size for path in (folder / "log").glob("*")),
    }


def _count(folder: Path) -> int:
    return len(list(folder.iterdir()))


def _rss(process: int) -> int:
    """Bytes."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("VmRSS")).split()[1])


def _processor_seconds(process: int) -> float:
    """Of all threads that live."""
    tasks = Path(f"/proc/{process}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9
