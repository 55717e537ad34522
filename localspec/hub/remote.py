"""The models of a repository on the hub: their files, and which belong together."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath

_PART = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})", re.IGNORECASE)
_QUANTIZATION = re.compile(
    r"(?:^|[-._])((?:UD-)?(?:I?Q\d(?:_[A-Z0-9]+)*|TQ\d_\d|MXFP4(?:_MOE)?|NVFP4|BF16|FP?16|FP?32))(?=$|[-._])",
    re.IGNORECASE,
)
_NO_MODEL = re.compile(r"(?:^|[-._])(?:mmproj|imatrix|vocab)(?:$|[-._])", re.IGNORECASE)
_SHA256, _SHA1 = re.compile(r"[0-9a-f]{64}"), re.compile(r"[0-9a-f]{40}")
_COMMIT = re.compile(r"[\w.-]{1,128}", re.ASCII)
_LARGEST = 1 << 50
"""Bytes: a petabyte is no model."""
_LONGEST_NAME = 160
"""Bytes: a file system takes 255, and a part has the owner before its name and endings behind it."""
PREFERRED = ("Q4_K_M", "UD-Q4_K_XL", "Q4_K_S", "Q5_K_M", "Q4_0", "Q4_1", "IQ4_XS", "Q8_0")
"""What is taken where nothing is known of the memory: about half a byte a weight, at little loss."""


@dataclass(frozen=True)
class RemoteFile:
    """One file of a repository, at one commit."""

    repository: str
    commit: str
    path: str
    """In the repository."""
    size: int
    """Bytes."""
    etag: str
    """What the hub knows the content by: its SHA-256, or for small files the id of git's blob."""
    sha256: str | None
    """In lower-case hexadecimal; None where the hub does not say."""

    @property
    def name(self) -> str:
        """The file's name without the folders of the repository."""
        return PurePosixPath(self.path).name

    @property
    def is_possible(self) -> bool:
        """Whether these words of a hub can be a file that is fetched: its name must become one in the models folder, and
        its hash must be one."""
        hashed = (
            _SHA256.fullmatch(self.sha256) and self.etag == self.sha256 if self.sha256 else _SHA1.fullmatch(self.etag)
        )
        names = self.path.split("/")
        return (
            bool(hashed)
            and _COMMIT.fullmatch(self.commit) is not None
            and 0 <= self.size < _LARGEST
            and self.path.isprintable()
            and not any(name in ("", ".", "..") or "\\" in name for name in names)
            and not self.name.startswith(".")
            and len(os.fsencode(self.name)) <= _LONGEST_NAME
        )


@dataclass(frozen=True)
class RemoteModel:
    """One quantization of a model: a file, or all parts of a split one."""

    files: tuple[RemoteFile, ...]
    """In order."""
    missing: int = 0
    """Parts that the repository does not have."""

    @property
    def quantization(self) -> str:
        """As in "Q4_K_M", in capitals; "" where the name does not say."""
        return quantization_of(self.files[0].path)

    @property
    def bytes(self) -> int:
        """Size, all parts together."""
        return sum(file.size for file in self.files)

    @property
    def name(self) -> str:
        """The file's name without .gguf, and without the part number of a split model."""
        stem = self.files[0].name[: -len(".gguf")]
        part = _PART.fullmatch(stem)
        return part["stem"] if part else stem


def quantization_of(path: str) -> str:
    """The quantization that a file's name tells, else its folder's; "" where neither does."""
    for words in (PurePosixPath(path).stem, PurePosixPath(path).parent.name):
        part = _PART.fullmatch(words)
        if found := _QUANTIZATION.findall(part["stem"] if part else words):
            return str(found[-1]).upper()
    return ""


def models_of(files: Iterable[RemoteFile]) -> list[RemoteModel]:
    """The models among a repository's files, from the smallest to the largest. Projectors of images, importance matrices
    and bare vocabularies are none."""
    groups: dict[str, list[tuple[int, int, RemoteFile]]] = {}
    for file in files:
        if not file.path.lower().endswith(".gguf") or _NO_MODEL.search(file.name[: -len(".gguf")]):
            continue
        stem = file.path[: -len(".gguf")]
        part = _PART.fullmatch(stem)
        key = f"{part['stem']}-of-{part['count']}" if part else stem
        groups.setdefault(key, []).append((int(part["number"]), int(part["count"]), file) if part else (1, 1, file))
    models = []
    for parts in groups.values():
        parts.sort(key=lambda item: item[0])
        models.append(RemoteModel(tuple(file for _, _, file in parts), max(0, parts[0][1] - len(parts))))
    return sorted(models, key=lambda model: (model.bytes, model.name))


def usual(models: list[RemoteModel]) -> RemoteModel:
    """The model to take where nothing is known of the memory: a preferred quantization, else the smallest."""
    for quantization in PREFERRED:
        for model in models:
            if model.quantization == quantization:
                return model
    return models[0]
