"""The devices that ggml sees, and their memory."""

import ctypes
import sys
from dataclasses import dataclass
from pathlib import Path

from localspec.engine.llama.library import lib  # noqa: F401  (loads the library and its log callback first)

from llama_cpp._ggml import libggml as _ggml  # isort: skip

_CPU = 0

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
    total_bytes: int


def devices() -> list[Device]:
    """Every device of the compiled-in back ends; the CPU's free memory is what the system says is available."""
    found = []
    for index in range(_ggml.ggml_backend_dev_count()):
        handle = _ggml.ggml_backend_dev_get(index)
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        _ggml.ggml_backend_dev_memory(handle, ctypes.byref(free), ctypes.byref(total))
        is_cpu = _ggml.ggml_backend_dev_type(handle) == _CPU
        found.append(
            Device(
                name=_ggml.ggml_backend_dev_name(handle).decode("utf-8", "replace"),
                description=_ggml.ggml_backend_dev_description(handle).decode("utf-8", "replace"),
                is_cpu=is_cpu,
                # ggml reports all of the CPU's memory as free.
                free_bytes=min(free.value, system_memory_free() or free.value) if is_cpu else free.value,
                total_bytes=total.value,
            )
        )
    return found


def system_memory_free() -> int | None:
    """Bytes of memory that a new allocation can have without swapping, or None where the system does not say."""
    if sys.platform != "linux":
        return None
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return None
