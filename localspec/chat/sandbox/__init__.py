"""Renders a template that came with a model file: it cannot reach the machine, nor take its time or its memory."""

from localspec.chat.sandbox.errors import TemplateError, TemplateRefusalError
from localspec.chat.sandbox.meter import Allowance
from localspec.chat.sandbox.sandbox import Sandbox

__all__ = ["Allowance", "Sandbox", "TemplateError", "TemplateRefusalError"]
