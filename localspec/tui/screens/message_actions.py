"""What can be done with a message: change it, have it answered again or continued, copy it, see another branch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from textual import events, on
from textual.content import Content

from localspec.chat.messages import Document
from localspec.chat.thread import Entry
from localspec.engine.step import Finish
from localspec.tui.fences import code_blocks
from localspec.tui.open_chat import Writing
from localspec.tui.screens.answering import Answering
from localspec.tui.thinking import without_thoughts
from localspec.tui.unsent import MOST_EDITS, Draft
from localspec.tui.widgets.transcript import Transcript

_BRANCH_KEYS = ("left right branch",)
_MESSAGE_KEYS = ("e edit", "r again", "y copy", "esc back")
_ANSWER_KEYS = ("e edit", "r again", "c continue", "y copy", "b code", "esc back")


@dataclass(frozen=True)
class _Editing:
    """A message whose text is in the prompt, and what was there before."""

    entry: int
    words: str
    documents: tuple[Document, ...]


class MessageActions(Answering):
    """The actions take the message that is selected, else the last one that they make sense for."""

    _editing: _Editing | None = None
    _abandoned: dict[tuple[int | None, int], tuple[str, tuple[Document, ...]]]
    """What was written in edits that were left, by chat and message."""
    _copied: tuple[int, int] = (0, 0)
    """The message that code was copied from, and how many blocks."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._abandoned = {}

    # Selecting.

    def action_choose_message(self) -> None:
        """Go from the prompt up into the messages."""
        if not self._transcript.choose_last():
            self.say("There is no message yet.")

    @on(Transcript.Chosen)
    def _chosen(self) -> None:
        # Not the event's message: another may have been selected since.
        if self._transcript.chosen is None and self._transcript.has_focus:
            self.set_focus(self._prompt)
        self._show_status()

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """Who writes has no message selected."""
        if event.widget is self._prompt is self.focused:
            self._transcript.choose(None)

    def idle_status(self) -> tuple[str, str]:
        """The keys for a selected message."""
        entry = self._selected()
        if entry is None:
            return super().idle_status()
        keys = _ANSWER_KEYS if entry.role == "assistant" else _MESSAGE_KEYS
        branches = _BRANCH_KEYS if self._chat.branches(entry.id) else ()
        return "", "  ".join([*branches, *keys])

    def _selected(self) -> Entry | None:
        chosen = self._transcript.chosen
        return self._chat.thread.entries.get(chosen) if chosen is not None else None

    def _meant(self, role: str | None = None) -> Entry | None:
        """The selected message, else the last one of `role`."""
        if selected := self._selected():
            return selected
        path = [entry for entry in self._chat.thread.path() if role in (None, entry.role)]
        return path[-1] if path else None

    def _refused(self, entry: Entry | None, nothing: str) -> bool:
        """Say why it cannot be done now, if so."""
        sentence = nothing if entry is None else ""
        if self._chat.writing:
            sentence = "The answer is still being written; esc stops it."
        elif self._has_failed or self._is_gone:
            sentence = self.why_not_now()
        if sentence:
            self.say(sentence)
        return bool(sentence)

    # Answering again and on.

    async def action_regenerate(self) -> None:
        """Another answer, in a branch beside the old one."""
        entry = self._meant()
        if not self._refused(entry, "There is nothing to answer yet.") and entry:
            self._transcript.choose(None)
            await self.begin_answer(self._chat.answer_again(entry.id))

    async def action_go_on(self) -> None:
        """Have an answer continued that was stopped or cut off."""
        entry = self._meant("assistant")
        if self._refused(entry, "There is no answer to continue yet.") or entry is None:
            return
        if entry.role != "assistant":
            self.say("Only an answer can be continued; r answers this message again.")
        elif entry.finish == Finish.STOP.value:
            self.say("The model ended this answer itself; r has it answer again.")
        else:
            self._transcript.choose(None)
            await self.begin_answer(self._chat.go_on(entry.id))

    # Branches.

    async def action_branch(self, by: int) -> None:
        """Show the branch before or after the one through the selected message."""
        entry = self._selected()
        if self._refused(entry, "Select a message first: ctrl+up.") or entry is None:
            return
        shown = self._chat.show_branch(entry.id, by)
        if shown:
            await self.show_branch(choose=shown.id)
        elif not self._chat.branches(entry.id):
            self.say("This message has one branch only; e and r begin others.")

    async def show_version(self, number: str) -> None:
        """Show one of the versions of the selected message, else of the last one that has several; without a number, say
        which there are."""
        path = [selected] if (selected := self._selected()) else self._chat.thread.path()[::-1]
        entry = next((entry for entry in path if self._chat.branches(entry.id)), None)
        if self._refused(entry, "No message here has more than one version; e and r begin others.") or entry is None:
            return
        now, count = map(int, self._chat.branches(entry.id).split("/"))
        place = [other.id for other in self._chat.thread.path()].index(entry.id) + 1
        if number.isdecimal() and 1 <= int(number) <= count:
            self._chat.show_branch(entry.id, int(number) - now)
            await self.show_branch()
            self.say(f"Message {place}: version {number} of {count}.")
        else:
            other = 1 if now > 1 else 2
            self.say(f"Message {place} is version {now} of {count}: /branch {other} shows another.")

    # Editing.

    async def action_edit(self) -> None:
        """Put the message into the prompt, to be changed."""
        entry = self._meant("user")
        if self._editing:
            self.say("A message is being edited already: enter saves it, esc leaves it as it was.")
        elif not self._refused(entry, "There is no message to edit yet.") and entry:
            words, documents = self._abandoned.pop((self._chat.id, entry.id), (entry.text, entry.documents))
            self._begin_edit(entry.id, words, documents)

    def _begin_edit(self, entry: int, words: str, documents: tuple[Document, ...]) -> None:
        self._editing = _Editing(entry, self._prompt.text, self._prompt.documents)
        self._put(words, documents)
        place = [other.id for other in self._chat.thread.path()].index(entry) + 1
        self._frame.border_title = Content(f"editing message {place}: enter saves, esc cancels")
        self._prompt.focus()

    def _put(self, words: str, documents: tuple[Document, ...]) -> None:
        self._prompt.chips.drop(self._prompt.documents)
        self._prompt.text = ""
        self._prompt.give_back(words, documents)

    async def finish_edit(self, words: str, documents: tuple[Document, ...]) -> bool:
        """What is in the prompt is the changed message. False when none is being edited."""
        editing = self._editing
        if editing is None:
            return False
        entry = self._chat.thread.entries.get(editing.entry)
        if entry is None:
            self._leave_edit()
            self.say("The message that was edited is not in this chat; your text stays here.")
        elif why_not := self.why_not_now() if entry.role == "user" or self._chat.writing else "":
            self.say(why_not)
        elif (words, documents) == (entry.text, entry.documents):
            self.cancel_edit()
            self.say("Nothing was changed.")
        else:
            self.cancel_edit()
            if entry.role == "user":
                await self.begin_answer(self._chat.ask_instead(entry.id, words, documents))
            else:
                self._chat.write_instead(entry.id, words)
                await self.show_branch()
        return True

    def abandon_edit(self) -> bool:
        """Leave the message as it was; its next edit begins with what was written here. False when none is being edited."""
        if self._editing:
            self._abandoned[self._chat.id, self._editing.entry] = self._prompt.text, self._prompt.documents
            while len(self._abandoned) > MOST_EDITS:
                del self._abandoned[next(iter(self._abandoned))]
        return self.cancel_edit()

    def draft(self) -> Draft:
        """The edits that were left as well."""
        draft = super().draft()
        return Draft(draft.text, draft.documents, dict(self._abandoned))

    def take_draft(self, draft: Draft) -> None:
        """Edits of messages that have never been saved have nothing else to come back to."""
        super().take_draft(draft)
        for (chat, message), (words, documents) in draft.edits.items():
            if chat is None:
                self._prompt.give_back(words, documents)
            else:
                self._abandoned[chat, message] = words, documents

    async def leave_chat(self) -> None:
        """Before another chat is shown: what was written for a message of this one stands in the prompt."""
        # A message that is taken back may have been an edit, and is one again.
        await super().leave_chat()
        self._leave_edit()
        # Edits in a chat that is not saved have no message to come back to.
        for key in [key for key in self._abandoned if key[0] is None]:
            self._prompt.give_back(*self._abandoned.pop(key))

    def not_sent(self) -> tuple[str, tuple[Document, ...]]:
        """The changed message as well, and after it what was in the prompt before."""
        text, documents = super().not_sent()
        editing = self._editing
        if editing is None:
            return text, documents
        entry = self._chat.thread.entries.get(editing.entry)
        if entry and (text, documents) == (entry.text, entry.documents):
            return editing.words, editing.documents
        text = "\n".join(part for part in (text, editing.words) if part.strip())
        return text, (*documents, *editing.documents)

    def _leave_edit(self) -> None:
        words, documents = self.not_sent()
        if self.cancel_edit():
            self._put(words, documents)

    def cancel_edit(self) -> bool:
        """What was in the prompt before is there again. False when nothing was being edited."""
        editing, self._editing = self._editing, None
        if editing:
            self._frame.border_title = None
            self._put(editing.words, editing.documents)
        return bool(editing)

    async def give_back(self, writing: Writing, words: str, documents: tuple[Document, ...]) -> None:
        """A message that was to stand in the place of another goes back to being edited."""
        if writing.edits is None:
            await super().give_back(writing, words, documents)
        else:
            self._begin_edit(writing.edits, words, documents)

    # Copying.

    def action_copy_message(self) -> None:
        """Copy the text of a message, without what the model thought before."""
        entry = self._meant("assistant")
        if entry is None:
            self.say("There is no answer to copy yet.")
        else:
            self.app.copy_to_clipboard(without_thoughts(entry.text) if entry.role == "assistant" else entry.text)
            self.say("copied")

    def action_copy_code(self) -> None:
        """Copy a block of code of a message, and with the next call the next one."""
        entry = self._meant("assistant")
        blocks = code_blocks(without_thoughts(entry.text)) if entry else []
        if entry is None or not blocks:
            self.say("There is no block of code in it.")
            return
        self._copy_block(entry, blocks, self._copied[1] % len(blocks) if self._copied[0] == entry.id else 0)

    def copy_block(self, number: str) -> None:
        """Copy the last block of code of the answer, or the one with this number."""
        entry = self._meant("assistant")
        blocks = code_blocks(without_thoughts(entry.text)) if entry else []
        if entry is None or not blocks:
            self.say("There is no block of code in it.")
        elif not number:
            self._copy_block(entry, blocks, len(blocks) - 1)
        elif number.isdecimal() and 1 <= int(number) <= len(blocks):
            self._copy_block(entry, blocks, int(number) - 1)
        elif len(blocks) == 1:
            self.say("There is one block of code in it: write /code alone.")
        else:
            self.say(f"It has {len(blocks)} blocks of code: write /code and a number from 1 to {len(blocks)}.")

    def _copy_block(self, entry: Entry, blocks: Sequence[str], place: int) -> None:
        self._copied = (entry.id, place + 1)
        self.app.copy_to_clipboard(blocks[place].removesuffix("\n"))
        self.say(f"copied block {place + 1} of {len(blocks)}" if len(blocks) > 1 else "copied the code")

    async def toggle_thoughts(self) -> None:
        """Open or fold what the model thought."""
        entry = self._meant("assistant")
        if entry and (answer := self._transcript.answer(entry.id)):
            await answer.toggle_thoughts()

    # Who drafted what.

    async def action_colors(self) -> None:
        """Color the words of an answer by who drafted them, or no longer."""
        entry = self._meant("assistant")
        answer = self._transcript.answer(entry.id) if entry else None
        if entry is None or answer is None:
            self.say("There is no answer yet; select one with ctrl+up.")
        elif not answer.is_colored and not self._steps.get(entry.id):
            self.say("Who drafted this answer is not known any more: it was written before the start of the app.")
        else:
            await answer.color(self._steps.get(entry.id, []))
            if not self._asked:
                self._transcript.release_anchor()
                self._transcript.scroll_to_widget(answer, animate=False)
