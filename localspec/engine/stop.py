"""A person's wish that something comes to its end. It belongs to that one thing, so it cannot be forgotten and cannot hit
another: asked for before the thing begins, it ends it at its beginning; asked for afterwards, it does nothing."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Stop:
    """Asked for from any thread or signal handler; the thing itself runs on one thread."""

    def __init__(self) -> None:
        # Plain attributes: a lock could already be held by the code that a signal handler interrupts. Each side writes its
        # own and then reads the other's, so one of the two sees the other.
        self._asked = False
        self._ends: tuple[Callable[[], None], ...] = ()

    @property
    def asked(self) -> bool:
        """Whether it has been asked for."""
        return self._asked

    def ask(self) -> None:
        """End the thing, now or as soon as it begins. More often than once is fine."""
        self._asked = True
        for end in self._ends:
            end()

    @contextmanager
    def ending(self, end: Callable[[], None]) -> Iterator[None]:
        """While this lasts, `end` is called whenever the stop is asked for, at once if that was before. It may still be
        called while this ends, by another thread, and must do nothing to what comes then."""

        def mine() -> None:
            end()

        self._ends = (*self._ends, mine)
        try:
            if self._asked:
                end()
            yield
        finally:
            self._ends = tuple(other for other in self._ends if other is not mine)
