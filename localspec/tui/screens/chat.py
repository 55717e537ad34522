"""The chat itself."""

import time
from dataclasses import dataclass, field

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.screen import Screen
from textual.timer import Timer
from textual.widgets import Markdown, Tooltip

from localspec.engine.step import Finish
from localspec.tui.commands import Command, Unknown, parse
from localspec.tui.engine_worker import EngineWorker
from localspec.tui.figures import Figures, in_words
from localspec.tui.messages import (
    Answered,
    Failed,
    Fetching,
    Loaded,
    LoadFailed,
    Loading,
    Reading,
    Stepped,
    TakenBack,
)
from localspec.tui.screens.help import HelpScreen
from localspec.tui.widgets.answer import Answer
from localspec.tui.widgets.prompt import Prompt
from localspec.tui.widgets.status import HELP_HINT, STOP_HINT, Status
from localspec.tui.widgets.transcript import Transcript
from localspec.tui.widgets.turn import Notice, Turn
from localspec.tui.widgets.welcome import progress_of

_TICK_SECONDS = 0.06
"""Text arrives this often: Markdown keeps up with twenty updates a second, and an eye does not see more."""
_QUIT_SECONDS = 3.0

_ENDINGS = {
    Finish.STOP: "",
    Finish.LENGTH: "cut off here, where the answer was as long as asked for",
    Finish.CONTEXT: "cut off here, where the context was full; ctrl+n begins a new chat",
    Finish.INTERRUPTED: "stopped",
}


@dataclass
class _Asked:
    """The turn that is being answered, or waits for it."""

    number: int
    turn: Turn
    answer: Answer
    figures: Figures = field(default_factory=Figures)
    reading: tuple[int, int] | None = None
    stopping: bool = False

    @property
    def words(self) -> str:
        """What is going on with it."""
        if self.stopping:
            return "stopping"
        if self.reading:
            return "reading the prompt {:,} / {:,}".format(*self.reading)
        return "   ".join(in_words(self.figures, running=True)) or "waiting"


class ChatScreen(Screen[None]):
    """Turns and answers, the prompt, the status. The only writer of its widgets; the engine's thread sends events."""

    BINDINGS = [
        Binding("escape", "stop", "Stop", id="chat.stop", show=False),
        Binding("ctrl+c", "copy_stop_or_quit", "Copy, stop or quit", id="chat.interrupt", priority=True, show=False),
        Binding("ctrl+n", "new_chat", "New chat", id="chat.new", priority=True, show=False),
        Binding("pageup", "page(-1)", "Scroll up", id="chat.page_up", priority=True, show=False),
        Binding("pagedown", "page(1)", "Scroll down", id="chat.page_down", priority=True, show=False),
        Binding("f1", "help", "Help", id="chat.help", priority=True, show=False),
    ]
    AUTO_FOCUS = "Prompt"

    def __init__(self, worker: EngineWorker) -> None:
        super().__init__()
        self._worker = worker
        self._loaded: Loaded | None = None
        self._has_failed = False
        self._loading = "starting"
        self._asked: _Asked | None = None
        self._last_figures = ""
        self._quit_until = 0.0
        self._transcript, self._prompt, self._status = Transcript(), Prompt(), Status()
        self._ticks: Timer

    def compose(self) -> ComposeResult:
        """From top to bottom."""
        yield self._transcript
        yield self._prompt
        yield self._status

    async def on_mount(self) -> None:
        """Begin to load, behind the screen."""
        # Textual takes the text of a Markdown table's cell for markup when it shows it in a tooltip.
        await self.query_children(Tooltip).remove()
        self._worker.start()
        self._ticks = self.set_interval(_TICK_SECONDS, self._tick)
        self._show_status()

    # What the person does.

    def on_key(self, event: events.Key) -> None:
        """Typed before the prompt had the focus, perhaps even before there was a screen: it is meant for the prompt."""
        if self._prompt.takes(event):
            self._prompt.focus()
            self._prompt.post_message(event)

    def on_paste(self, event: events.Paste) -> None:
        """The same."""
        self._prompt.focus()
        self._prompt.post_message(event)

    @on(Prompt.Sent)
    async def _take(self, event: Prompt.Sent) -> None:
        """A command is done; anything else is sent."""
        command = parse(event.text)
        if isinstance(command, Unknown):
            self._status.say(command.sentence)
        elif command:
            self._prompt.accept()
            await self._do(command)
        elif why_not := self._why_not_now():
            self._status.say(why_not)
        else:
            self._prompt.accept()
            await self._send(event.text.strip("\n"))

    async def _do(self, command: Command) -> None:
        match command:
            case Command.HELP:
                self.action_help()
            case Command.NEW:
                await self.action_new_chat()
            case Command.QUIT:
                self.app.exit()

    def _why_not_now(self) -> str:
        if self._has_failed:
            return "There is no model to ask; ctrl+q quits."
        if self._asked and not self._loaded:
            return "One message is waiting for the model already; yours stays here."
        return "The answer is still being written; your text stays here." if self._asked else ""

    async def _send(self, words: str) -> None:
        """The one way to an answer."""
        self._status.unsay()
        turn, answer = await self._transcript.begin(words)
        self._asked = _Asked(self._worker.ask(words), turn, answer)
        self._ticks.resume()
        self._show_status()

    async def action_stop(self) -> None:
        """Stop the answer; a message that is not being answered yet goes back into the prompt."""
        if not self._asked:
            return
        self._worker.stop()
        self._asked.stopping = True
        if not self._loaded:
            await self._take_back()
        self._show_status()

    async def action_copy_stop_or_quit(self) -> None:
        """Whichever of the three makes sense now."""
        if selected := self.get_selected_text() or self._prompt.selected_text:
            self.app.copy_to_clipboard(selected)
            self.clear_selection()
            self._prompt.move_cursor(self._prompt.cursor_location)
            self._status.say("copied")
        elif self._asked:
            await self.action_stop()
        elif time.monotonic() < self._quit_until:
            self.app.exit()
        else:
            self._quit_until = time.monotonic() + _QUIT_SECONDS
            self._status.say("press ctrl+c again to quit")

    async def action_new_chat(self) -> None:
        """Forget the conversation."""
        if self._asked and not self._loaded:
            await self._take_back()
        self._worker.restart()
        self._asked = None
        self._last_figures = ""
        await self._transcript.clear()
        if self._loaded:
            self._status.show_context(0, self._loaded.context_length)
        self._show_status()

    def action_page(self, pages: int) -> None:
        """Scroll the conversation."""
        if pages < 0:
            self._transcript.scroll_page_up(animate=False)
        else:
            self._transcript.scroll_page_down(animate=False)

    def action_help(self) -> None:
        """Keys and figures."""
        self.app.push_screen(HelpScreen())

    @on(Prompt.FollowAsked)
    def _follow(self) -> None:
        self._transcript.anchor()

    @on(Prompt.QuitAsked)
    def _quit(self) -> None:
        self.app.exit()

    @on(Markdown.LinkClicked)
    def _show_link(self, event: Markdown.LinkClicked) -> None:
        # Over ssh, or with a text browser, opening it would draw over the screen.
        self._status.say(event.href)

    # What the engine's thread reports.

    async def _tick(self) -> None:
        text: list[str] = []
        for event in self._worker.drain():
            match event:
                case Fetching() | Loading() | Loaded() | LoadFailed():
                    await self._on_load_event(event)
                case _ if self._asked is None or event.turn != self._asked.number:
                    pass
                case Reading(done=done, total=total, at=at):
                    self._asked.reading = (done, total) if done < total else None
                    self._asked.figures.begin(at)
                case Stepped():
                    self._on_step(self._asked, event, text)
                case Answered() | TakenBack() | Failed():
                    await self._on_end(self._asked, event, text)
        if self._asked and text:
            await self._asked.answer.write("".join(text))
        self._show_status()
        if not self._asked and (self._loaded or self._has_failed):
            self._ticks.pause()

    async def _on_load_event(self, event: Fetching | Loading | Loaded | LoadFailed) -> None:
        match event:
            case Fetching() | Loading():
                self._loading, share = progress_of(event)
                self._transcript.welcome.show(self._loading, share)
            case Loaded(target, draft, context_length):
                self._loaded = event
                self._transcript.welcome.show_ready(target)
                self._status.show_models(target, draft)
                self._status.show_context(0, context_length)
            case LoadFailed(sentence):
                self._has_failed = True
                self._transcript.welcome.show_failure(sentence)
                if self._asked:
                    await self._take_back()

    def _on_step(self, asked: _Asked, event: Stepped, text: list[str]) -> None:
        asked.reading = None
        asked.figures.add(event.step, event.at)
        text.append(event.step.text)
        if self._loaded and event.step.width:
            self._status.show_context(event.context_used, self._loaded.context_length)

    async def _on_end(self, asked: _Asked, event: Answered | TakenBack | Failed, text: list[str]) -> None:
        if isinstance(event, TakenBack) or (isinstance(event, Failed) and not event.begun):
            await self._take_back()
            if isinstance(event, Failed):
                await self._transcript.add(Notice(event.sentence, error=True))
            return
        await asked.answer.write("".join(text))
        text.clear()
        self._last_figures = "   ".join(in_words(asked.figures, running=False))
        self._asked = None
        if isinstance(event, Failed):
            await self._transcript.add(Notice(event.sentence, error=True))
        note = _ENDINGS[event.finish] if isinstance(event, Answered) and event.finish else ""
        # Not awaited: a long answer takes a while to be laid out, and keys come first.
        self.run_worker(self._finish(asked.answer, note), group="finish")

    async def _finish(self, answer: Answer, note: str) -> None:
        try:
            await answer.finish(note)
        except Exception:
            # A new chat may have taken the answer off the screen meanwhile.
            if answer.is_attached:
                raise

    async def _take_back(self) -> None:
        """The turn is not in the conversation: its words go back into the prompt."""
        asked, self._asked = self._asked, None
        if asked:
            await asked.turn.remove()
            await asked.answer.remove()
            self._prompt.give_back(asked.turn.words)

    def _show_status(self) -> None:
        if self._has_failed:
            self._status.show_activity("no model", "ctrl+q quit")
        elif not self._loaded:
            waiting = "your message waits: " if self._asked else ""
            self._status.show_activity(waiting + self._loading, STOP_HINT if self._asked else HELP_HINT)
        elif self._asked:
            self._status.show_activity(self._asked.words, STOP_HINT)
        else:
            self._status.show_activity(self._last_figures, HELP_HINT)
