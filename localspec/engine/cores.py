"""How many threads decoding should use: the physical performance cores this process may run on."""

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

_CPUS = Path("/sys/devices/system/cpu")
_INTEL_PERFORMANCE_CORES = Path("/sys/devices/cpu_core/cpus")


@cache
def performance_cores() -> int:
    """Physical performance cores, at least 1: no hyper-threads, no efficiency cores, no more than a container allows."""
    if sys.platform == "linux":
        found = _linux_cores(os.sched_getaffinity(0), _CPUS, _INTEL_PERFORMANCE_CORES)
        quota = _container_quota(Path("/sys/fs/cgroup/cpu.max"))
        return max(1, min(found, quota) if quota else found)
    if sys.platform == "darwin":
        return _mac_cores() or os.cpu_count() or 1
    # Elsewhere the number of hyper-threads per core is not told; two is the common case.
    return max(1, (os.cpu_count() or 2) // 2)


def _linux_cores(allowed: set[int], cpus: Path, intel: Path) -> int:
    if intel.is_file():
        fast = _parse_list(intel.read_text()) & allowed
        allowed = fast or allowed
    capacity = {cpu: _read_int(cpus / f"cpu{cpu}" / "cpu_capacity") for cpu in allowed}
    best = max(capacity.values(), default=0)
    fast = {cpu for cpu in allowed if capacity[cpu] >= 0.8 * best}
    cores = set()
    for cpu in fast:
        siblings = cpus / f"cpu{cpu}" / "topology" / "core_cpus_list"
        cores.add(min(_parse_list(siblings.read_text())) if siblings.is_file() else cpu)
    return len(cores) or len(allowed)


def _mac_cores() -> int:
    for name in ("hw.perflevel0.physicalcpu", "hw.physicalcpu"):
        answer = subprocess.run(["/usr/sbin/sysctl", "-n", name], capture_output=True, text=True, check=False)
        if answer.returncode == 0 and answer.stdout.strip().isdigit():
            return int(answer.stdout)
    return 0


def _container_quota(path: Path) -> int:
    """Whole cores of a container's CPU quota, 0 when there is none."""
    if not path.is_file():
        return 0
    quota, _, period = path.read_text().strip().partition(" ")
    return max(1, int(quota) // int(period)) if quota.isdigit() and period.isdigit() else 0


def _parse_list(text: str) -> set[int]:
    """The numbers of a kernel list such as "0-3,8"."""
    numbers: set[int] = set()
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        if first.isdigit():
            numbers.update(range(int(first), int(last or first) + 1))
    return numbers


def _read_int(path: Path) -> int:
    text = path.read_text().strip() if path.is_file() else ""
    return int(text) if text.isdigit() else 0
