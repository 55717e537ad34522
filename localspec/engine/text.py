"""From token pieces to text: whole characters only, and nothing past a stop string."""

import codecs
from collections.abc import Sequence


class TextStream:
    """Takes the bytes of one token after the other and gives the text that is certain so far.

    A character whose bytes are not all there yet is held back, and so is a tail that could be the beginning of a stop
    string. The stop string that is complete first counts, the longest of those that end there. Bytes that are no UTF-8
    become U+FFFD.
    """

    def __init__(self, stop: Sequence[str] = ()) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._stop = tuple(string for string in stop if string)
        self._firsts = {string[0] for string in self._stop}
        self._longest_tail = max((len(string) for string in self._stop), default=1) - 1
        self._held = ""
        self.stopped = False
        """Whether a stop string has been met; the text before it has been given."""

    def push(self, piece: bytes) -> str:
        """The text that one more piece makes certain."""
        if self.stopped:
            return ""
        return self._advance(self._decoder.decode(piece))

    def finish(self) -> str:
        """What was held back, when no more is coming."""
        if self.stopped:
            return ""
        text = self._advance(self._decoder.decode(b"", final=True))
        return text if self.stopped else text + self._give(len(self._held))

    def _advance(self, text: str) -> str:
        if not self._stop:
            return text
        self._held += text
        met = [(at + len(string), at) for string in self._stop if (at := self._held.find(string)) >= 0]
        if met:
            self.stopped = True
            return self._give(min(met)[1])
        return self._give(len(self._held) - self._tail())

    def _give(self, length: int) -> str:
        text, self._held = self._held[:length], self._held[length:]
        return text

    def _tail(self) -> int:
        """Length of the longest end of the held text that begins a stop string."""
        if self._firsts.isdisjoint(self._held):
            return 0
        for length in range(min(self._longest_tail, len(self._held)), 0, -1):
            tail = self._held[-length:]
            if any(string.startswith(tail) for string in self._stop):
                return length
        return 0
