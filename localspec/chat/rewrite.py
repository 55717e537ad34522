"""A text rewritten by an instruction, part by part, whoever writes the answers.

    rewriting = Rewriting(source, "Fix the spelling.", ask, count_tokens, context_length)
    for event in rewriting:
        ...

The events come in this order: Started, then for every part any number of Wrote and one PartDone or PartFailed, and at last
Finished. The result is the texts of PartDone and PartFailed, joined with nothing between them; a part that failed has its
source text. What Wrote says is the same text earlier: the texts of the Wrotes since the last PartDone or PartFailed, joined,
are the part's text once it is done, and are to be taken back when it failed.

One thread uses a Rewriting. To stop it, stop the answer under way (Engine.stop, Backend.stop), or call `stop`, which any
thread may do and which takes effect before the next part; or drop the iterator. `state` then says what is done, and another
Rewriting of the same source goes on from there.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace

from localspec.chat.copy_place import CopyPlace
from localspec.chat.margins import Margins, MarginWriter
from localspec.chat.parts import cut
from localspec.chat.rewrite_events import (
    Ask,
    CountTokens,
    Event,
    Finished,
    OnPrompt,
    PartDone,
    PartFailed,
    Reading,
    Request,
    Started,
    State,
    Wrote,
)
from localspec.chat.rewrite_prompt import MOST_SHOWN, head_of, rewrite_messages, tail_of
from localspec.chat.runaway import Runaway
from localspec.chat.unwrap import Unwrapper
from localspec.engine.errors import ContextFullError, UserError
from localspec.engine.step import NO_DRAFTER, Finish, Step, closing_step
from localspec.engine.stop import Stop

__all__ = [
    "Ask",
    "CountTokens",
    "Event",
    "Finished",
    "OnPrompt",
    "PartDone",
    "PartFailed",
    "Reading",
    "Request",
    "Rewriting",
    "Started",
    "State",
    "Wrote",
    "digest_of",
]

_LONGEST_PART = 2000
"""Tokens. Longer texts would fit, but models lose their way in them, and what fails is lost as a whole."""
_SHORTEST_PART = 24
_GROWTH = 2
"""So many times the tokens of a part are kept free for the answer."""
_MOST_GROWTH = 3
"""No answer is longer than so many times the part."""
_NEIGHBORS = 300
"""Tokens that the neighbors of a part take."""
_NEIGHBORS_SHARE = 8
"""The same, as a fraction of the context at most."""
_TORN = re.compile(r"\S[ \t]*\n?\Z")
"""The end of a part within a paragraph or a block."""
_BLOCK = 1 << 16
_SLACK = 64
"""Tokens of the template, and for what counting misses."""


def digest_of(source: str, instruction: str) -> str:
    """What a State is of."""
    digest = hashlib.sha256(f"{instruction}\0".encode("utf-8", "surrogatepass"))
    for start in range(0, len(source), _BLOCK):
        # A long text is not copied for this.
        digest.update(source[start : start + _BLOCK].encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


class Rewriting:
    """One text being rewritten. Iterate it once.

    `count_tokens` and `context_length` (tokens) decide where a long text is cut. `on_reading` is called while a prompt is
    read. `max_tokens` is the longest answer a person wants, `system` a system prompt of theirs. `objection` may say why a
    text cannot be used, as the rest of a sentence, which makes its part a failed one. With `state`, that of an earlier
    Rewriting of the same source and instruction, it goes on there; a state of another one is a ValueError. When `stop` is
    asked for, no further part begins; `ask` ends the one under way.
    """

    def __init__(
        self,
        source: str,
        instruction: str,
        ask: Ask,
        count_tokens: CountTokens,
        context_length: int,
        *,
        system: str | None = None,
        max_tokens: int | None = None,
        on_reading: Callable[[Reading], None] = lambda reading: None,
        objection: Callable[[str], str | None] = lambda text: None,
        state: State | None = None,
        stop: Stop | None = None,
    ) -> None:
        self._source, self._instruction, self._ask, self._count = source, instruction, ask, count_tokens
        self._context, self._system, self._max_tokens = context_length, system, max_tokens
        self._on_reading, self._objection = on_reading, objection
        digest = digest_of(source, instruction)
        if state is not None and state.digest != digest:
            raise ValueError("this is the state of another text or another instruction")
        self.state = state or State(digest, 0, 0)
        """What is done."""
        self._neighbors = min(_NEIGHBORS, context_length // _NEIGHBORS_SHARE)
        self._stop = stop or Stop()
        self._finish = Finish.STOP

    def __iter__(self) -> Iterator[Event]:
        """The events. Raises UserError where the instruction is empty or the context is too short, and whatever `ask`
        raises, but for ContextFullError, which is a failed part. About blanks nobody is asked."""
        if not self._instruction.strip():
            raise UserError("The instruction is empty; say what is to be done to the text.")
        first, begins = self.state.part, self.state.source_position
        rest = self._source[begins:]
        # Blanks alone are one part, and of nothing there are none.
        blank = rest.isspace()
        places = cut(rest, self._count, self._part_limit()) if rest and not blank else [(0, len(rest))] * blank
        yield Started(first + len(places), first, len(self._source))
        for number, (start, end) in enumerate(places):
            if self._stop.asked:
                self._finish = Finish.INTERRUPTED
            else:
                yield from self._part(first + number, begins + start, begins + end)
            if self._finish is Finish.INTERRUPTED:
                break
        yield Finished(self._finish, self.state.failed, self.state.source_position)

    def _part_limit(self) -> int:
        """The most tokens of a part."""
        messages = rewrite_messages(self._instruction, "", system=self._system)
        frame = sum(self._count(message.content) for message in messages)
        # The instruction stands before the end of the part before, too.
        frame += self._count(messages[-1].content)
        room = (self._context - frame - self._neighbors - _SLACK) // (1 + _GROWTH)
        if room < _SHORTEST_PART:
            if 2 * self._count(self._instruction) > self._context:
                raise UserError(
                    f"The instruction is too long for a context of {self._context} tokens; shorten it, or choose a larger "
                    "--ctx."
                )
            raise UserError(
                f"A context of {self._context} tokens is too short to rewrite anything in; choose a larger --ctx."
            )
        return min(room, _LONGEST_PART)

    def _part(self, index: int, start: int, end: int) -> Iterator[Event]:
        source = self._source[start:end]
        if not source.strip():
            yield self._done(index, source, end)
            return
        answer = _Answer(source, start, self._instruction)
        if begun := self.state.begun:
            text = answer.take(begun)
            # No pass has been made for it now.
            yield Wrote(text, Step((), begun, NO_DRAFTER, 0, 0, 0, 0.0, 0.0, 0.0, 0.0), answer.source_position)
        request = self._request(answer.margins.body, start, end)
        steps: Iterator[Step] = iter(())
        try:
            steps = self._ask(request, lambda done, total: self._on_reading(Reading(index, done, total)))
            yield from answer.follow(steps)
        except ContextFullError:
            answer.reason = "does not fit into the context"
        finally:
            if isinstance(steps, Generator):
                # The rest of the answer may not be wanted.
                steps.close()
        if answer.finish is Finish.INTERRUPTED:
            self._finish = Finish.INTERRUPTED
            # Half a character was shown as this one: the model writes all of it again.
            self.state = replace(self.state, begun=answer.raw.removesuffix("\ufffd"))
            return
        text = answer.text
        reason = answer.reason or self._objection(text)
        if not reason:
            yield self._done(index, text, end)
            return
        failed = self._failed(index, source, end, reason)
        if answer.reason:
            sound = answer.sound()
            failed = replace(failed, begun=sound.text, reached=sound.source_position)
        yield failed

    def _request(self, body: str, start: int, end: int) -> Request:
        tokens = max(1, self._count(body))
        shown = min(MOST_SHOWN, len(body) * self._neighbors // (3 * tokens))
        before = tail_of(self.state.tail, shown)
        messages = rewrite_messages(
            self._instruction,
            body,
            before=(tail_of(self._source[max(0, start - 2 * MOST_SHOWN) : start], shown), before) if before else None,
            after=head_of(self._source[end : end + 2 * MOST_SHOWN], shown) if _is_torn(self._source, end) else "",
            system=self._system,
        )
        room = self._context - _SLACK - sum(self._count(message.content) for message in messages)
        most = min(_MOST_GROWTH * tokens + _SLACK, max(1, room), self._max_tokens or room)
        return Request(messages, self.state.begun, max(1, most), body)

    def _done(self, index: int, text: str, end: int) -> PartDone:
        tail = tail_of(text) or self.state.tail
        self.state = replace(self.state, part=index + 1, source_position=end, tail=tail, begun="")
        return PartDone(index, text, end)

    def _failed(self, index: int, text: str, end: int, reason: str) -> PartFailed:
        self._done(index, text, end)
        # A text that was not rewritten is no example of one that was.
        self.state = replace(self.state, failed=(*self.state.failed, index), tail="")
        return PartFailed(index, text, end, reason)


def _is_torn(source: str, end: int) -> bool:
    """Whether a part ends within a paragraph or a block."""
    return end < len(source) and _TORN.search(source, max(0, end - MOST_SHOWN), end) is not None


class _Answer:
    """The answer to one part, as it comes."""

    def __init__(self, source: str, start: int, instruction: str) -> None:
        self._of = (source, start, instruction)
        self.margins = Margins.of(source)
        self.raw = ""
        """What the model wrote."""
        self.text = ""
        """What it gives, margins included."""
        self.finish: Finish | None = None
        self.reason: str | None = None
        """Why it is of no use."""
        self._start, self._length = start, len(source)
        self._unwrapper = Unwrapper(self.margins.body, instruction)
        self._writer = MarginWriter(self.margins)
        self._place = CopyPlace(source)
        # The model has read it without its margins.
        self._runaway = Runaway(self.margins.body)
        self.loops = False

    @property
    def source_position(self) -> int:
        """About how far it has come, in characters of the whole source."""
        return self._start + min(self._place.reached, self._length)

    def follow(self, steps: Iterator[Step]) -> Iterator[Wrote]:
        """The steps of the answer until there is nothing more to be had from it."""
        for step in steps:
            text = self.take(step.text)
            self.finish = step.finish
            if step.finish is Finish.STOP or self._unwrapper.over:
                text += self._end()
            elif self.loops:
                self.reason = "repeats itself"
            yield Wrote(text, step, self.source_position)
            if self.finish or self.reason:
                break
        if self.finish is None and not self.reason and (text := self._end()):
            yield Wrote(text, closing_step(Finish.STOP), self.source_position)
        if self.finish in (Finish.LENGTH, Finish.CONTEXT):
            self.reason = "did not come to an end"
        elif not self.text.strip():
            self.reason = self.reason or "came back empty"

    def sound(self) -> _Answer:
        """What it was before it began to repeat itself, if it did."""
        sound = _Answer(*self._of)
        sound.take(self.raw[: self._runaway.sound] if self.loops else self.raw)
        # What was held back is no wrapper: nothing comes behind it.
        sound._add(sound._writer.feed(sound._unwrapper.end()))
        return sound

    def take(self, raw: str) -> str:
        """What the next piece of the answer gives."""
        self.raw += raw
        self.loops = self._runaway.repeats(raw)
        return self._add(self._writer.feed(self._unwrapper.feed(raw)))

    def _end(self) -> str:
        self.finish = Finish.STOP
        return self._add(self._writer.feed(self._unwrapper.end()) + self._writer.end())

    def _add(self, text: str) -> str:
        self.text += text
        self._place.follow(text)
        return text
