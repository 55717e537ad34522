"""What models put around a text they were asked for: taken away while it is written.

An opening such as "Here is the rewritten text:", a code fence or quotation marks around the whole, and the lines that framed
the text in the prompt go, where the source had none; what stands behind the closing fence or frame goes with it. Only what
may yet turn out to be one of these is held back.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_THING = r"(?:text|version|document|translation|paragraphs?|passage|code|rewrite|rewriting|correction|letter|article)"
_DONE_TO = (
    r"(?:rewritten|corrected|revised|edited|updated|translated|shortened|simplified|improved|fixed|modified|polished)"
)
_SURE = r"(?:(?:sure|certainly|of course|absolutely|okay|ok)\b[!,.]?[ \t]*)"
_PREFACE = re.compile(
    rf"(?:\*\*|#+[ \t])?{_SURE}?"
    rf"(?:here(?:['\u2019]s|[ \t]is|[ \t]are)\b[^:\n]{{0,80}}?\b{_THING}\b[^:\n]{{0,80}}"
    rf"|(?:(?:the|your|this[ \t]is[ \t]the)[ \t])?(?:\w+[ \t]){{0,2}}{_DONE_TO}(?:[ \t]{_THING})?[^:\n]{{0,40}})"
    r":(?:\*\*)?(?:[ \t]*\n|[ \t]+)"
    rf"|{_SURE}\n",
    re.IGNORECASE,
)
_LONGEST_PREFACE, _LONGEST_WORD = 200, 10
_MAY_BEGIN_PREFACE = re.compile(
    r"\W{0,3}(?:sure|certainly|of[ \t]course|absolutely|okay|ok|here|the|your|this|" + _DONE_TO[3:-1] + r"|\w+ly\b)",
    re.IGNORECASE,
)
_FENCE = re.compile(r"(`{3,}|~{3,})[\w+#.-]*[ \t]*\n")
_FENCE_LINE = re.compile(r"[ \t]*(`{3,}|~{3,})([^\n`]*)\Z")
_FRAME = re.compile(r"-{3,} document: [^\n]* -{3,}[ \t]*\n")
_FRAME_END = re.compile(r"-{3,} end of [^\n]* -{3,}[ \t]*\Z")
_QUOTES = {'"': '"', "“": "”", "„": "“", "«": "»"}
_FIRST_LINE = 300
_ASKS_FOR_FENCES, _ASKS_FOR_QUOTES = ("`", "fence", "code block", "markdown"), "quot"


@dataclass(frozen=True, slots=True)
class _Source:
    """What looks like a wrapper and is none: what the source has, and what was asked for."""

    text: str
    instruction: str

    @property
    def fenced(self) -> bool:
        return self.text.startswith(("```", "~~~")) or any(word in self.instruction for word in _ASKS_FOR_FENCES)

    @property
    def prefaced(self) -> bool:
        return _PREFACE.match(self.text[: 2 * _LONGEST_PREFACE] + "\n") is not None

    @property
    def quoted(self) -> bool:
        return self.text[:1] in _QUOTES or _ASKS_FOR_QUOTES in self.instruction

    @property
    def framed(self) -> bool:
        return "--- document: " in self.text or "--- end of " in self.text


class Unwrapper:
    """Takes the wrappers off one answer. `source` is the text it was asked for, without blanks around it; who asks for
    fences or quotation marks in the `instruction` gets them."""

    def __init__(self, source: str, instruction: str = "") -> None:
        self._source = _Source(source, instruction.lower())
        self._held = ""
        self._opening = True
        self._fence = ""
        """The one around the whole, where one was opened."""
        self._inner = False
        """Whether a fence is open within the text."""
        self._quote = ""
        """What closes the quotation."""
        self.over = False
        """Whether the text has come to its end, so that no more is wanted."""

    def feed(self, text: str) -> str:
        """What of the answer is certain with `text`."""
        if self.over:
            return ""
        self._held += text
        if self._opening and not self._opened(last=False):
            return ""
        return self._text(last=False)

    def end(self) -> str:
        """What is left when the answer has ended."""
        if self.over:
            return ""
        if self._opening:
            self._opened(last=True)
        return self._text(last=True)

    def _opened(self, last: bool) -> bool:
        """Take one wrapper after the other from the beginning. False: more must be read first."""
        while True:
            rest = self._held.lstrip()
            if not rest:
                return False
            taken = self._taken(rest, last)
            if taken is None:
                return False
            if taken == 0:
                self._opening = False
                return True
            self._held = rest[taken:]

    def _taken(self, rest: str, last: bool) -> int | None:
        """How many characters of `rest` are a wrapper; None while that is open."""
        if not self._source.framed and rest.startswith("---"[: len(rest)]):
            if found := _FRAME.match(rest):
                return found.end()
            if "\n" not in rest and len(rest) < _LONGEST_PREFACE and not last:
                return None
        if not self._source.fenced and not self._fence and rest[0] in "`~":
            if found := _FENCE.match(rest):
                self._fence = found[1]
                return found.end()
            if "\n" not in rest and rest.startswith(("```"[: len(rest)], "~~~"[: len(rest)])) and not last:
                return None
        if not self._source.prefaced and (size := self._preface(rest, last)) != 0:
            return size
        return self._quotation(rest, last)

    def _preface(self, rest: str, last: bool) -> int | None:
        if found := _PREFACE.match(rest):
            # What stands behind it may be blanks still to come.
            return found.end() if found.end() < len(rest) or last else None
        line, newline, _ = rest.partition("\n")
        possible = _MAY_BEGIN_PREFACE.match(line) if len(line) > _LONGEST_WORD else True
        return None if possible and not newline and len(line) < _LONGEST_PREFACE and not last else 0

    def _quotation(self, rest: str, last: bool) -> int | None:
        closing = _QUOTES.get(rest[0])
        if self._source.quoted or self._quote or closing is None:
            return 0
        line, newline, _ = rest[1:].partition("\n")
        if closing in line.rstrip()[:-1]:
            # A quotation within the text.
            return 0
        if not newline and len(line) < _FIRST_LINE and not last:
            return None
        self._quote = closing
        return 1

    def _text(self, last: bool) -> str:
        """What can be given out of what is held."""
        lines = self._held.split("\n")
        given: list[str] = []
        for line in lines[:-1]:
            if self._closes(line):
                self.over = True
                return "".join(given).removesuffix("\n")
            given.append(line + "\n")
        rest = lines[-1]
        if last:
            if self._closes(rest):
                return "".join(given).removesuffix("\n")
            text = "".join([*given, rest])
            closed = bool(self._quote) and text.rstrip().endswith(self._quote)
            return text.rstrip()[:-1] if closed else text
        hold = self._may_close(rest)
        self._held = rest[len(rest) - hold :]
        text = "".join([*given, rest[: len(rest) - hold]])
        return self._without_quote(text) if self._quote else text

    def _without_quote(self, text: str) -> str:
        """Hold back a quotation mark that may be the last one."""
        kept = text.rstrip()
        if kept.endswith(self._quote):
            self._held = text[len(kept) - 1 :] + self._held
            return text[: len(kept) - 1]
        return text

    def _closes(self, line: str) -> bool:
        """Whether this line is the end of a wrapper."""
        if not self._source.framed and _FRAME_END.match(line):
            return True
        found = _FENCE_LINE.match(line)
        if not found:
            return False
        bare = not found[2].strip()
        if self._fence and bare and not self._inner and found[1].startswith(self._fence):
            return True
        self._inner = not (self._inner and bare)
        return False

    def _may_close(self, line: str) -> int:
        """How many characters at the end of an unfinished line may be a closing one."""
        begin = line.lstrip(" \t")
        could = begin[:3] in ("", "`", "``", "```", "~", "~~", "~~~", "-", "--", "---")
        return len(line) if could else 0
