"""The operations of a template whose result can be far larger than what goes in, each measured before it runs."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable
from typing import Any

from localspec.chat.sandbox.errors import LimitError
from localspec.chat.sandbox.meter import INTEGER_LIMIT, ITEM_WEIGHT, Meter

_STRING_METHODS = (
    "capitalize casefold center count endswith find index isalnum isalpha isascii isdecimal isdigit islower isnumeric "
    "isspace istitle isupper join ljust lower lstrip partition removeprefix removesuffix replace rfind rindex rjust "
    "rpartition rsplit rstrip split splitlines startswith strip swapcase title upper zfill"
)
METHODS: dict[type, frozenset[str]] = {
    str: frozenset(_STRING_METHODS.split()),
    list: frozenset({"copy", "count", "index"}),
    tuple: frozenset({"count", "index"}),
    dict: frozenset({"copy", "get", "items", "keys", "values"}),
}
"""The methods of Python's own types that a template may call; everything else could make memory from nothing."""


def replace(meter: Meter, text: str, old: str, new: str, count: int = -1) -> str:
    """`text.replace(old, new, count)`."""
    hits = text.count(old)
    meter.allow(len(text) + len(new) * (hits if count < 0 else min(hits, count)))
    return text.replace(old, new, count)


def join(meter: Meter, separator: str, items: Iterable[str]) -> str:
    """`separator.join(items)`."""
    parts = list(meter.counted(items))
    meter.allow(sum(map(len, parts)) + len(separator) * len(parts))
    return separator.join(parts)


def _padded(name: str) -> Callable[..., str]:
    def pad(meter: Meter, text: str, width: int, *fill: str) -> str:
        meter.allow(width)
        result: str = getattr(text, name)(width, *fill)
        return result

    return pad


GROWING: dict[str, Callable[..., str]] = {
    "replace": replace,
    "join": join,
    **{name: _padded(name) for name in ("center", "ljust", "rjust", "zfill")},
}
"""The string methods that can outgrow their operands, by name; called with the meter and the string first."""


def percent(meter: Meter, text: str, values: object) -> str:
    """`text % values`. Every number in the text is taken for a width; with a `*`, so is every integer in a tuple."""
    widths = written_widths(text)
    if "*" in text:
        widths += sum(abs(value) for value in (values if isinstance(values, tuple) else ()) if isinstance(value, int))
    meter.allow(len(text) + widths)
    return text % values


def written_widths(specification: str) -> int:
    """The sum of the numbers written in a format."""
    numbers: list[str] = re.findall(r"\d+", specification)
    return sum(int(number[:12]) for number in numbers)


def _multiply(meter: Meter, left: Any, right: Any) -> Any:
    for sequence, times in ((left, right), (right, left)):
        if isinstance(sequence, str | list | tuple) and isinstance(times, int):
            items, characters = meter.weigh(sequence)
            meter.allow((items * ITEM_WEIGHT + characters) * times)
    return left * right


def _power(meter: Meter, left: Any, right: Any) -> Any:
    if isinstance(left, int) and isinstance(right, int) and left.bit_length() * right > INTEGER_LIMIT:
        raise LimitError(f"asked for a number of more than {INTEGER_LIMIT} bits")
    return left**right


def _modulo(meter: Meter, left: Any, right: Any) -> Any:
    return percent(meter, left, right) if isinstance(left, str) else left % right


OPERATORS: dict[str, Callable[[Meter, Any, Any], Any]] = {
    "*": _multiply,
    "**": _power,
    "%": _modulo,
    # None of these makes more than twice what goes in.
    "+": lambda meter, left, right: operator.add(left, right),
    "-": lambda meter, left, right: operator.sub(left, right),
    "/": lambda meter, left, right: operator.truediv(left, right),
    "//": lambda meter, left, right: operator.floordiv(left, right),
}
"""Every binary operator of the template language."""
