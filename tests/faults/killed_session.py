"""A session that is going to be killed: what a person does in a chat, with the app's own parts and without its screen.

Run in a process of its own. Before anything is done, what it is stands on stdout, and behind it that it is done: whoever
reads that knows what has to be on the disk.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from localspec.chat.messages import Document
from localspec.chat.store import STORE_FILE, Store
from localspec.engine.step import Finish
from localspec.tui.open_chat import OpenChat
from localspec.tui.unsent import Draft, Unsent
from localspec.tui.version_history import VersionHistory

WORDS = ["the", "quick", "brown", "fox", "jumps", "over", "the", "lazy", "dog", "and", "writes", "another", "word"]


def say(**what: Any) -> None:
    """One line, in one piece, or none of it."""
    os.write(1, json.dumps(what).encode() + b"\n")


class Session:
    """`run` numbers the processes of one folder: no two messages have the same words."""

    def __init__(self, folder: Path, run: int) -> None:
        self.run, self.count, self.clock = run, 0, 0.0
        self.random = random.Random(run)
        self.store = Store(folder / STORE_FILE)
        self.chat = OpenChat(self.store, model="scripted")
        self.unsent = Unsent(folder)
        say(took=self.unsent.take().text)
        if chats := self.store.chats(limit=1):
            self.chat.load(chats[0].id)

    def kill_after(self, instructions: int) -> None:
        """Die inside the database, after so many of its instructions."""
        left = instructions

        def count() -> int:
            nonlocal left
            left -= 1
            if left <= 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return 0

        self.store._database.set_progress_handler(count, 1)

    def words(self) -> str:
        """Words that nobody has written before."""
        self.count += 1
        return f"<{self.run}.{self.count}> {' '.join(self.random.choices(WORDS, k=self.random.randint(1, 60)))}"

    def do(self, what: str, tag: str, text: str, act: Callable[[], object]) -> None:
        """`tag` is the message that it happens to, `text` what that is then; empty where it is gone."""
        say(begun=what, tag=tag, text=text)
        act()
        say(done=what, tag=tag, text=text)

    def turn(self) -> None:
        """A message and its answer, stopped or not; or taken back before a word has come."""
        words = self.words()
        tag = words.split()[0]
        self.do("draft", "draft", words, lambda: self.unsent.keep(Draft(words)))
        documents = [Document("d.txt", self.words() * 50)] if self.random.random() < 0.2 else []
        path = [entry for entry in self.chat.thread.path() if entry.role == "user"]
        if path and self.random.random() < 0.2:
            place = self.random.choice(path).id
            self.do("edit", tag, words, lambda: self.chat.ask_instead(place, words, documents))
        else:
            self.do("ask", tag, words, lambda: self.chat.ask(words, documents))
        self.do("draft", "draft", "", lambda: self.unsent.keep(Draft()))
        if self.random.random() < 0.15:
            self.do("take back", tag, "", self.chat.take_back)
            return
        self.answer()

    def answer(self) -> None:
        """Piece by piece, each a second after the one before, so that each is saved."""
        tag, text = "", ""
        for _ in range(self.random.randint(1, 8)):
            piece = self.words() + " "
            tag, text = tag or piece.split()[0], text + piece
            self.clock += 1.0
            self.do("grow", tag, text, lambda piece=piece: self.chat.grow(piece, self.clock))  # type: ignore[misc]
        self.do("finish", tag, text, lambda: self.chat.finish(Finish.STOP, {"tokens": 3}))

    def again(self) -> None:
        """Another answer to the last message."""
        last = self.chat.thread.path()[-1]
        self.chat.answer_again(last.id)
        self.answer()

    def rewrite(self) -> None:
        """A version of a document."""
        document = Document("d.txt", self.words() * 20)
        history = VersionHistory(self.store, document)
        history.begin("Say it better.")
        for _ in range(3):
            history._saved_at = -1e9
            history.grow(self.words())
        history.finish(Finish.STOP)

    def other(self) -> None:
        """What changes no message."""
        act = self.random.choice(
            (
                lambda: self.chat.rename(self.words()),
                lambda: self.chat.configure(self.words(), {"temp": 0.5}),
                lambda: self.store.chats(self.random.choice(WORDS)),
                self.chat.begin,
                lambda: self.chat.load(self.random.choice(self.store.chats()).id),
                self.rewrite,
            )
        )
        self.do("other", "", "", act)

    def play(self) -> None:
        """Until it is killed."""
        self.turn()
        while True:
            self.random.choices((self.turn, self.again, self.other), (6, 1, 2))[
                0
            ]() if self.chat.thread.leaf else self.turn()


if __name__ == "__main__":
    session = Session(Path(sys.argv[1]), int(sys.argv[2]))
    if int(sys.argv[3]):
        session.kill_after(int(sys.argv[3]))
    session.play()
