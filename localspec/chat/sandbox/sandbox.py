"""One template, read once and rendered as often as there is something to say."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from jinja2 import nodes

from localspec.chat.sandbox.environment import MeteredEnvironment
from localspec.chat.sandbox.errors import LimitError, explained
from localspec.chat.sandbox.meter import Allowance, Meter

SOURCE_LIMIT = 100_000
"""Characters of a template's source, far more than any in use has; reading it is not under the meter."""


class Sandbox:
    """Renders the template `source`, giving a rendering, or several that share an `allowance`, `seconds` of processor
    time.

    Every failure, here and in `render`, is a TemplateError; what the template itself raises is a TemplateRefusalError.
    """

    def __init__(self, source: str, *, seconds: float = 2.0) -> None:
        self._seconds = seconds
        self._environment = MeteredEnvironment()
        self._turn = threading.Lock()  # the environment holds the meter of one rendering
        try:
            if len(source) > SOURCE_LIMIT:
                raise LimitError(f"has more than {SOURCE_LIMIT // 1000} thousand characters")
            tree = self._environment.parse(source)
            constants = (constant.value for constant in tree.find_all(nodes.Const))
            self.constants = frozenset(value for value in constants if isinstance(value, str))
            """The texts that the template has in quotes."""
            self._template = self._environment.from_string(tree)
        except Exception as error:
            raise explained(error) from error

    def allowance(self) -> Allowance:
        """The time of one rendering, for several to share."""
        return Allowance(self._seconds)

    def render(self, variables: Mapping[str, object], *, text: int, allowance: Allowance | None = None) -> str:
        """The template with `variables`, which hold about `text` characters. Takes its time from `allowance`, if given."""
        with self._turn:
            meter = self._environment.meter = Meter(allowance or self.allowance(), text)
            try:
                context = self._template.new_context(dict(variables))
                return meter.written(self._environment.concat(self._template.root_render_func(context)))
            except Exception as error:
                raise explained(error) from error
            finally:
                meter.over()
