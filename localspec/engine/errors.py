"""The errors a person can meet: one sentence each, with the remedy in it."""


class UserError(Exception):
    """Something a person can put right. `str(error)` is one sentence that says what to do."""


class ModelError(UserError):
    """A model file, or a pair of them, that cannot be used as asked."""


class ContextFullError(UserError):
    """More tokens were asked for than the context holds."""


NO_MEMORY = "Memory has run out; close other programs, or choose a smaller model or a smaller --ctx."
"""The sentence for a MemoryError."""


class Interrupted(Exception):  # noqa: N818  (an event, not an error)
    """An evaluation was stopped on request; the context holds what it had finished, and is usable."""
