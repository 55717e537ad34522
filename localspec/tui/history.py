"""What was sent before, to send again."""


class History:
    """Going back and forth through earlier entries; what was being written waits at the end."""

    def __init__(self) -> None:
        self._entries: list[str] = []
        self._at = 0
        self._unsent = ""

    def add(self, text: str) -> None:
        """`text` has been sent."""
        if not self._entries or self._entries[-1] != text:
            self._entries.append(text)
        self._at = len(self._entries)
        self._unsent = ""

    def older(self, current: str) -> str | None:
        """The entry before; None at the oldest. `current` is what stands in the prompt."""
        if self._at == len(self._entries):
            self._unsent = current
        if self._at == 0:
            return None
        self._at -= 1
        return self._entries[self._at]

    def newer(self) -> str | None:
        """The entry after, in the end what was being written; None there."""
        if self._at == len(self._entries):
            return None
        self._at += 1
        return self._unsent if self._at == len(self._entries) else self._entries[self._at]
