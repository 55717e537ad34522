"""How many threads to use, on machines that are folders."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from localspec.engine import cores
from localspec.engine.cores import _container_quota, _linux_cores, _parse_list, performance_cores


def machine(folder: Path, siblings: Mapping[int, str], capacity: Mapping[int, int] | None = None) -> Path:
    """A /sys/devices/system/cpu: which logical CPUs share a core with each, and how strong each is."""
    for cpu, shared in siblings.items():
        topology = folder / f"cpu{cpu}" / "topology"
        topology.mkdir(parents=True)
        (topology / "core_cpus_list").write_text(f"{shared}\n")
        if capacity:
            (folder / f"cpu{cpu}" / "cpu_capacity").write_text(f"{capacity[cpu]}\n")
    return folder


def test_hyper_threads_count_once(tmp_path: Path) -> None:
    """Numbered side by side, as on some machines, or half the range apart, as on others."""
    side_by_side = machine(tmp_path / "a", {cpu: f"{cpu // 2 * 2}-{cpu // 2 * 2 + 1}" for cpu in range(8)})
    apart = machine(tmp_path / "b", {cpu: f"{cpu % 4},{cpu % 4 + 4}" for cpu in range(8)})
    none = machine(tmp_path / "c", {cpu: str(cpu) for cpu in range(8)})
    nowhere = tmp_path / "no intel"
    assert _linux_cores(set(range(8)), side_by_side, nowhere) == 4
    assert _linux_cores(set(range(8)), apart, nowhere) == 4
    assert _linux_cores(set(range(8)), none, nowhere) == 8


def test_only_cpus_that_the_process_may_use(tmp_path: Path) -> None:
    """taskset: both threads of one core are one, one thread of each of two cores are two."""
    cpus = machine(tmp_path / "cpus", {cpu: f"{cpu // 2 * 2}-{cpu // 2 * 2 + 1}" for cpu in range(8)})
    nowhere = tmp_path / "no intel"
    assert _linux_cores({4, 5}, cpus, nowhere) == 1
    assert _linux_cores({1, 3}, cpus, nowhere) == 2
    assert _linux_cores({7}, cpus, nowhere) == 1


def test_intel_hybrid(tmp_path: Path) -> None:
    """Four performance cores with two threads each and eight efficiency cores: four, or what is allowed of them."""
    siblings = {cpu: f"{cpu // 2 * 2}-{cpu // 2 * 2 + 1}" for cpu in range(8)} | {cpu: str(cpu) for cpu in range(8, 16)}
    cpus = machine(tmp_path / "cpus", siblings)
    fast = tmp_path / "cpu_core"
    fast.write_text("0-7\n")
    assert _linux_cores(set(range(16)), cpus, fast) == 4
    assert _linux_cores({0, 1, 2, 3, 12, 13}, cpus, fast) == 2
    # Confined to efficiency cores, those are what there is.
    assert _linux_cores({8, 9, 10}, cpus, fast) == 3


def test_arm_big_little(tmp_path: Path) -> None:
    """By capacity: the prime core and the big ones count, the small ones do not."""
    capacity = {0: 250, 1: 250, 2: 250, 3: 250, 4: 870, 5: 870, 6: 870, 7: 1024}
    cpus = machine(tmp_path / "cpus", {cpu: str(cpu) for cpu in range(8)}, capacity)
    nowhere = tmp_path / "no intel"
    assert _linux_cores(set(range(8)), cpus, nowhere) == 4
    assert _linux_cores({0, 1, 2}, cpus, nowhere) == 3
    assert _linux_cores({0, 1, 7}, cpus, nowhere) == 1


def test_machines_that_tell_nothing(tmp_path: Path) -> None:
    """Every allowed CPU is taken for a core."""
    assert _linux_cores({0, 1, 2}, tmp_path / "nothing", tmp_path / "nothing either") == 3
    broken = machine(tmp_path / "cpus", {0: "0", 1: "1"}, {0: 5, 1: 5})
    (broken / "cpu0" / "cpu_capacity").write_text("what?\n")
    assert _linux_cores({0, 1}, broken, tmp_path / "nothing") == 1


@pytest.mark.parametrize(
    ("written", "whole"),
    [
        ("max 100000", 0),
        ("400000 100000", 4),
        ("150000 100000", 1),
        ("50000 100000", 1),
        ("", 0),
        ("nonsense", 0),
        ("100000", 0),
        ("0 100000", 1),
    ],
)
def test_container_quota(tmp_path: Path, written: str, whole: int) -> None:
    """Whole cores, never less than one where there is a quota at all."""
    path = tmp_path / "cpu.max"
    path.write_text(f"{written}\n")
    assert _container_quota(path) == whole


def test_no_container(tmp_path: Path) -> None:
    assert _container_quota(tmp_path / "cpu.max") == 0


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("0-3,8\n", {0, 1, 2, 3, 8}),
        ("5", {5}),
        ("", set()),
        ("\n", set()),
        ("0,2-2,7-9", {0, 2, 7, 8, 9}),
        ("x-3", set()),
    ],
)
def test_kernel_lists(text: str, numbers: set[int]) -> None:
    assert _parse_list(text) == numbers


@pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's folders")
@pytest.mark.parametrize(("found", "quota", "threads"), [(8, 0, 8), (8, 3, 3), (2, 6, 2), (0, 0, 1)])
def test_the_smaller_of_cores_and_quota(monkeypatch: pytest.MonkeyPatch, found: int, quota: int, threads: int) -> None:
    monkeypatch.setattr(cores, "_linux_cores", lambda *_: found)
    monkeypatch.setattr(cores, "_container_quota", lambda _: quota)
    assert performance_cores.__wrapped__() == threads


@pytest.mark.parametrize(
    ("answers", "threads"),
    [
        ({"hw.perflevel0.physicalcpu": "6", "hw.physicalcpu": "8"}, 6),
        ({"hw.physicalcpu": "4"}, 4),
        ({}, 0),
        ({"hw.perflevel0.physicalcpu": "lots"}, 0),
    ],
)
def test_mac(monkeypatch: pytest.MonkeyPatch, answers: dict[str, str], threads: int) -> None:
    """Performance cores on Apple silicon, physical cores on Intel; unknown names are an error of sysctl."""

    class Done:
        def __init__(self, name: str) -> None:
            self.returncode, self.stdout = (0, answers[name] + "\n") if name in answers else (1, "")

    monkeypatch.setattr(cores.subprocess, "run", lambda command, **_: Done(command[-1]))
    assert cores._mac_cores() == threads


def test_elsewhere_half_of_the_logical_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cores.sys, "platform", "win32")
    for logical, threads in ((16, 8), (1, 1), (None, 1)):
        monkeypatch.setattr(cores.os, "cpu_count", lambda logical=logical: logical)
        assert performance_cores.__wrapped__() == threads
