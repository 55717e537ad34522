"""What went wrong in a chat template, told in one sentence."""

from __future__ import annotations

from jinja2.exceptions import SecurityError, TemplateSyntaxError

from localspec.engine.errors import UserError

WORDS_LIMIT = 200
"""Characters of a template's own words that are shown: it could say anything, at any length."""

REMEDY = "use another file of this model, or another model"


class TemplateError(UserError):
    """A chat template that cannot be used."""


class TemplateRefusalError(TemplateError):
    """A chat template that will not have this conversation, and says why."""


class RaisedError(Exception):
    """What `raise_exception` of a template raises. `str(error)` is what the template says."""


class LimitError(Exception):
    """A template asked for too much. `str(error)` goes on where "The model's chat template" leaves off."""


def explained(error: Exception) -> TemplateError:
    """The sentence for whatever came out of reading or running a template."""
    if isinstance(error, RaisedError):
        return TemplateRefusalError(
            f"The model's chat template refuses this conversation ({_words(error)}); "
            "start a new conversation or use another model."
        )
    return TemplateError(f"The model's chat template {_reason(error)}; {REMEDY}.")


def _reason(error: Exception) -> str:
    if isinstance(error, LimitError):
        return f"{error} and was stopped"
    if isinstance(error, SecurityError):
        return f"tried what no chat template may do and was stopped ({_words(error)})"
    if isinstance(error, TemplateSyntaxError):
        return f"cannot be read (line {error.lineno}: {_words(error)})"
    if isinstance(error, RecursionError):
        return "calls itself, or nests, without end and was stopped"
    if isinstance(error, MemoryError):
        return "needs more memory than there is and was stopped"
    return f"fails ({_words(error)})"


def _words(error: Exception) -> str:
    said = error.message if isinstance(error, TemplateSyntaxError) else str(error)
    line = "".join(character for character in " ".join((said or "").split()) if character.isprintable())
    return (line[: WORDS_LIMIT - 1] + "…" if len(line) > WORDS_LIMIT else line).rstrip(". ") or type(error).__name__
