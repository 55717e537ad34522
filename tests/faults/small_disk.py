"""A disk that takes no more, and takes some again."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

SIZE = 4 << 20


class Disk:
    """`full()`: nothing can be written to `folder` for as long as that lasts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def full(self) -> AbstractContextManager[None]:
        raise NotImplementedError


class _Small(Disk):
    """A file system of a few megabytes, with a file that takes what is left of them: ENOSPC."""

    @contextlib.contextmanager
    def full(self) -> Iterator[None]:
        filler = self.folder / "filler"
        with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(4096))
        assert shutil.disk_usage(self.folder).free == 0
        try:
            yield
        finally:
            filler.unlink()


class _Limited(Disk):
    """No file may have any byte: EFBIG, for this process and those that it starts. Works everywhere."""

    @contextlib.contextmanager
    def full(self) -> Iterator[None]:
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextlib.contextmanager
def mounted(folder: Path, *options: str) -> Iterator[None]:
    """A file system of its own in `folder`. Where none can be mounted, the test is skipped, and says why."""
    if not shutil.which("mount"):
        pytest.skip("no file system can be mounted here (there is no mount)")
    words = ["mount", "-t", "tmpfs", "-o", ",".join(("mode=700", *options)), "tmpfs", str(folder)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no file system can be mounted here ({done.stderr.strip() or os.strerror(1)})")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.fixture(params=["small", "limited"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Disk]:
    folder = tmp_path / "disk"
    folder.mkdir()
    if request.param == "limited":
        yield _Limited(folder)
        return
    with mounted(folder, f"size={SIZE}"):
        yield _Small(folder)
