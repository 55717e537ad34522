"""A person who chats for hours: the real app, its engine in a process of its own and a real database, driven by keys.

`python long_session.py PLAN` plays the plan (a JSON file) and writes what it has seen beside it: a line for each look as soon
as it is made, and in the end what must be in the database. It runs in a process of its own, whose memory and handles are its
own. It keeps a model of the chats and knows nothing of the store.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from long_session_known import Plan
from long_session_looks import Traces, Work, sizes
from long_session_moves import Moves

_PROBE = "What is asked at every look: the same words, so that the same work is to be done."
_STARTED = time.monotonic()
_QUIET_SECONDS = 0.3


class Session(Moves):
    """A whole session."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        super().__init__(plan, folder)
        self._looks = folder / "looks.jsonl"
        self._traces = Traces(folder / "memory.txt") if plan.trace else None
        self._work: Work

    async def play(self) -> None:
        """All of it."""
        async with self.app.run_test(size=(100, 30)) as pilot:
            self.pilot = pilot
            await self.until(lambda: self.screen._loaded, "the model is loaded")
            store = self.app.chat.store
            assert store
            self._work = Work(self.app, store, self.backend.pid)
            moves, weights = self._moves()
            for move in moves:
                # Each at least once, however short the session is.
                await move()
            looks = 0
            while True:
                if self.counts["turns"] >= looks * self.plan.turns / self.plan.looks:
                    looks += 1
                    await self._look()
                if self.counts["turns"] >= self.plan.turns:
                    break
                await self.random.choices(moves, weights)[0]()
            await self.to_prompt()
        self.app.worker.join()
        self.app.close_store()

    def _moves(self) -> tuple[list[Any], list[int]]:
        moves = {
            self.ask: 40,
            self.edit: 8,
            self.regenerate: 8,
            self.go_on: 6,
            self.branch: 5,
            self.rewrite: 2,
            self.look_around: 2,
            self.set: 2,
        }
        if not self.plan.one_chat:
            moves |= {self.new_chat: 4, self.resume: 4}
        return list(moves), list(moves.values())

    async def _look(self) -> None:
        """The same work as at every look, and what there is of everything then; where many chats are had, in an empty one."""
        if not self.plan.one_chat:
            await self.new_chat()
        await self.to_prompt()
        if self.screen._speculation.display:
            await self.press("f2")
        self.screen.change_settings({"drafter": "auto", "temp": 0.0, "seed": 7})
        self._work.begin()
        await self.ask(_PROBE)
        work = self._work.end(self.last)
        self.screen.change_settings({"drafter": None, "temp": None, "seed": None})
        if not self.plan.one_chat:
            await self.new_chat()
        await self.to_prompt()
        await self._quiet()
        if self._traces:
            self._traces.look()
        with self._looks.open("a") as out:
            out.write(json.dumps({**self._sizes(), **work, "at": dict(self.counts), "seconds": _seconds()}) + "\n")

    def _sizes(self) -> dict[str, Any]:
        assert self.app.chat.store
        return sizes(self.app, self.backend.pid, self.folder, self.app.chat.store.path)

    async def _quiet(self) -> None:
        await self.until(lambda: not self.screen.workers._workers, "no worker is left")
        await self.until(lambda: not list(self.folder.glob("cache/**/*.part")), "nothing is being written")
        await asyncio.sleep(_QUIET_SECONDS)

    def result(self) -> dict[str, Any]:
        """What must be in the database."""
        chats = [
            {"id": chat.id, "rows": chat.as_rows(), "shown": [said.text for said in chat.path()]}
            for chat in self.chats
            if chat.first
        ]
        return {"plan": asdict(self.plan), "chats": chats, "versions": self.versions, "counts": dict(self.counts)}


def _seconds() -> float:
    return round(time.monotonic() - _STARTED, 1)


def main(file: Path) -> None:
    """Play the plan in `file`."""
    plan = Plan(**json.loads(file.read_text()))
    folder = file.parent
    for kind in ("config", "data", "cache", "log"):
        os.environ[f"LOCALSPEC_{kind.upper()}_DIR"] = str(folder / kind)
    session = Session(plan, folder)
    asyncio.run(session.play())
    (folder / "result.json").write_text(json.dumps(session.result()))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
