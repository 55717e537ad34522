"""What is wrong with a machine, a build or a pair, each in one sentence with the remedy."""

from __future__ import annotations

import platform
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from localspec.hub.suggest import LEAST_RATIO

_REBUILD = (
    'CMAKE_ARGS="-D{flag}=on" pip install --force-reinstall --no-cache-dir --no-binary llama-cpp-python "{package}"'
)
_DRIVER = (Path("/proc/driver/nvidia/version"), Path("/dev/nvidia0"))
_RARE = 0.6
"""A guess that must be right more often than this is a rare one."""


@dataclass(frozen=True, slots=True)
class Warned:
    """Something to put right."""

    kind: str
    """For programs: a word that does not change."""
    sentence: str


@dataclass(frozen=True, slots=True)
class Host:
    """What the machine has, whatever the library was built for."""

    nvidia: bool
    apple_silicon: bool

    @classmethod
    def here(cls) -> Host:
        """This machine."""
        return cls(
            nvidia=shutil.which("nvidia-smi") is not None or any(file.exists() for file in _DRIVER),
            apple_silicon=sys.platform == "darwin" and platform.machine() == "arm64",
        )


def build_warnings(backends: Sequence[str], host: Host, library: str) -> Iterator[Warned]:
    """A library that cannot use the GPU that is there. `library`: the version of llama-cpp-python."""
    package = f"llama-cpp-python=={library}"
    if host.nvidia and not any(name in ("CUDA", "Vulkan") for name in backends):
        command = _REBUILD.format(flag="GGML_CUDA", package=package)
        yield Warned(
            "gpu_unused",
            f"This machine has an NVIDIA GPU, and llama.cpp was built without CUDA; with the CUDA toolkit installed, "
            f"this builds it anew: {command}",
        )
    if host.apple_silicon and not any(name in ("MTL", "Metal") for name in backends):
        command = _REBUILD.format(flag="GGML_METAL", package=package)
        yield Warned(
            "gpu_unused",
            f"This machine has Apple Silicon, and llama.cpp was built without Metal; build it anew: {command}",
        )


def thread_warnings(threads: int | None, cores: int) -> Iterator[Warned]:
    """More threads than fast cores."""
    if threads is not None and threads > cores:
        yield Warned(
            "too_many_threads",
            f"{threads} threads share {cores} fast cores, which is usually slower; leave out --threads for {cores}.",
        )


def pair_warnings(target_bytes: int, draft_bytes: int, target_ms: float, draft_ms: float) -> Iterator[Warned]:
    """A draft model that is too large for its target. Milliseconds: one token of each."""
    if draft_bytes * LEAST_RATIO > target_bytes:
        yield Warned(
            "draft_too_large",
            f"The draft model has {draft_bytes / target_bytes:.0%} of the target's size; choose one of at most "
            f"{1 / LEAST_RATIO:.0%}, a tenth or less at best.",
        )
    elif draft_ms * LEAST_RATIO > target_ms:
        yield Warned(
            "draft_too_slow",
            f"A token of the draft model takes {draft_ms / target_ms:.0%} of the target's time here, more than its size "
            f"suggests; choose a smaller draft model.",
        )


def cache_warnings(draft_kv_type: str) -> Iterator[Warned]:
    """A cache of the draft model that costs acceptance."""
    if draft_kv_type != "f16":
        yield Warned(
            "draft_cache_quantized",
            f"The draft model's KV cache is {draft_kv_type}, which costs acceptance; open it in f16.",
        )


def payoff_warnings(
    copies: float | None, drafts: float | None, has_draft: bool, measured: bool = True
) -> Iterator[Warned]:
    """A curve on which guesses pay only rarely, or never. `copies`, `drafts`: the least acceptance from which each pays."""
    if not measured:
        return
    if copies is None and drafts is None:
        yield Warned(
            "never_pays",
            "On this cost curve speculation cannot pay, however good the guesses are; auto decodes plainly here.",
        )
        return
    if has_draft and drafts is None:
        yield Warned(
            "draft_never_pays",
            "On this cost curve the draft model cannot pay, however good its guesses are; leave it out with --draft none.",
        )
    least = min(value for value in (copies, drafts) if value is not None)
    if least > _RARE:
        yield Warned(
            "rarely_pays",
            f"On this cost curve speculation cannot pay where fewer than {least:.0%} of the guesses are right; auto decodes "
            "plainly there.",
        )
    elif has_draft and drafts is not None and drafts > _RARE:
        yield Warned(
            "draft_rarely_pays",
            f"On this cost curve the draft model cannot pay where fewer than {drafts:.0%} of its guesses are right; a "
            "smaller one needs less.",
        )


def memory_warnings(note: str) -> Iterator[Warned]:
    """What had to be reduced to fit, or was not there. `note`: a sentence, empty where all is well."""
    if note:
        yield Warned("memory" if "memory" in note else "draft_missing", note)
