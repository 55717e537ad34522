"""The memory of one sequence (its KV cache, and running states where there are any), and how it is cut back.

Four kinds of memory, four rules; a rollback that llama.cpp answers with success can still be wrong, so the rule is chosen
by kind and not by trying. Nothing here ever keeps a wrong state: where a cut is not exact, less is kept, and the caller
evaluates the missing tokens again.
"""

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from localspec.engine.llama.library import LlamaError, lib

_SEQUENCE = 0
_PARTIAL = lib.LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY


class MemoryKind(Enum):
    """What a context keeps of the tokens it has seen."""

    PLAIN = "attention"
    """Every token's keys and values: any cut is exact."""
    WINDOW = "sliding window"
    """Keys and values of a window: a cut is exact while the window before it is still there."""
    SNAPSHOTS = "recurrent with snapshots"
    """A running state with a few snapshots: only the tail of the pass just made can be cut."""
    CHECKPOINTS = "recurrent"
    """A running state: it can only be put back to a state that was saved before."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The running states after `length` tokens."""

    length: int
    data: ctypes.Array[ctypes.c_uint8]


class SequenceMemory:
    """The memory of sequence 0 of one context."""

    def __init__(self, context: object, *, recurrent: bool, window: int, snapshots: int) -> None:
        """`window`: tokens, 0 when the whole past is kept. `snapshots`: how many tokens back the running state can go,
        as granted by the context."""
        self._context = context
        self._memory = lib.llama_get_memory(context)
        self._window = window
        self._snapshots = snapshots
        self._loaded_window = 0
        self._undoable = 0
        self._checkpoints: dict[str, Checkpoint] = {}
        if recurrent:
            self.kind = MemoryKind.SNAPSHOTS if snapshots > 0 else MemoryKind.CHECKPOINTS
        else:
            self.kind = MemoryKind.WINDOW if window > 0 else MemoryKind.PLAIN

    @property
    def is_recurrent(self) -> bool:
        """Whether there is a running state that cannot simply be cut."""
        return self.kind in (MemoryKind.SNAPSHOTS, MemoryKind.CHECKPOINTS)

    def length(self) -> int:
        """How many tokens the memory holds."""
        return int(lib.llama_memory_seq_pos_max(self._memory, _SEQUENCE)) + 1

    def clear(self) -> None:
        """Forget everything."""
        lib.llama_memory_clear(self._memory, True)
        self._loaded_window = 0
        self._undoable = 0
        self._checkpoints.clear()

    def evaluated(self, width: int) -> None:
        """A pass of `width` tokens has been made. Its snapshots reach at most width - 1 tokens back, and serve once."""
        self._undoable = min(width - 1, self._snapshots)

    def mark(self, name: str, length: int) -> None:
        """Save the running states at the present length, under a name that replaces its older mark. A memory that can
        be cut needs none."""
        if not self.is_recurrent or length == 0:
            return
        size = lib.llama_state_seq_get_size_ext(self._context, _SEQUENCE, _PARTIAL)
        data = (ctypes.c_uint8 * size)()
        if lib.llama_state_seq_get_data_ext(self._context, data, size, _SEQUENCE, _PARTIAL) != size:
            raise LlamaError("the running state could not be saved")
        self._checkpoints[name] = Checkpoint(length, data)

    @property
    def marks(self) -> Mapping[str, Checkpoint]:
        """The marks that can be gone back to, by name."""
        return self._checkpoints

    def loaded(self, marks: Mapping[str, Checkpoint], window: int) -> None:
        """A saved state has been loaded into the empty memory, with these marks. Of layers that look back over a `window` (0
        when there are none) a state holds that window alone, whatever the context has room for."""
        self._loaded_window = window
        # Where a running state has such layers beside it, nobody can tell how far back they reach.
        self._checkpoints = dict(marks) if self.is_recurrent and not window else {}

    def cut(self, present: int, length: int) -> int:
        """Forget the tokens from `length` on, of the `present` ones. Returns how many are really kept: `length`, or fewer
        where the memory cannot go back to exactly there."""
        if length >= present:
            return present
        if length <= 0:
            self.clear()
            return 0
        kept = self._cut_running_state(present, length) if self.is_recurrent else self._cut_attention(length)
        if self._checkpoints:
            self._checkpoints = {name: mark for name, mark in self._checkpoints.items() if mark.length <= kept}
        if (left := self.length()) != kept:
            raise LlamaError(f"the memory holds {left} tokens after a cut to {kept}")
        return kept

    def _cut_attention(self, length: int) -> int:
        if self.kind is MemoryKind.WINDOW or self._loaded_window:
            window = self._window or self._loaded_window
            # The oldest cell must be asked for before the cut: afterwards it is not told any more.
            oldest = lib.llama_memory_seq_pos_min(self._memory, _SEQUENCE)
            if oldest > max(0, length - window):
                self.clear()
                return 0
        if not self._remove_from(length):
            self.clear()
            return 0
        return length

    def _cut_running_state(self, present: int, length: int) -> int:
        if 0 < present - length <= self._undoable:
            self._undoable = 0
            if self._remove_from(length):
                return length
        return self._restore(length)

    def recover(self) -> int:
        """Nobody knows what a failed pass has left of a running state: go back to the latest mark. Returns how many tokens
        are kept."""
        return self._restore(max((mark.length for mark in self._checkpoints.values()), default=0))

    def _restore(self, length: int) -> int:
        """Put the latest state back that was saved at `length` tokens or before, or forget everything."""
        usable = [mark for mark in self._checkpoints.values() if mark.length <= length]
        if not usable:
            self.clear()
            return 0
        mark = max(usable, key=lambda candidate: candidate.length)
        size = len(mark.data)
        self._undoable = 0
        restored = lib.llama_state_seq_set_data_ext(self._context, mark.data, size, _SEQUENCE, _PARTIAL)
        if restored != size or not self._remove_from(mark.length):
            self.clear()
            return 0
        return mark.length

    def _remove_from(self, length: int) -> bool:
        return bool(lib.llama_memory_seq_rm(self._memory, _SEQUENCE, length, -1))
