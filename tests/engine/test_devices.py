"""The devices that ggml sees, and how much memory is free."""

from pathlib import Path

import pytest

from localspec.engine.llama import devices
from localspec.engine.llama.devices import _left_by_limits

GIB = 1 << 30


def test_there_is_a_cpu_and_its_free_memory_is_not_all_of_it() -> None:
    """What other programs have is not free."""
    (cpu,) = (device for device in devices() if device.is_cpu)
    assert not cpu.is_gpu
    assert not cpu.shares_memory
    assert 0 < cpu.free_bytes < cpu.total_bytes


def group(folder: Path, limit: str, used: int, cached: int = 0) -> None:
    """A control group as Linux shows it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "memory.max").write_text(f"{limit}\n")
    (folder / "memory.current").write_text(f"{used}\n")
    (folder / "memory.stat").write_text(f"anon {used - cached}\ninactive_file {cached}\n")


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """Says that this process is in the group /outer/inner."""
    file = tmp_path / "cgroup"
    file.write_text("1:name=systemd:/\n0::/outer/inner\n")
    return file


def test_the_tightest_limit_of_a_container_counts(own: Path, tmp_path: Path) -> None:
    """Its own and those of the groups around it; pages of files are as good as free."""
    groups = tmp_path / "groups"
    group(groups / "outer", str(8 * GIB), 6 * GIB, cached=GIB)
    group(groups / "outer" / "inner", str(4 * GIB), 0)
    assert min(_left_by_limits(own, groups)) == 3 * GIB


def test_no_limit_takes_nothing_away(own: Path, tmp_path: Path) -> None:
    """As on most machines."""
    groups = tmp_path / "groups"
    group(groups / "outer" / "inner", "max", GIB)
    assert min(_left_by_limits(own, groups)) > 1 << 50
    assert min(_left_by_limits(tmp_path / "nowhere", groups)) > 1 << 50


def test_a_group_that_is_over_its_limit_has_nothing_left(own: Path, tmp_path: Path) -> None:
    """Not less than nothing."""
    groups = tmp_path / "groups"
    group(groups / "outer" / "inner", str(GIB), 2 * GIB)
    assert min(_left_by_limits(own, groups)) == 0
