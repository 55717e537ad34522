"""What the person said, and what the app has to say."""

from collections.abc import Sequence

from textual.content import Content
from textual.widgets import Static

from localspec.chat.messages import Document
from localspec.tui.literal import literal

_SHOWN_LINES = 40
_SHOWN_CHARACTERS = 4000


class Turn(Static):
    """A person's turn, letter by letter; of a very long one, the beginning."""

    def __init__(self, words: str, documents: Sequence[Document] = (), entry: int = 0, branches: str = "") -> None:
        lines = [Content.styled(described(document), "dim") for document in documents]
        lines += [shortened(literal(words))] if words else []
        lines += [Content.styled(branches, "dim italic")] if branches else []
        super().__init__(Content("\n").join(lines))
        self.words = words
        self.entry = entry
        """The message it shows."""


class Notice(Static):
    """One sentence of the app's own, in the conversation. Never taken for markup."""

    def __init__(self, sentence: str, *, error: bool = False) -> None:
        super().__init__(Content(literal(sentence)), classes="-error" if error else None)


class Mark(Static):
    """A line between messages."""

    def __init__(self, words: str) -> None:
        super().__init__(Content(words))


def described(document: Document) -> str:
    """A document in a few words."""
    count = len(document.text.split())
    return f"[{literal(' '.join(document.name.split()))}, {count:,} word{'s' * (count != 1)}]"


def shortened(text: str) -> Content:
    """The beginning of `text`, and in dim letters how much more there is."""
    beginning = "".join(text.splitlines(keepends=True)[:_SHOWN_LINES])[:_SHOWN_CHARACTERS].rstrip("\n")
    left = text[len(beginning) :].strip("\n")
    if not left:
        return Content(beginning)
    return Content(beginning).append(Content.styled(f"\n… {len(left):,} more characters", "dim"))
