"""How long the context of a pair is, decided by their headers before anything is loaded."""

from localspec.engine.errors import ModelError
from localspec.engine.gguf import GgufHeader, parts, read_header

DEFAULT_CONTEXT = 8192
CONTEXT_STEP = 256
"""Tokens: contexts are a multiple of this long."""


def context_length(target: GgufHeader, draft: GgufHeader | None, asked: int | None) -> int:
    """Tokens, a multiple of CONTEXT_STEP.

    `asked`: tokens; None: what the target was trained with, at most DEFAULT_CONTEXT. Raises ModelError where a model has
    a learned table of positions that is shorter: llama.cpp would end the process at the first token behind it.
    """
    most = longest_context(target)
    # llama.cpp rounds up by itself; ours is known before the context is, and always holds a longest draft.
    length = _rounded_up(asked or min(target.context_length or DEFAULT_CONTEXT, DEFAULT_CONTEXT))
    if most is not None and length > most:
        if asked is not None or not most:
            raise ModelError(_too_long(target, length, most, "another model"))
        length = most
    most = longest_context(draft) if draft else None
    if draft and most is not None and length > most:
        raise ModelError(_too_long(draft, length, most, "another draft model"))
    return length


def longest_context(header: GgufHeader) -> int | None:
    """The longest context (tokens) whose positions are all in the model's table; None for a model without one."""
    files = parts(header)
    table = header.has_position_table or any(read_header(file).has_position_table for file in files[1:])
    return (header.context_length or 0) // CONTEXT_STEP * CONTEXT_STEP if table else None


def _rounded_up(length: int) -> int:
    return -(-length // CONTEXT_STEP) * CONTEXT_STEP


def _too_long(header: GgufHeader, length: int, most: int, other: str) -> str:
    remedy = f"choose --ctx {most} or less, or {other}" if most else f"choose {other}"
    return (
        f"{header.path.name} was trained for {header.context_length} tokens and cannot read a context of {length}; "
        f"{remedy}."
    )
