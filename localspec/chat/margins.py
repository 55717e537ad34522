"""The blanks around a text and at the beginning of all its lines: taken off before a model reads it, put back afterwards."""

from __future__ import annotations

from dataclasses import dataclass

_BLANKS = " \t"


@dataclass(frozen=True, slots=True)
class Margins:
    """The blanks of one text."""

    lead: str
    """Before its first word: empty lines, and the indentation of the first line."""
    body: str
    """From the first word to the last, moved to the left as far as all its lines together can be."""
    tail: str
    """Behind its last word."""
    indentation: str
    """What every line of the body but the first had more, save for the lines that are blank."""

    @classmethod
    def of(cls, text: str) -> Margins:
        """Those of `text`; of a text of blanks all are in `lead`."""
        rest = text.lstrip()
        lead = text[: len(text) - len(rest)]
        body = rest.rstrip()
        tail = rest[len(body) :]
        first = lead.rpartition("\n")[2]
        lines = body.split("\n")
        begins = [line[: len(line) - len(line.lstrip(_BLANKS))] for line in lines[1:] if line.strip(_BLANKS)]
        indentation = _common_beginning([first if not first.strip(_BLANKS) else "", *begins])
        moved = [line.removeprefix(indentation) if line.strip(_BLANKS) else line for line in lines[1:]]
        return cls(lead, "\n".join([lines[0], *moved]), tail, indentation)


def _common_beginning(texts: list[str]) -> str:
    # What the first and the last in order have in common, those between have too.
    low, high = min(texts), max(texts)
    return low[: next((place for place, character in enumerate(low) if character != high[place]), len(low))]


@dataclass(slots=True)
class MarginWriter:
    """Puts the margins around a text that comes bit by bit."""

    margins: Margins
    _begun: bool = False
    _held: str = ""
    """Blanks that may be the last ones."""

    def feed(self, text: str) -> str:
        """What is certain with `text`."""
        if not self._begun:
            text = text.lstrip()
            if not text:
                return ""
            self._begun = True
            return self.margins.lead + self.feed(text)
        text = self._held + text
        body = text.rstrip()
        self._held = text[len(body) :]
        return self._indented(body) if body else ""

    def end(self) -> str:
        """What stands behind the last word; "" where there was none."""
        return self.margins.tail if self._begun else ""

    def _indented(self, text: str) -> str:
        """`text` does not begin within the blanks of a line, and does not end there."""
        if not self.margins.indentation:
            return text
        first, *others = text.split("\n")
        return "\n".join(
            [first, *(self.margins.indentation + line if line.strip(_BLANKS) else line for line in others)]
        )
