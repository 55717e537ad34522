"""File modes that bind root too."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

_VERSION_3 = 0x20080522
_BYPASSES = 1 << 1 | 1 << 2 | 1 << 3
"""CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH and CAP_FOWNER."""

_GET_SECUREBITS, _SET_SECUREBITS, _NO_SETUID_FIXUP = 27, 28, 1 << 2


class _Header(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]


class _Sets(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint32) for name in ("effective", "permitted", "inheritable")]


@contextlib.contextmanager
def bound_by_modes() -> Iterator[None]:
    """Whoever runs the tests may do what file modes say, also as root, whom they usually do not concern; threads that are
    begun meanwhile as well. Where that cannot be arranged the test is skipped, and says why."""
    if os.geteuid():
        yield
        return
    if not sys.platform.startswith("linux"):
        pytest.skip("nothing is read-only for root on this system")
    libc, header, sets = ctypes.CDLL(None, use_errno=True), _Header(_VERSION_3, 0), (_Sets * 2)()
    if libc.capget(ctypes.byref(header), sets):
        pytest.skip(f"nothing is read-only for root here (capget: {os.strerror(ctypes.get_errno())})")
    usual, bits = sets[0].effective, libc.prctl(_GET_SECUREBITS)
    sets[0].effective = usual & ~_BYPASSES
    # Without the second, access() would answer by what root could do.
    if libc.prctl(_SET_SECUREBITS, bits | _NO_SETUID_FIXUP) or libc.capset(ctypes.byref(header), sets):
        pytest.skip(f"nothing is read-only for root here (capset: {os.strerror(ctypes.get_errno())})")
    try:
        yield
    finally:
        sets[0].effective = usual
        assert libc.capset(ctypes.byref(header), sets) == 0
        assert libc.prctl(_SET_SECUREBITS, bits) == 0


@contextlib.contextmanager
def without(path: Path, mode: int) -> Iterator[None]:
    """`path` has another mode for a while."""
    usual = path.stat().st_mode & 0o777
    path.chmod(mode)
    with bound_by_modes():
        try:
            yield
        finally:
            path.chmod(usual)
