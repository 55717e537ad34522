"""Where in a document the answer is while it copies or edits it.

The place is a cursor as long as the answer says what the document says. Behind a disagreement the cursor's last place is kept
as an anchor, until the answer meets the document again: the tokens between are an edit, and are learned as one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from localspec.engine.drafters.edit_memory import EditMemory, Patch

_WINDOW = 64
"""Tokens behind the newest anchor in which the answer may meet the document again."""
_MOST_PLACES = 24
_LONGEST_EVIDENCE = 16
_RETURN = 2
"""Tokens that must agree for the answer to be back in the document."""
_SETTLED = 12
"""Tokens in a row after which old anchors are forgotten."""
_WIDEST = 400
"""Tokens looked through for a place to return to."""


@dataclass(slots=True, frozen=True)
class Anchor:
    """A disagreement: the source's position and the answer's, both in the stream."""

    source: int
    answer: int


class DocumentPlace:
    """The place in one document of a stream. It sees every token of the answer after it has joined the stream."""

    def __init__(self, stream: Sequence[int], memory: EditMemory) -> None:
        self._stream, self._memory = stream, memory
        self.start = self.end = 0
        """The document's span in the stream."""
        self.copying = False
        self.at = 0
        """The cursor: the next token of the document, while it is being copied."""
        self.run = 0
        """Tokens in a row that came as expected."""
        self.patch: Patch | None = None
        """A remembered edit that the answer is in the middle of, so many of its tokens long."""
        self.patched = 0
        self.anchors: list[Anchor] = []
        self.near: list[int] = []
        """Away from the document: its places behind the answer's last token, nearest first."""
        self.copied = self.edits = 0

    def enter(self, span: tuple[int, int], at: int | None) -> None:
        """A new answer begins over this document: copying from `at` on, or anywhere else (None)."""
        self.start, self.end = span
        self.copying, self.at = at is not None, at or 0
        self.run, self.patch, self.patched = 0, None, 0
        self.anchors, self.near = [], []
        self.copied = self.edits = 0

    def jump(self, span: tuple[int, int], at: int, run: int) -> None:
        """The answer has come to this place of this document, however it did."""
        if span != (self.start, self.end):
            self.anchors = []
        self.start, self.end = span
        self.copying, self.at, self.run = True, at, run
        self.patch, self.near = None, []

    @property
    def density(self) -> float:
        """Edits per token."""
        return (self.edits + 1.0) / (self.copied + 30.0)

    @property
    def away(self) -> int:
        """Tokens of the answer since the newest anchor."""
        return len(self._stream) - self.anchors[-1].answer if self.anchors else 0

    def follow(self, token: int, position: int) -> None:
        """The answer's token at `position` of the stream."""
        if not self.copying:
            self._look_for_return(token, position)
        elif self.patch:
            self._follow_patch(self.patch, token, position)
        elif self.at < self.end:
            self._follow_copy(token, position)
        else:
            self._diverge(self.at, position)

    def _follow_copy(self, token: int, position: int) -> None:
        place, stream = self.at, self._stream
        expected = stream[place]
        if expected in self._memory.by_first:
            for patch in self._memory.applying(stream, place, self.end):
                if patch.tokens[0] == token:
                    self._begin_patch(patch)
                    return
                self._memory.judge(patch, False)
        if token == expected:
            self.at = place + 1
            self._go_on()
            self.copied += 1
        else:
            self._diverge(place, position)
            self._look_for_return(token, position)

    def _go_on(self) -> None:
        self.run += 1
        if self.run >= _SETTLED and self.anchors:
            self.anchors = []

    def _begin_patch(self, patch: Patch) -> None:
        self._go_on()
        self.edits += 1
        self.patch, self.patched = patch, 1
        self._end_patch(patch)

    def _end_patch(self, patch: Patch) -> None:
        if self.patched == len(patch.tokens):
            self._memory.judge(patch, True)
            self.at, self.patch = patch.resume, None

    def _follow_patch(self, patch: Patch, token: int, position: int) -> None:
        if token == patch.tokens[self.patched]:
            self.patched += 1
            self._go_on()
            self._end_patch(patch)
            return
        self._memory.judge(patch, False)
        self._diverge(self.at, position - self.patched)
        self._look_for_return(token, position)

    def _diverge(self, place: int, position: int) -> None:
        self.anchors = [*self.anchors[-1:], Anchor(place, position)]
        self.copying, self.run, self.patch, self.near = False, 0, None, []
        self.edits += 1

    def _look_for_return(self, token: int, position: int) -> None:
        self.near = []
        if not self.anchors:
            return
        expected = self.anchors[-1].source + position + 1 - self.anchors[-1].answer
        best, longest = -1, 0
        near: list[int] = []
        for place in self._places_behind(token):
            evidence = self._evidence(place, position)
            nearer = abs(place - expected) < abs(best - expected)
            if evidence > longest or (evidence == longest and nearer):
                best, longest = place, evidence
            near.append(place)
        if longest >= _RETURN:
            away = position + 1 - self.anchors[-1].answer
            self._learn(best, min(longest, away), position + 1)
            self.copying, self.at, self.run = True, best, min(longest, away)
            return
        near.sort(key=lambda place: abs(place - expected))
        self.near = near

    def behind(self, tokens: Sequence[int], near: int) -> int | None:
        """The first place of the document from `near` on that is behind these tokens, a few."""
        last, size = tokens[-1], len(tokens)
        place, high = near, min(self.end, near + _WINDOW)
        try:
            while True:
                place = self._stream.index(last, place, high) + 1
                if place - size >= self.start and tuple(self._stream[place - size : place]) == tuple(tokens):
                    return place if place < self.end else None
        except ValueError:
            return None

    def _places_behind(self, token: int) -> list[int]:
        """Places of the document behind an occurrence of a token, from the oldest anchor on."""
        low = min(anchor.source for anchor in self.anchors)
        high = min(self.end, self.anchors[-1].source + _WINDOW)
        low = max(low, high - _WIDEST)
        found: list[int] = []
        try:
            while len(found) < _MOST_PLACES:
                low = self._stream.index(token, low, high) + 1
                found.append(low)
        except ValueError:
            pass
        return found

    def _evidence(self, place: int, position: int) -> int:
        """How many tokens before `place` are the last ones of the answer, the one at `position` included."""
        stream, length = self._stream, 1
        longest = min(_LONGEST_EVIDENCE, place - self.start)
        while length < longest and stream[place - 1 - length] == stream[position - length]:
            length += 1
        return length

    def _learn(self, place: int, joined: int, until: int) -> None:
        """The answer has met the document again: what lies between is an edit."""
        for anchor in reversed(self.anchors):
            if anchor.source <= place - joined:
                self._memory.learn(self._stream, (anchor.source, place - joined), (anchor.answer, until - joined))
                return
