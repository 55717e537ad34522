"""How far in a text a copy of it with changes has come."""

_EVIDENCE = 20
"""Characters that must be the same to know the place."""
_AHEAD = 600
"""Characters of the text that a copy may leave out, or be behind."""


class CopyPlace:
    """Follows what is written along the text it is written after."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._written = ""
        self._at = 0
        self.reached = 0
        """Characters of the text; it never falls."""

    def follow(self, written: str) -> None:
        """Take what has been written next. Where it is not found in the text, the place moves on by as much."""
        if not written:
            return
        self._written = (self._written + written)[-_EVIDENCE:]
        guess = self._at + len(written)
        low = max(0, self._at - _AHEAD)
        found = self._nearest(low, guess + _AHEAD, guess) if len(self._written) == _EVIDENCE else None
        self._at = min(len(self._text), guess) if found is None else found
        self.reached = max(self.reached, self._at)

    def _nearest(self, low: int, high: int, guess: int) -> int | None:
        """Where in the text the last characters end, nearest to `guess`."""
        best: int | None = None
        place = self._text.find(self._written, low, high)
        while place >= 0:
            end = place + _EVIDENCE
            if best is None or abs(end - guess) < abs(best - guess):
                best = end
            place = self._text.find(self._written, place + 1, high)
        return best
