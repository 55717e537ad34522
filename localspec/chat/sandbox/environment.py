"""Jinja's immutable sandbox, with a meter at every place where a template can spend time or memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from types import BuiltinMethodType, FunctionType, MethodType
from typing import Any, NoReturn, TypeVar

from jinja2 import nodes, pass_context
from jinja2.compiler import CodeGenerator
from jinja2.exceptions import SecurityError
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.runtime import BlockReference, Context, LoopContext, Macro, Undefined
from jinja2.sandbox import ImmutableSandboxedEnvironment, SandboxedFormatter
from jinja2.utils import Cycler, Joiner, Namespace

from localspec.chat.sandbox.errors import LimitError, RaisedError
from localspec.chat.sandbox.filters import FILTERS, meter_of
from localspec.chat.sandbox.meter import Counted, Meter
from localspec.chat.sandbox.operations import GROWING, METHODS, OPERATORS, written_widths

T = TypeVar("T")

_DATE_FORMAT_LIMIT = 200
_CALLABLE = (FunctionType, MethodType, Macro, LoopContext, BlockReference, Joiner, Undefined)


class _MeteredCode(CodeGenerator):
    """Compiles a template so that no loop, and nothing that makes a value, passes the environment by."""

    _MAKING = (nodes.List, nodes.Tuple, nodes.Dict, nodes.Getitem, nodes.Compare, nodes.Test)
    _REFUSED = (nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends, nodes.ScopedEvalContextModifier)

    def visit(self, node: nodes.Node, *args: Any, **kwargs: Any) -> Any:
        """Write the code of `node`."""
        if isinstance(node, self._REFUSED):
            raise SecurityError(f"line {node.lineno}: {type(node).__name__}")
        if isinstance(node, nodes.For):
            node.iter = self._call("counted", node.iter)
        if isinstance(node, nodes.Concat):
            node = self._call("joined", nodes.Tuple(node.nodes, "load", lineno=node.lineno))
        if not isinstance(node, self._MAKING) or getattr(node, "ctx", "load") != "load":
            return super().visit(node, *args, **kwargs)
        self.write("environment.made(")
        super().visit(node, *args, **kwargs)
        self.write(")")
        return None

    @staticmethod
    def _call(method: str, argument: nodes.Node) -> nodes.Call:
        return nodes.Call(nodes.EnvironmentAttribute(method), [argument], [], None, None, lineno=argument.lineno)


class GenerationTag(Extension):
    """`{% generation %}`, which marks the assistant's words for training and means nothing here."""

    tags = {"generation"}

    def parse(self, parser: Parser) -> nodes.Node:
        """The body, in a scope of its own as Hugging Face has it."""
        line = next(parser.stream).lineno
        return nodes.Scope(parser.parse_statements(("name:endgeneration",), drop_needle=True), lineno=line)


class _Formatter(SandboxedFormatter):
    """`str.format` that measures every field."""

    def __init__(self, environment: MeteredEnvironment) -> None:
        super().__init__(environment)
        self._meter = environment.meter

    def format_field(self, value: Any, format_spec: str) -> str:
        self._meter.allow(written_widths(format_spec))
        return self._meter.made(str(super().format_field(value, format_spec)))


class _QuietNamespace(Namespace):
    """Printed by its name alone: namespaces may hold each other."""

    def __repr__(self) -> str:
        return "<Namespace>"


@pass_context
def _finalize(context: Context, value: object) -> str:
    return meter_of(context).text(value)


# Functions, not the classes themselves: a class has more ways in than its constructor.


def _dict(*args: Any, **kwargs: Any) -> dict[Any, Any]:
    return dict(*args, **kwargs)


def _namespace(*args: Any, **kwargs: Any) -> Namespace:
    return _QuietNamespace(*args, **kwargs)


def _cycler(*items: Any) -> Cycler:
    return Cycler(*items)


def _joiner(sep: str = ", ") -> Joiner:
    return Joiner(sep)


def _raise_exception(message: object = "") -> NoReturn:
    raise RaisedError(str(message))


def _strftime_now(format: str) -> str:  # noqa: A002 - templates may pass it by this name
    if len(format) > _DATE_FORMAT_LIMIT:
        raise LimitError("asked for a date of too many parts")
    return datetime.now().strftime(format)


class MeteredEnvironment(ImmutableSandboxedEnvironment):
    """One compiled template's environment. `meter` is that of the rendering that is going on."""

    code_generator_class = _MeteredCode
    intercepted_binops = frozenset(OPERATORS)
    meter: Meter

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=[GenerationTag, loopcontrols],
            optimized=False,  # the optimizer would work out constants while compiling, before there is a meter
            finalize=_finalize,
        )
        self.filters = dict(FILTERS)
        self.globals = {
            "range": self.globals["range"],
            "dict": _dict,
            "namespace": _namespace,
            "cycler": _cycler,
            "joiner": _joiner,
            "raise_exception": _raise_exception,
            "strftime_now": _strftime_now,
        }

    def made(self, value: T) -> T:
        """Called by compiled templates with what an expression has made."""
        return self.meter.made(value)

    def counted(self, items: Iterable[T]) -> Counted[T]:
        """Called by compiled templates with what a loop goes through."""
        return self.meter.counted(items)

    def joined(self, parts: Iterable[object]) -> str:
        """Called by compiled templates for `~`."""
        return self.concat(map(self.meter.text, parts))

    def concat(self, pieces: Iterable[str], /) -> str:
        """The pieces of a block, a macro or the whole template as one text."""
        kept: list[str] = []
        size = 0
        for piece in pieces:
            size += len(piece)
            self.meter.allow(size)
            kept.append(piece)
        return self.meter.made("".join(kept))

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Every arithmetic operator."""
        return self.meter.made(OPERATORS[operator](self.meter, left, right))

    def is_safe_callable(self, obj: Any) -> bool:
        """Only what is known to be harmless: Jinja's own sandbox lets through every method of Python's types."""
        if isinstance(obj, BuiltinMethodType):
            return obj.__name__ in METHODS.get(type(obj.__self__), ())
        return isinstance(obj, _CALLABLE) and super().is_safe_callable(obj)

    def call(self, context: Context, obj: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Every call."""
        if getattr(obj, "__self__", None) is self:
            return obj(*args)
        if not self.is_safe_callable(obj):
            raise SecurityError(f"calling {getattr(obj, '__name__', type(obj).__name__)!r}")
        self.meter.made((args, {name: value for name, value in kwargs.items() if not name.startswith("_")}))
        if isinstance(obj, BuiltinMethodType) and obj.__name__ in GROWING:
            args = (self.meter, obj.__self__, *args)
            obj = GROWING[obj.__name__]
        return self.meter.made(super().call(context, obj, *args, **kwargs))

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        """`str.format` and `str.format_map` as functions that neither reach inside objects nor grow without bound."""
        if super().wrap_str_format(value) is None:
            return None
        text, formatter = value.__self__, _Formatter(self)

        def format_map(mapping: Mapping[str, Any]) -> str:
            return formatter.vformat(text, (), mapping)

        def format_values(*args: Any, **kwargs: Any) -> str:
            return formatter.vformat(text, args, kwargs)

        return format_map if value.__name__ == "format_map" else format_values
