"""The caches of an engine in a file: what has been read once is not read again after a restart.

    "localspec-caches-1\\n"
    length of the heading (4 bytes), heading (JSON: of each cache, the model file and the settings it was made with), SHA-256
    for each cache: length (8 bytes), state (engine/llama/state.py, with its own SHA-256)

A file is only ever used whole and by the very models and settings it was made with; anything else is logged and removed, and
the text is read again. It says which tokens the caches hold, never what the text of a chat is.
"""

import hashlib
import json
import logging
import os
import struct
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from localspec.engine.errors import Interrupted
from localspec.engine.gguf import GgufHeader, parts
from localspec.engine.llama import (
    PIECE_BYTES,
    Context,
    LlamaError,
    fingerprint,
    load_state,
    save_state,
    state_bytes,
    system_memory_free,
)

PART_SUFFIX = ".part"
"""How the name of a file ends while it is being written."""

_MAGIC = b"localspec-caches-1\n"
_HEADING_LENGTH = struct.Struct("<I")
_STATE_LENGTH = struct.Struct("<Q")
_LONGEST_HEADING = 1_000_000
_SAMPLES, _SAMPLE_BYTES, _HEADER_BYTES = 256, 4096, 16_000_000

_log = logging.getLogger("localspec.engine")
_log.addHandler(logging.NullHandler())


class _UnusableError(Exception):
    """Why a file is not used."""


class ModelFile:
    """Which weights a cache was made with.

    Name, size, time of change, and the SHA-256 of the header and of 256 blocks spread evenly over the file. All of a large
    model would take seconds to read, and the time of change is not enough: it survives some copies and some downloads. A
    fine-tune of the same model has the same size and often the same header; its blocks differ.
    """

    def __init__(self, header: GgufHeader) -> None:
        """Remember the files as they are; to be made before they are loaded."""
        self._files = parts(header)
        self._header_bytes = min(header.data_offset, _HEADER_BYTES)
        self._loaded = self._stamps()
        self._digest: str | None = None

    @property
    def name(self) -> str:
        """Of the first file."""
        return self._files[0].name

    @property
    def stamps(self) -> list[tuple[int, int]]:
        """Bytes and time of change of every file, as they were before it was loaded; empty where one was gone."""
        return self._loaded

    def identity(self) -> dict[str, object] | None:
        """None when the files have changed since they were loaded: then nobody knows which weights are in memory."""
        if not self._loaded or self._stamps() != self._loaded:
            return None
        if self._digest is None:
            try:
                self._digest = self._sample()
            except OSError:
                return None
        return {
            "names": [path.name for path in self._files],
            "stamps": [list(stamp) for stamp in self._loaded],
            "digest": self._digest,
        }

    def _stamps(self) -> list[tuple[int, int]]:
        try:
            return [(status.st_size, status.st_mtime_ns) for status in (path.stat() for path in self._files)]
        except OSError:
            return []

    def _sample(self) -> str:
        digest = hashlib.sha256()
        for path, (size, _) in zip(self._files, self._loaded, strict=True):
            with path.open("rb", buffering=0) as file:
                digest.update(file.read(self._header_bytes))
                for number in range(_SAMPLES):
                    file.seek(max(0, size - _SAMPLE_BYTES) * number // (_SAMPLES - 1))
                    digest.update(file.read(_SAMPLE_BYTES))
        return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class Cache:
    """One of an engine's caches: "target" or "draft"."""

    role: str
    context: Context
    file: ModelFile

    def made_with(self) -> dict[str, object] | None:
        """What must be the same for a file to be used; None when that is not known."""
        identity = self.file.identity()
        return {"role": self.role, "file": identity, "settings": fingerprint(self.context)} if identity else None


def write_caches(
    path: Path, caches: Sequence[Cache], most: int | None = None, unwanted: Callable[[], bool] | None = None
) -> int:
    """Write the caches, the target's first, to a file that only its owner can read, whole or not at all. Returns its
    bytes; 0 where none was written: there is nothing to keep, it would be larger than `most` bytes, or `unwanted` says
    meanwhile that something else is to be done now."""
    held = [cache for cache in caches if cache.context.tokens]
    made_with = [cache.made_with() for cache in held]
    if not held or held[0].role != "target" or None in made_with:
        return 0
    sizes = [state_bytes(cache.context) for cache in held]
    if not _worth_it(path, sizes, most):
        return 0
    part: Path | None = None
    try:
        # Others cannot read it: mkstemp gives mode 0600.
        handle, name = tempfile.mkstemp(PART_SUFFIX, f"{path.name}.", path.parent)
        part = Path(name)
        with os.fdopen(handle, "wb", buffering=0) as file:
            _write(file, _heading(made_with), unwanted)
            for cache in held:
                state = save_state(cache.context, unwanted)
                _write(file, _STATE_LENGTH.pack(len(state)), unwanted)
                _write(file, state, unwanted)
                # Before the next one takes as much.
                del state
            written = file.tell()
        # Not forced to the disk, which takes seconds: what a power cut leaves half written has a wrong checksum.
        part.replace(path)
    except Interrupted:
        return 0
    except (OSError, LlamaError, MemoryError) as error:
        _log.warning("the caches are not kept in %s: %s", path, error)
        return 0
    finally:
        if part:
            part.unlink(missing_ok=True)
    return written


def read_caches(path: Path, caches: Sequence[Cache]) -> int:
    """Put back what the file holds. Returns how many tokens the target's cache has from it; 0 where there is no file that
    can be used, and then the caches hold what they did, or nothing. The draft model's cache is put back where the file has
    one for it. A wrong or damaged file is removed."""
    loaded = 0
    try:
        with path.open("rb", buffering=0) as file:
            for cache, start, length in _usable(file, caches):
                file.seek(start)
                if not load_state(cache.context, _read(file, length)):
                    raise _UnusableError(f"the state of the {cache.role} is damaged or does not fit")
                if cache.role == "target":
                    loaded = len(cache.context.tokens)
    except FileNotFoundError:
        return 0
    except MemoryError:
        _log.warning("%s is not used: there is too little memory", path)
    except (OSError, _UnusableError) as error:
        _log.warning("%s is not used and removed: %s", path, error)
        _remove(path)
    return loaded


def _worth_it(path: Path, sizes: Sequence[int], most: int | None) -> bool:
    free = system_memory_free()
    if most is not None and sum(sizes) > most:
        _log.info("the caches are not kept in %s: %d bytes are more than %d", path, sum(sizes), most)
        return False
    if free is not None and max(sizes) > free // 2:
        _log.info("the caches are not kept in %s: %d bytes of memory are needed, %d free", path, max(sizes), free)
        return False
    return True


def _heading(made_with: Sequence[object]) -> bytes:
    text = json.dumps(made_with, sort_keys=True).encode()
    heading = _MAGIC + _HEADING_LENGTH.pack(len(text)) + text
    return heading + hashlib.sha256(heading).digest()


def _usable(file: BinaryIO, caches: Sequence[Cache]) -> list[tuple[Cache, int, int]]:
    """The caches that the file has a state for, with its place and length, the target's first. Nothing is loaded before the
    file is known to be whole in outline and the target's own."""
    made_with = _made_with(file)
    whole, here = os.fstat(file.fileno()).st_size, file.tell()
    found = []
    for other in made_with:
        (length,) = _STATE_LENGTH.unpack(_read(file, _STATE_LENGTH.size))
        start, here = file.tell(), file.tell() + length
        if here > whole:
            raise _UnusableError("it is cut short")
        file.seek(here)
        found += [(cache, start, length) for cache in caches if cache.made_with() == other]
    if here != whole:
        raise _UnusableError("it is longer than it should be")
    if not found or found[0][0].role != "target":
        raise _UnusableError("it is from another model, setting or version")
    return found


def _made_with(file: BinaryIO) -> list[object]:
    start = _read(file, len(_MAGIC) + _HEADING_LENGTH.size)
    (length,) = _HEADING_LENGTH.unpack_from(start, len(_MAGIC))
    if not start.startswith(_MAGIC) or length > _LONGEST_HEADING:
        raise _UnusableError("it is no file of ours, or of another version")
    text = _read(file, length)
    if _read(file, hashlib.sha256().digest_size) != hashlib.sha256(start + text).digest():
        raise _UnusableError("its heading is damaged")
    try:
        made_with = json.loads(bytes(text))
    except ValueError:
        made_with = None
    if not isinstance(made_with, list):
        raise _UnusableError("its heading is damaged")
    return made_with


def _write(file: BinaryIO, data: bytes | bytearray, unwanted: Callable[[], bool] | None) -> None:
    view = memoryview(data)
    while view:
        if unwanted and unwanted():
            raise Interrupted
        view = view[file.write(view[:PIECE_BYTES]) :]


def _read(file: BinaryIO, length: int) -> bytearray:
    data = bytearray(length)
    view = memoryview(data)
    while view:
        count = file.readinto(view[:PIECE_BYTES])  # type: ignore[attr-defined]
        if not count:
            raise _UnusableError("it is cut short")
        view = view[count:]
    return data


def _remove(path: Path) -> None:
    try:
        path.unlink()
    except OSError as error:
        _log.warning("%s cannot be removed: %s", path, error)
