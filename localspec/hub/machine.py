"""A machine as a model sees it: how much memory there is, and which of it a GPU can use."""

from __future__ import annotations

from dataclasses import dataclass

GIB = 1 << 30
_SPARE_SHARE = 0.05
_SPARE = 256 << 20
_GPU_SPARE = 512 << 20
"""What a GPU's driver and its libraries take beside our buffers."""
_SYSTEM = 5 * GIB // 2
"""What the operating system and a browser take of a made-up machine, or a fifth of it where that is more."""


@dataclass(frozen=True, slots=True)
class Machine:
    """Memory in bytes: of this machine as it is now, or of one that was made up for a table."""

    name: str
    memory: int
    """What models can have of the system's memory."""
    gpu: int = 0
    """What models can have of a GPU's memory; 0 without a GPU."""
    unified: bool = False
    """Whether the GPU's memory is a part of the system's (Apple Silicon), and must not be counted twice."""

    @property
    def has_gpu(self) -> bool:
        """Whether layers can be put on a GPU at all."""
        return self.gpu > 0


def this_machine() -> Machine:
    """The machine this runs on, with the memory that is free now. Loads llama.cpp's library."""
    from localspec.engine.llama import devices

    found = devices()
    gpus = [device for device in found if device.is_gpu]
    system = sum(device.free_bytes for device in found if device.is_cpu)
    return Machine(
        name=" + ".join(device.description for device in (gpus or found)),
        memory=_without_spare(system, _SPARE),
        gpu=sum(_without_spare(device.free_bytes, 0 if device.shares_memory else _GPU_SPARE) for device in gpus),
        unified=any(device.shares_memory for device in gpus),
    )


def laptop(gigabytes: int) -> Machine:
    """A computer without a GPU that llama.cpp can use."""
    return Machine(f"{gigabytes} GB without a GPU", _beside_the_system(gigabytes))


def apple_silicon(gigabytes: int) -> Machine:
    """A Mac: Metal recommends to keep at most two thirds of the memory resident, three quarters above 32 GB."""
    share = 3 / 4 if gigabytes > 32 else 2 / 3
    return Machine(f"{gigabytes} GB Apple Silicon", _beside_the_system(gigabytes), int(gigabytes * GIB * share), True)


def cuda(gigabytes: int, memory_gigabytes: int = 32) -> Machine:
    """A computer with a GPU that has memory of its own."""
    return Machine(
        f"{gigabytes} GB CUDA", _beside_the_system(memory_gigabytes), _without_spare(gigabytes * GIB, _GPU_SPARE)
    )


def _beside_the_system(gigabytes: int) -> int:
    return gigabytes * GIB - max(_SYSTEM, gigabytes * GIB // 5)


def _without_spare(free: int, least: int) -> int:
    return max(0, free - max(least, int(free * _SPARE_SHARE)))
