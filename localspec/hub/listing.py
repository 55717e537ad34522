"""Names one after the other, in a sentence."""

from collections.abc import Sequence


def listing(names: Sequence[str], joint: str = "and", most: int = 8) -> str:
    """As in "a, b and c"; beyond `most` names only how many more there are."""
    shown = list(names[:most])
    if len(names) > most:
        shown.append(f"{len(names) - most} more")
    return f" {joint} ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)
