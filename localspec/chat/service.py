"""A loaded pair that answers messages, and the same as a service in a process of its own.

Nothing heavy is imported before something is loaded: the other end of the service knows this module too.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from localspec.chat.answer_options import AnswerOptions, sampling_of
from localspec.chat.document_spans import document_spans
from localspec.chat.fit import fit
from localspec.chat.messages import Message
from localspec.engine.errors import UserError
from localspec.engine.process import LOGGER_NAME, Link
from localspec.engine.step import Finish, Step
from localspec.engine.stop import Stop
from localspec.logs import log_to_file

if TYPE_CHECKING:
    from localspec.engine.engine import Engine, EngineSettings, Options

_MOST_ROOM = 1024
"""Tokens kept free for an answer, where its length is not given."""
_ROOM_SHARE = 4
"""The same, as a fraction of the context at most."""
_GROWN_SHARE = 8
"""What has been read of a chat is written down again when it has grown by this fraction: it is large."""
_NO_CHARACTER = "\ufffd"
"""Stands for bytes that are no character."""
_CHARACTER_TOKENS = 16
"""The last character of a text begins within so many tokens: it has four bytes at most, and control tokens have none."""

Prepare = Callable[[Callable[[str, int, int], None], Callable[[], bool]], "EngineSettings"]
"""Called with the progress and the cancelled callbacks of `fetch_starter`; decides what to load."""
FindOptions = Callable[["Engine"], "Options"]
"""Called with the loaded engine; decides how it answers."""


class Report(Protocol):
    """Where loading says how far it is, and asks whether to go on. Fits the hub's and the engine's callbacks."""

    def fetching(self, phase: str, done: int, total: int) -> None:
        """Bytes of a download: `phase` is "downloading" or "unpacking"."""

    def loading(self, what: str, share: float) -> bool:
        """Share (0 to 1) of the "target" or the "draft" that is in memory, or of the "costs" that are measured. False:
        give up."""

    def cancelled(self) -> bool:
        """Whether to give up."""


@dataclass(frozen=True)
class Wanted:
    """What to load and how it answers. In a process of its own the functions must be those of a module, or partials of
    them."""

    engine_settings: EngineSettings | Prepare
    options: Options | FindOptions
    system: str | None = None
    """The system prompt of chats that bring none."""
    cache: Path | None = None
    """The cache folder: what has been read of a chat is kept there, so that it is not read again after a restart."""

    def load(self, report: Report) -> Answerer:
        """Load it. Raises UserError with the sentence to show."""
        from localspec.engine.engine import Engine

        given, options = self.engine_settings, self.options
        settings = given(report.fetching, report.cancelled) if callable(given) else given
        engine = Engine(settings, report.loading)
        try:
            return Answerer(engine, options(engine) if callable(options) else options, self.system, self.cache)
        except BaseException:
            engine.close()
            raise


@dataclass
class _Written:
    """An answer by its tokens: those that were sampled, not those its text would become."""

    before: list[int]
    """The prompt."""
    tokens: list[int] = field(default_factory=list)
    text: str = ""
    whole: bool = False
    """Whether the tokens are those of the text, no more and no less."""

    def add(self, step: Step) -> None:
        self.tokens.extend(step.tokens)
        self.text += step.text
        # An answer that came to its end has a token for that, or more text than is shown.
        self.whole = step.finish not in (None, Finish.STOP)


class Answerer:
    """An engine that answers messages. One thread at a time."""

    def __init__(self, engine: Engine, options: Options, system: str | None, cache: Path | None = None) -> None:
        from localspec.chat.conversation import template_of
        from localspec.chat.kept_states import FOLDER, KeptStates

        self.engine, self._options, self._system = engine, options, system
        self._states = KeptStates(cache / FOLDER) if cache else None
        self._chat: int | None = None
        self._kept_tokens = 0
        self._template = template_of(engine)
        self._last = _Written([])
        self.left_out = 0
        """How many messages the last answer was written without, because the context is full."""

    @property
    def options(self) -> Options:
        """How it answers where nothing of its own is asked for."""
        return self._options

    def answer(
        self,
        messages: Sequence[Message],
        on_prompt: Callable[[int, int], None],
        *,
        goes_on: bool = False,
        options: AnswerOptions | None = None,
        chat: int | None = None,
        stop: Stop | None = None,
    ) -> Iterator[Step]:
        """Stream the answer to the last message. The system prompt of the start is put first where there is none.

        With `goes_on` the last message is the assistant's, and the answer goes on right behind it. The oldest turns are left
        out where the context is full. `chat` is the number of a stored chat: what was read of it before is not read again,
        even by another process. `stop` ends it, whenever it is asked for. Raises UserError.
        """
        chosen = options.applied_to(self._options) if options else self._options
        chosen = replace(chosen, stop=(*chosen.stop, *self._template.stop_strings))
        turns = self._with_system(messages)
        begun = None
        if goes_on:
            if not turns or turns[-1].role != "assistant":
                raise UserError("There is no answer to go on with; ask something first.")
            begun = turns.pop().content
        written = self._last = self._begin(self._fitting(turns, begun, chosen.max_tokens), begun)
        self._recall(chat)
        try:
            prompt = [*written.before, *written.tokens]
            documents = document_spans(prompt, self.engine.target.vocabulary.piece)
            for step in self.engine.generate(prompt, chosen, on_prompt, documents=documents, stop=stop):
                written.add(step)
                if step.finish and self._ends_inside_a_character(written.tokens):
                    written.whole = False
                yield step
        except Exception:
            # The caches may still be those of another chat, and must not be kept as those of this one.
            self._chat = None
            raise

    def count(self, text: str) -> int:
        """The tokens of a text, without those of the template around it."""
        return len(self.engine.target.vocabulary.tokenize(text, special=False))

    def keep(self, unwanted: Callable[[], bool]) -> None:
        """Write down what has been read of the chat of the last answer, where that is worth it; between two answers."""
        tokens = len(self.engine.stream)
        if self._states is None or self._chat is None or tokens - self._kept_tokens < tokens // _GROWN_SHARE:
            return
        if self._states.save(self._chat, self.engine, unwanted):
            self._kept_tokens = tokens

    def close(self) -> None:
        """Free the engine."""
        self.engine.close()

    def _recall(self, chat: int | None) -> None:
        if chat == self._chat:
            return
        self._chat, self._kept_tokens = chat, 0
        if self._states and chat is not None:
            self._kept_tokens = self._states.load(chat, self.engine)

    def _with_system(self, messages: Sequence[Message]) -> list[Message]:
        turns = list(messages)
        if self._system and not (turns and turns[0].role == "system"):
            turns.insert(0, Message("system", self._system))
        return [turn for turn in turns if turn.role != "system" or turn.content]

    def _fitting(self, turns: list[Message], begun: str | None, most: int | None) -> list[int]:
        """The tokens of the turns, without the oldest ones where there is no room for them and an answer."""
        encoded: dict[tuple[Message, ...], list[int]] = {}

        def tokens(turns: Sequence[Message]) -> list[int]:
            key = tuple(turns)
            if key not in encoded:
                encoded[key] = self._template.encode(turns)
            return encoded[key]

        length = self.engine.context_length
        room = min(most or _MOST_ROOM, length // _ROOM_SHARE)
        room += len(self._template.continuation(begun)) if begun else 0
        kept, self.left_out = fit(turns, lambda turns: len(tokens(turns)), length - room)
        return tokens(kept)

    def _begin(self, prompt: list[int], begun: str | None) -> _Written:
        last = self._last
        if not begun:
            return _Written(prompt)
        if last.whole and last.before == prompt and last.text == begun:
            return _Written(prompt, list(last.tokens), begun)
        # Half a character was shown as this one: the model writes all of it again.
        return _Written(prompt, self._template.continuation(begun.removesuffix(_NO_CHARACTER)), begun)

    def _ends_inside_a_character(self, tokens: Sequence[int]) -> bool:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        decoder.decode(b"".join(self.engine.target.vocabulary.piece(token) for token in tokens[-_CHARACTER_TOKENS:]))
        return bool(decoder.getstate()[0])


@dataclass(frozen=True, slots=True)
class Fetched:
    """A download is under way, in bytes."""

    phase: str
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class LoadedShare:
    """So much of something is in memory, 0 to 1."""

    what: str
    share: float


@dataclass(frozen=True, slots=True)
class Pair:
    """What is loaded."""

    target: str
    draft: str | None
    """Names."""
    context_length: int
    """Tokens."""
    cost_curve: dict[int, float]
    """Milliseconds of a target pass by its width, as known now."""
    sampling: dict[str, float] = field(default_factory=dict)
    """How an answer is sampled that asks for nothing of its own, by the names of settings."""
    recommended: tuple[str, ...] = ()
    """Those of them that are as the model's file recommends."""
    note: str = ""
    """What was reduced so that it fits into the memory: a sentence, empty where nothing was."""
    opened: str = ""
    """Engine.opened: which files they are, and how they are run."""


@dataclass(frozen=True, slots=True)
class Read:
    """So many tokens of the prompt have been read."""

    done: int
    total: int
    left_out: int
    """Messages for which there is no room."""


@dataclass(frozen=True, slots=True)
class Wrote:
    """One more step of the answer."""

    step: Step
    context_used: int
    """Tokens of the conversation."""


def pair_of(answerer: Answerer) -> Pair:
    """Names are those of the files, without their ending."""
    engine, sampling = answerer.engine, sampling_of(answerer.options)
    draft = engine.settings.draft.stem if engine.settings.draft else None
    found = engine.target.recommended_sampling()
    recommended = tuple(name for name, value in sampling.items() if found.get(name) == value)
    curve = engine.costs.target.table()
    note, opened = engine.settings.note, engine.opened
    return Pair(engine.settings.target.stem, draft, engine.context_length, curve, sampling, recommended, note, opened)


class ChatService:
    """What runs in a process of its own, see engine/process. While it is made it sends Fetched and LoadedShare, and at last
    the Pair."""

    def __init__(self, link: Link, wanted: Wanted, log_file: Path) -> None:
        log_to_file(log_file.parent, "localspec.llama", "localspec.engine", "localspec.chat", LOGGER_NAME)
        self._link = link
        self._answerer = wanted.load(_LinkReport(link))
        link.send(pair_of(self._answerer))

    def answer(
        self, messages: Sequence[Message], goes_on: bool, options: AnswerOptions | None, chat: int | None
    ) -> Iterator[Wrote | Pair]:
        """Answerer.answer, with Read sent in between, and the Pair at the end, which knows more of the costs."""
        engine, stop = self._answerer.engine, self._link.stop
        steps = self._answerer.answer(messages, self._on_prompt, goes_on=goes_on, options=options, chat=chat, stop=stop)
        for step in steps:
            yield Wrote(step, len(engine.stream))
        yield pair_of(self._answerer)

    def count(self, text: str) -> Iterator[int]:
        """Answerer.count."""
        yield self._answerer.count(text)

    def idle(self, unwanted: Callable[[], bool]) -> None:
        """Write down what has been read."""
        self._answerer.keep(unwanted)

    def close(self) -> None:
        """Free the engine."""
        self._answerer.close()

    def _on_prompt(self, done: int, total: int) -> None:
        self._link.send(Read(done, total, self._answerer.left_out))


class _LinkReport:
    def __init__(self, link: Link) -> None:
        self._link = link

    def fetching(self, phase: str, done: int, total: int) -> None:
        self._link.send(Fetched(phase, done, total))

    def loading(self, what: str, share: float) -> bool:
        self._link.send(LoadedShare(what, share))
        return not self.cancelled()

    def cancelled(self) -> bool:
        return self._link.stop.asked
