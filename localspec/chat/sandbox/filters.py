"""The filters a template may use: Jinja's own under a meter, and `tojson` as Hugging Face has it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from jinja2 import pass_context
from jinja2.filters import FILTERS as JINJA_FILTERS
from jinja2.filters import do_batch, do_indent, do_round, do_title, sync_do_slice
from jinja2.runtime import Context
from jinja2.utils import _PassArg
from markupsafe import escape

from localspec.chat.sandbox.errors import LimitError
from localspec.chat.sandbox.meter import DEPTH_LIMIT, ITEM_WEIGHT, Meter
from localspec.chat.sandbox.operations import GROWING, join, percent, replace

Filter = Callable[..., Any]

_DIRECT = (
    "abs attr capitalize count d default dictsort first float int items last length lower reverse string trim "
    "truncate upper"
)
_WALKING = "groupby list map max min reject rejectattr select selectattr sort sum unique"
_DECIMALS_LIMIT = 100
_GROUP_LIMIT = 10_000


def meter_of(context: Context) -> Meter:
    """The meter of the rendering that `context` belongs to."""
    meter: Meter = context.environment.meter  # type: ignore[attr-defined]
    return meter


def bounded(function: Filter, *, walks: bool) -> Filter:
    """`function` under the meter. One that `walks` goes through the items of its value in Python code of its own.

    A lazy result is made at once: lazy ones could be piled upon each other deeper than Python can unwind. It stays an
    iterator, which, unlike a list, is true even when it is empty.
    """
    wants = _PassArg.from_obj(function)

    @pass_context
    def apply(context: Context, value: Any, *args: Any, **kwargs: Any) -> Any:
        meter = meter_of(context)
        first = (
            {
                _PassArg.context: (context,),
                _PassArg.environment: (context.environment,),
                _PassArg.eval_context: (context.eval_ctx,),
            }.get(wants, ())
            if wants
            else ()
        )
        result = function(*first, meter.counted(value) if walks else value, *args, **kwargs)
        if isinstance(result, Iterator):
            return iter(meter.made(list(meter.counted(result))))
        return meter.made(result)

    return apply


@pass_context
def _replace(context: Context, value: Any, old: Any, new: Any, count: int | None = None) -> str:
    meter = meter_of(context)
    return replace(meter, meter.text(value), str(old), str(new), -1 if count is None else count)


@pass_context
def _join(context: Context, value: Iterable[Any], d: Any = "", attribute: str | int | None = None) -> str:
    meter = meter_of(context)
    if attribute is not None:
        value = context.environment.call_filter("map", value, kwargs={"attribute": attribute}, context=context)
    return join(meter, str(d), (meter.text(item) for item in value))


@pass_context
def _indent(context: Context, value: Any, width: int | str = 4, first: bool = False, blank: bool = False) -> str:
    meter = meter_of(context)
    text = meter.text(value)
    meter.allow(len(text) + (text.count("\n") + 1) * (len(width) if isinstance(width, str) else width))
    return do_indent(text, width, first, blank)


@pass_context
def _title(context: Context, value: Any) -> str:
    meter = meter_of(context)
    text = meter.text(value)
    meter.allow(len(text) * ITEM_WEIGHT)  # Jinja makes a list of the words
    return do_title(text)


@pass_context
def _center(context: Context, value: Any, width: int = 80) -> str:
    meter = meter_of(context)
    return GROWING["center"](meter, meter.text(value), width)


@pass_context
def _format(context: Context, value: Any, *args: Any, **kwargs: Any) -> str:
    meter = meter_of(context)
    return percent(meter, meter.text(value), kwargs or args)


@pass_context
def _tojson(
    context: Context,
    value: Any,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    meter = meter_of(context)
    width = len(indent) if isinstance(indent, str) else indent or 0
    meter.allow(meter.weigh(value)[0] * (width * DEPTH_LIMIT + sum(map(len, separators or ()))))
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _grouped(function: Filter) -> Filter:
    def group(value: Iterable[Any], size: int, fill_with: Any = None) -> Any:
        if size > _GROUP_LIMIT:
            raise LimitError("asked for groups of too many items")
        return function(value, size, fill_with)

    return group


def _round(value: float, precision: int = 0, method: str = "common") -> float:
    if abs(precision) > _DECIMALS_LIMIT:
        raise LimitError(f"asked for more than {_DECIMALS_LIMIT} decimals")
    return do_round(value, precision, method)  # type: ignore[arg-type]


FILTERS: dict[str, Filter] = {
    **{name: bounded(JINJA_FILTERS[name], walks=False) for name in _DIRECT.split()},
    **{name: bounded(JINJA_FILTERS[name], walks=True) for name in _WALKING.split()},
    "batch": bounded(_grouped(do_batch), walks=True),
    "slice": bounded(_grouped(sync_do_slice), walks=True),
    **{name: bounded(lambda value: str(escape(value)), walks=False) for name in ("e", "escape")},
    "round": bounded(_round, walks=False),
    # Nothing is escaped here, so nothing needs to be marked as safe.
    "safe": bounded(JINJA_FILTERS["string"], walks=False),
    "center": bounded(_center, walks=False),
    "format": bounded(_format, walks=False),
    "indent": bounded(_indent, walks=False),
    "join": bounded(_join, walks=False),
    "replace": bounded(_replace, walks=False),
    "title": bounded(_title, walks=False),
    "tojson": bounded(_tojson, walks=False),
}
"""All filters, by name. None of them can be worked out while the template is compiled, before there is a meter."""
