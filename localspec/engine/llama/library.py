"""The shared library itself: how it is loaded, and where its log goes (never to the screen)."""

import ctypes
import logging
import os
from collections import deque
from typing import Any

# On an abort ggml forks a debugger that prints a backtrace over the terminal; read before the library is loaded.
os.environ.setdefault("GGML_NO_BACKTRACE", "1")
# GNU OpenMP's threads wait for each other by spinning, for ever by default: with as many busy programs as cores a token took
# five times its time. Sleeping at once costs three times on a quiet machine. A short spin costs neither.
os.environ.setdefault("GOMP_SPINCOUNT", "10000")

import llama_cpp
import llama_cpp.llama_cpp as _bindings

LOGGER_NAME = "localspec.llama"
"""The logger of everything llama.cpp prints. Without a handler it is silent; the app gives it a file."""

lib: Any = _bindings
"""The C API, as llama-cpp-python binds it."""

_logger = logging.getLogger(LOGGER_NAME)
_logger.addHandler(logging.NullHandler())
_logger.propagate = False
_logger.setLevel(logging.INFO)

# ggml_log_level: none, debug, info, warn, error, cont ("continue the previous line").
_LEVELS = {1: logging.DEBUG, 2: logging.INFO, 3: logging.WARNING, 4: logging.ERROR}
_CONTINUED = 5

_recent_errors: deque[str] = deque(maxlen=8)


class _Line:
    """The line being put together; llama.cpp prints some of them in pieces."""

    level = logging.INFO
    text = ""


class LlamaError(RuntimeError):
    """llama.cpp refused or failed a call that should have worked: a bug of ours or of the library, not of a person."""


def _on_log(level: int, text: bytes, _data: object) -> None:
    if level != _CONTINUED:
        _Line.level = _LEVELS.get(level, logging.INFO)
    _Line.text += text.decode("utf-8", "replace")
    if not _Line.text.endswith("\n"):
        return
    message, _Line.text = _Line.text.rstrip(), ""
    if _Line.level >= logging.ERROR:
        _recent_errors.append(message)
    _logger.log(_Line.level, "%s", message)


# The library keeps only the address, so the callback object must live as long as the process.
_log_callback = lib.llama_log_callback(_on_log)
lib.llama_log_set(_log_callback, ctypes.c_void_p(0))
lib.llama_backend_init()


def forget_errors() -> None:
    """Start a new list of errors, before a call whose failure is to be explained. The log is ours again from here on, whoever
    else has used the library meanwhile."""
    lib.llama_log_set(_log_callback, ctypes.c_void_p(0))
    _recent_errors.clear()


def recent_errors() -> list[str]:
    """The error lines that llama.cpp has logged since `forget_errors()`, oldest first."""
    return list(_recent_errors)


def version() -> str:
    """The version of llama-cpp-python, which fixes the llama.cpp inside it."""
    return str(llama_cpp.__version__)
