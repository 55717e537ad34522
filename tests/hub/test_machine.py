"""What of a machine's memory models can have."""

import pytest

from localspec.engine.llama import devices
from localspec.hub import machine
from localspec.hub.machine import GIB, apple_silicon, cuda, laptop, this_machine


def test_this_machine_has_less_than_its_memory_and_more_than_nothing() -> None:
    """What is free, but for a reserve."""
    found = this_machine()
    system = next(device for device in devices() if device.is_cpu)
    assert found.name
    assert 0 < found.memory < system.total_bytes


def device(**facts: object) -> object:
    """A device as ggml would describe it."""
    from localspec.engine.llama import Device

    usual = {"name": "CPU", "description": "a CPU", "is_cpu": False, "free_bytes": 0, "total_bytes": 0}
    return Device(**{**usual, **facts})  # type: ignore[arg-type]


CPU = device(is_cpu=True, free_bytes=16 * GIB, total_bytes=16 * GIB)


def with_devices(monkeypatch: pytest.MonkeyPatch, *found: object) -> machine.Machine:
    """This machine, if it had these devices."""
    monkeypatch.setattr("localspec.engine.llama.devices", lambda: list(found))
    return this_machine()


def test_unified_memory_is_not_counted_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Metal's recommendation is a part of the system's memory."""
    metal = device(name="MTL0", description="Apple M3", free_bytes=11 * GIB, is_gpu=True, shares_memory=True)
    found = with_devices(monkeypatch, metal, CPU)
    assert found.unified
    assert found.name == "Apple M3"
    assert 10 * GIB < found.gpu < 11 * GIB < found.memory < 16 * GIB


def test_a_card_has_memory_of_its_own_and_its_driver_takes_some(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two cards are one after another."""
    card = device(name="CUDA0", description="a card", free_bytes=8 * GIB, is_gpu=True)
    found = with_devices(monkeypatch, card, card, CPU)
    assert not found.unified
    assert found.name == "a card + a card"
    assert 14 * GIB < found.gpu <= 15 * GIB


def test_a_helper_of_the_cpu_is_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A BLAS library is a device to ggml, and holds no layers."""
    found = with_devices(monkeypatch, device(name="BLAS", free_bytes=4 * GIB), CPU)
    assert not found.has_gpu


def test_made_up_machines_leave_room_for_the_system() -> None:
    """Nobody has all of the memory."""
    for gigabytes in (8, 16, 24, 36, 64):
        assert laptop(gigabytes).memory <= (gigabytes - 2) * GIB
        assert 0.6 < apple_silicon(gigabytes).gpu / (gigabytes * GIB) < 0.8
        assert cuda(gigabytes).gpu < gigabytes * GIB
