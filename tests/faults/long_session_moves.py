"""What a person does in a long session, each move by keys and each written down in what is known of the chats."""

from __future__ import annotations

from pathlib import Path

from long_session_app import Driven
from long_session_known import Plan, Said
from textual import events
from textual.screen import Screen
from textual.widgets import OptionList

from localspec.tui.screens.chats import ChatsScreen
from localspec.tui.screens.rewrite import RewriteScreen

_SETTINGS = (
    *(("drafter", name) for name in ("auto", "auto", "lookup", "draft", "none")),
    *(("temp", value) for value in ("0.0", "0.8", "1.2")),
)
_RECENT = 8
"""Messages that are gone back to."""
_RECENT_CHATS = 300


class Moves(Driven):
    """The moves."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        super().__init__(plan, folder)
        self.versions = 0
        """Of documents: those that must be kept."""
        self.files = [self._file(number) for number in range(6)]

    def _file(self, number: int) -> Path:
        path = self.folder / f"notes {number}.txt"
        path.write_text(self.words(self.random.randint(20, 60)) + "\n")
        return path

    async def ask(self, words: str = "") -> None:
        """A message, now and then with a file or a long paste, which is now and then taken away again; or these very words,
        whose answer is not stopped."""
        await self.to_prompt()
        how = 1.0 if words else self.random.random()
        if how < 0.12:
            await self._attach()
        elif how < 0.2:
            self.counts["pastes"] += 1
            self.prompt.post_message(events.Paste("\n".join(self.words(3) for _ in range(10))))
            await self.until(lambda: self.prompt.documents, "a long paste is a document")
        if 0.08 < how < 0.16:
            await self._remove_documents()
        self.prompt.text = words or self.words(self.random.randint(1, 12))
        text, documents = self.prompt.text, tuple(document.text for document in self.prompt.documents)
        before = self.mark()
        asked = self.now.add("user", text, documents, self.now.leaf)
        answer = self.now.add("assistant", "", (), asked)
        undo = self.undoing(asked, answer)
        await self.press("enter")
        await self.answered(answer, undo, before, whole=bool(words))

    async def _attach(self, path: Path | None = None) -> None:
        self.counts["files"] += 1
        self.prompt.attach(path or self.random.choice(self.files))
        await self.until(lambda: not self.prompt._reading, "a file is attached")

    async def _remove_documents(self) -> None:
        self.counts["documents removed"] += 1
        while self.prompt.documents:
            count = len(self.prompt.documents)
            await self._choose_document()
            await self.press("x")
            await self._fewer_documents(count)
        await self.until(lambda: self.app.focused is self.prompt, "the prompt has the focus")

    async def _fewer_documents(self, count: int) -> None:
        await self.until(lambda: len(self.prompt.documents) < count, "a document is removed")

    async def _choose_document(self) -> None:
        if not self.prompt.chips.has_focus:
            await self.press("f6")
            await self.until(lambda: self.prompt.chips.has_focus, "a document is chosen")

    async def _select(self, said: Said) -> None:
        await self.to_prompt()
        place = self.now.path().index(said)
        await self.press("ctrl+up")
        await self.until(lambda: self.screen._transcript.chosen is not None, "the last message is selected")
        for _ in range(len(self.now.path()) - 1 - place):
            await self.press("up")
        entry = self.screen._chat.thread.path()[place]
        await self.until(lambda: self.screen._transcript.chosen == entry.id, f"message {place} is selected")

    def _one(self, role: str) -> Said | None:
        path = [said for said in self.now.path()[-_RECENT:] if said.role == role]
        return self.random.choice(path) if path else None

    async def edit(self) -> None:
        """Another message in the place of one; or nothing in the end."""
        said = self._one("user")
        if said is None:
            return
        await self._select(said)
        await self.press("e")
        await self.until(lambda: self.screen._editing, "a message is edited")
        self.prompt.text = self.words(self.random.randint(2, 8)) + f" {self.counts['turns']}"
        if self.random.random() < 0.3:
            self.counts["edits left"] += 1
            await self.press("escape")
            await self.until(lambda: not self.screen._editing, "the edit is left")
            return
        self.counts["edits"] += 1
        before = self.mark()
        asked = self.now.add("user", self.prompt.text, said.documents, said.parent)
        answer = self.now.add("assistant", "", (), asked)
        undo = self.undoing(asked, answer)
        await self.press("enter")
        await self.answered(answer, undo, before)
        if self.screen._editing:
            await self.press("escape")

    async def regenerate(self) -> None:
        """Another answer."""
        said = self._one("assistant")
        if said is None:
            return
        self.counts["regenerations"] += 1
        await self._select(said)
        before = self.mark()
        answer = self.now.add("assistant", "", (), said.parent)
        undo = self.undoing(answer)
        await self.press("r")
        await self.answered(answer, undo, before)

    async def go_on(self) -> None:
        """An answer continued."""
        said = self._one("assistant")
        if said is None or said.ended:
            return
        self.counts["continuations"] += 1
        await self._select(said)
        before = self.mark()
        answer = said
        added: list[Said] = []
        if said.children:
            answer = self.now.add("assistant", said.text, (), said.parent)
            added = [answer]
        self.now.leaf = answer
        undo = self.undoing(*added)
        await self.press("c")
        await self.answered(answer, undo, before)

    async def branch(self) -> None:
        """The one beside."""
        path = [said for said in self.now.path() if len(self.now.siblings(said)) > 1]
        if not path:
            return
        said = self.random.choice(path[-4:])
        self.counts["branches"] += 1
        await self._select(said)
        siblings, by = self.now.siblings(said), self.random.choice((-1, 1))
        at = siblings.index(said) + by
        await self.press("left" if by < 0 else "right")
        if 0 <= at < len(siblings):
            self.now.show(siblings[at])
            await self.until(lambda: self.screen._chat.thread.path()[-1].text == self.now.path()[-1].text, "a branch")

    async def new_chat(self) -> None:
        """Another chat, unless this one is empty."""
        if self.now.first:
            self.counts["new chats"] += 1
            await self.to_prompt()
            await self.leave()

    async def resume(self) -> None:
        """An earlier chat from the list."""
        await self.to_prompt()
        known = [chat for chat in self.chats if chat.id is not None and chat.first and chat is not self.now]
        known = known[-_RECENT_CHATS:]
        if not known:
            return
        self.counts["resumed"] += 1
        chat = self.random.choice(known)
        await self.press("ctrl+r")
        await self.until(lambda: isinstance(self.app.screen, ChatsScreen), "the list of chats")
        await self.until(lambda: self.app.screen.query(OptionList) and self._listed(), "the chats are listed")
        listed = self._listed()
        self.app.screen.query_one(OptionList).focus()
        self.app.screen._list.highlighted = listed.index(chat.id)  # type: ignore[attr-defined]
        await self.press("enter")
        await self.until(lambda: self.screen._chat.id == chat.id, "the chat is open")
        await self.in_front()
        if not self.now.first:
            self.chats.remove(self.now)
        self.now = chat

    def _listed(self) -> list[int]:
        screen = self.app.screen
        assert isinstance(screen, ChatsScreen)
        return [int(screen._list.get_option_at_index(place).id or 0) for place in range(screen._list.option_count)]

    async def rewrite(self) -> None:
        """A document rewritten, to the end or not, its changes taken or left."""
        await self.to_prompt()
        await self._remove_documents()
        # A new text: a rewriting goes on from the last version, and what this model writes is three times as long.
        self._file(0)
        await self._attach(self.files[0])
        self.counts["rewrites"] += 1
        await self._choose_document()
        await self.press("w")
        await self.until(lambda: isinstance(self.app.screen, RewriteScreen), "the rewrite screen")
        screen = self.app.screen
        assert isinstance(screen, RewriteScreen)
        had = len(screen._history.versions)
        screen._instruction.put(f"Say it better, {self.words(2)}.")
        screen._instruction.focus()
        await self.press("enter")
        await self.until(lambda: screen.is_writing or screen._run_figures.totals.steps, "the rewriting begins")
        if self.random.random() < 0.4:
            self.counts["rewrites stopped"] += 1
            await self.until(lambda: not screen.is_writing or screen._run_figures.totals.steps > 3, "it is written")
            if screen.is_writing:
                await self.press("escape")
        await self.until(lambda: not screen.is_writing, "the rewriting is over")
        self.versions += len(screen._history.versions) - had
        if screen._history.current:
            await self.press(self.random.choice("ARanp"))
        screen._result.focus()
        while self.app.screen is screen:
            await self.press("escape")
        await self.in_front()
        await self._remove_documents()

    async def look_around(self) -> None:
        """Keys that change nothing."""
        self.counts["looks around"] += 1
        await self.to_prompt()
        for _ in range(2):
            key = self.random.choice(("f2", "f3", "f1", "ctrl+o"))
            screen = self.app.screen
            await self.press(key)
            if key in ("f1", "ctrl+o"):
                await self._another_than(screen)
                await self.press("escape")
                await self.in_front()

    async def _another_than(self, screen: Screen[object]) -> None:
        await self.until(lambda: self.app.screen is not screen, "another screen")

    async def set(self) -> None:
        """Another way of answering."""
        await self.to_prompt()
        name, value = self.random.choice(_SETTINGS)
        self.counts["settings"] += 1
        self.prompt.text = f"/set {name} {value}"
        await self.press("enter")
        await self.until(lambda: str(self.screen._chat.settings.get(name)) == value, f"{name} is {value}")
