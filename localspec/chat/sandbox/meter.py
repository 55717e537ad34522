"""What one rendering of a chat template may cost: processor time, and the size of everything it makes."""

from __future__ import annotations

import sys
import time
from collections.abc import ItemsView, Iterable, Iterator, KeysView, Sized, ValuesView
from typing import Generic, TypeVar

from localspec.chat.sandbox.errors import LimitError

T = TypeVar("T")

TEXT_LIMIT = 16_000_000
"""Characters of the longest text a template may make, over and above the text of the messages."""
OUTPUT_LIMIT = 100_000
"""Characters a template may write into the prompt, over and above twice the text of the messages. All of it is split into
tokens, where llama.cpp needs time that grows with the square of the number of special ones."""
TOTAL_LIMIT = 8
"""All texts a template makes, thrown-away ones included, together take at most this many times the bytes of the longest one
in ASCII."""
ITEM_WEIGHT = 32
"""One item of a list weighs as much as this many characters."""
DEPTH_LIMIT = 64
"""Lists within lists. A real template needs a handful; much deeper ones break Python's own recursion."""
INTEGER_LIMIT = 4096
"""Bits of the largest integer: some operations on integers take time that grows with the square of their size."""

_CONTAINERS = (list, tuple, dict, set, frozenset, KeysView, ValuesView, ItemsView)


class Allowance:
    """Processor time for as many renderings as it takes to make one prompt: a template that is refused, or looked at again
    with marks in the messages, gets no more of it than one that is not."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.left = seconds


class Meter:
    """Counts what one rendering uses, and raises `LimitError` when it is too much.

    Time is the processor time of the calling thread in seconds: a busy machine must not make a good template fail.
    `text` is the number of characters in the messages.
    """

    def __init__(self, allowance: Allowance, text: int) -> None:
        self.limit = TEXT_LIMIT + text
        self._allowance = allowance
        self._stop = time.thread_time() + allowance.left
        self._left = TOTAL_LIMIT * self.limit
        self._most_written = OUTPUT_LIMIT + 2 * text

    def tick(self) -> None:
        """Raise when the time is up."""
        if time.thread_time() > self._stop:
            raise LimitError(f"ran for more than {self._allowance.seconds:g} seconds")

    def over(self) -> None:
        """Take the time this rendering took from the allowance."""
        self._allowance.left = self._stop - time.thread_time()

    def written(self, text: str) -> str:
        """`text`, the whole prompt, once it is known to be small enough."""
        if len(text) > self._most_written:
            raise LimitError(f"wrote more than {OUTPUT_LIMIT // 1000} thousand characters")
        return text

    def allow(self, size: int) -> None:
        """Raise when something of `size` characters would be too large; called before it is made."""
        self.tick()
        if size > self.limit:
            raise LimitError(f"asked for more than {TEXT_LIMIT // 1_000_000} million characters")

    def made(self, value: T) -> T:
        """`value`, once it is known to be small enough, also when a list holds the same list many times over."""
        self.tick()
        items, _ = self.weigh(value)
        self._left -= _bytes(value) if isinstance(value, str) else items * ITEM_WEIGHT
        if self._left < 0:
            raise LimitError(f"made more than {TOTAL_LIMIT * TEXT_LIMIT // 1_000_000} million characters in all")
        return value

    def text(self, value: object) -> str:
        """`value` as it is printed."""
        return self.made(str(value))

    def weigh(self, value: object) -> tuple[int, int]:
        """How many items, and how many characters, `value` has when it is written out in full."""
        items = characters = 0
        level = [value]
        for _ in range(DEPTH_LIMIT):
            below: list[object] = []
            for item in level:
                if isinstance(item, str):
                    characters += len(item)
                elif isinstance(item, int):
                    _check_integer(item)
                elif isinstance(item, _CONTAINERS):
                    items += len(item)
                    self.allow(items * ITEM_WEIGHT + characters)
                    below.extend(item)
                    if isinstance(item, dict):
                        below.extend(item.values())
            self.allow(items * ITEM_WEIGHT + characters)
            if not below:
                return items, characters
            level = below
        raise LimitError(f"put lists into lists more than {DEPTH_LIMIT} deep")

    def counted(self, items: Iterable[T]) -> Counted[T]:
        """`items`, with a look at the clock at each of them."""
        return Counted(self, items)


class Counted(Generic[T]):
    """An iterable that looks at the clock at each step; its length and truth are those of what it stands for."""

    def __init__(self, meter: Meter, items: Iterable[T]) -> None:
        self._meter = meter
        self._items = items

    def __iter__(self) -> Iterator[T]:
        for item in self._items:
            self._meter.tick()
            yield item

    def __len__(self) -> int:
        if isinstance(self._items, Sized):
            return len(self._items)
        raise TypeError(f"object of type {type(self._items).__name__!r} has no length")

    def __bool__(self) -> bool:
        return bool(self._items)


def _bytes(text: str) -> int:
    """What a text takes: one character may take four bytes."""
    return len(text) if text.isascii() else sys.getsizeof(text)


def _check_integer(value: int) -> None:
    if value.bit_length() > INTEGER_LIMIT:
        raise LimitError(f"asked for a number of more than {INTEGER_LIMIT} bits")
