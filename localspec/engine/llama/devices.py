"""The devices that ggml sees, and their memory."""

import contextlib
import ctypes
import sys
from dataclasses import dataclass
from pathlib import Path

from localspec.engine.llama.library import lib  # noqa: F401  (loads the library and its log callback first)

from llama_cpp._ggml import libggml as _ggml  # isort: skip

_CPU, _GPU, _INTEGRATED_GPU = 0, 1, 2
_METAL = "MTL"

_ggml.ggml_backend_dev_count.restype = ctypes.c_size_t
_ggml.ggml_backend_dev_get.argtypes = [ctypes.c_size_t]
_ggml.ggml_backend_dev_get.restype = ctypes.c_void_p
for _name, _result in (("name", ctypes.c_char_p), ("description", ctypes.c_char_p), ("type", ctypes.c_int)):
    _function = getattr(_ggml, f"ggml_backend_dev_{_name}")
    _function.argtypes = [ctypes.c_void_p]
    _function.restype = _result
_ggml.ggml_backend_dev_memory.argtypes = [
    ctypes.c_void_p,
    ctypes.POINTER(ctypes.c_size_t),
    ctypes.POINTER(ctypes.c_size_t),
]


@dataclass(frozen=True, slots=True)
class Device:
    """A device that can hold and run a model. Memory in bytes."""

    name: str
    description: str
    is_cpu: bool
    free_bytes: int
    """Of a Metal device what is left of the memory that the system recommends to keep resident."""
    total_bytes: int
    is_gpu: bool = False
    """Whether layers can be put on it; helpers of the CPU, such as a BLAS library, hold none."""
    shares_memory: bool = False
    """Whether its memory is a part of the system's."""


def devices() -> list[Device]:
    """Every device of the compiled-in back ends; the CPU's free memory is what the system says is available."""
    found = []
    for index in range(_ggml.ggml_backend_dev_count()):
        handle = _ggml.ggml_backend_dev_get(index)
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        _ggml.ggml_backend_dev_memory(handle, ctypes.byref(free), ctypes.byref(total))
        kind = _ggml.ggml_backend_dev_type(handle)
        name = _ggml.ggml_backend_dev_name(handle).decode("utf-8", "replace")
        is_cpu = kind == _CPU
        found.append(
            Device(
                name=name,
                description=_ggml.ggml_backend_dev_description(handle).decode("utf-8", "replace"),
                is_cpu=is_cpu,
                # ggml reports all of the CPU's memory as free.
                free_bytes=min(free.value, system_memory_free() or free.value) if is_cpu else free.value,
                total_bytes=total.value,
                is_gpu=kind in (_GPU, _INTEGRATED_GPU),
                # Metal's devices call themselves plain GPUs.
                shares_memory=kind == _INTEGRATED_GPU or (kind == _GPU and name.startswith(_METAL)),
            )
        )
    return found


def system_memory_free() -> int | None:
    """Bytes of memory that a new allocation can have without swapping, or None where the system does not say."""
    if sys.platform != "linux":
        return None
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return min(int(line.split()[1]) * 1024, *_left_by_limits(Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")))
    return None


def _left_by_limits(own: Path, groups: Path) -> list[int]:
    """Bytes left of the limits that are set for this process and for the container it is in. `own`: the file with its
    control group. `groups`: the folder of all control groups, version 2."""
    left = [sys.maxsize]
    try:
        path = next(line[3:] for line in own.read_text().splitlines() if line.startswith("0::"))
    except (OSError, StopIteration):
        return left
    folder = groups / path.strip("/")
    for group in (folder, *folder.parents):
        if not group.is_relative_to(groups):
            break
        with contextlib.suppress(OSError, ValueError):
            # Pages of files are given back before anything else.
            stat = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
            used = int((group / "memory.current").read_text()) - int(stat.get("inactive_file", 0))
            left.append(max(0, int((group / "memory.max").read_text()) - used))
    return left
