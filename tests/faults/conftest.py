"""What several tests of faults have."""

from __future__ import annotations

from small_disk import disk

__all__ = ["disk"]
