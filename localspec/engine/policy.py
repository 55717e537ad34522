"""Which drafter, how many tokens."""

from collections.abc import Mapping

from localspec.engine.drafters.base import Draft, Drafter
from localspec.engine.step import NO_DRAFTER

CHOICES = ("auto", "draft", "lookup", "none")


class Policy:
    """A fixed order of drafters: the first that proposes anything is taken.

    `auto` puts lookup first when the conversation has a document, which answers tend to copy from, and the draft model
    first otherwise.
    """

    def __init__(self, choice: str, drafters: Mapping[str, Drafter], draft_max: int, documents: bool = False) -> None:
        """`choice`: one of CHOICES. Raises ValueError for another, or for a drafter that is not there."""
        if choice not in CHOICES:
            raise ValueError(f"'{choice}' is not a drafter; choose one of {', '.join(CHOICES)}")
        if choice in ("draft", "lookup") and choice not in drafters:
            raise ValueError(f"there is no {choice} drafter")
        self._draft_max = draft_max
        order: tuple[str, ...]
        if choice == "auto":
            order = ("lookup", "draft") if documents else ("draft", "lookup")
        else:
            order = () if choice == NO_DRAFTER else (choice,)
        self._order = [drafters[name] for name in order if name in drafters]

    @property
    def first(self) -> str:
        """The drafter that is asked first, "none" without any."""
        return self._order[0].name if self._order else NO_DRAFTER

    def choose(self, room: int, step: int) -> Draft:
        """The draft of this step, of at most `room` tokens; empty for plain decoding."""
        limit = min(room, self._draft_max)
        if limit > 0:
            for drafter in self._order:
                draft = drafter.propose(limit, step)
                if draft.tokens:
                    return draft
        return Draft(NO_DRAFTER)
