"""The catalog: models that are known to work well, and pairs of a target with the draft model to go with it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TypeVar

from localspec.engine.errors import UserError
from localspec.hub.listing import listing
from localspec.hub.shape import ModelShape

_QUANTIZED = re.compile(
    r"(?P<stem>.+?)[-_.](?:UD-)?(?:I?Q\d(?:_[A-Z0-9]+)*|TQ\d_\d|MXFP4|NVFP4|BF16|FP?16|FP?32)", re.IGNORECASE
)
_ENDING = re.compile(r"(?:-\d{5}-of-\d{5})?\.gguf$", re.IGNORECASE)
_OWNER = re.compile(r"^[A-Za-z0-9][\w.-]*?--")
_SHOWN_CHARACTERS = 60


@dataclass(frozen=True, slots=True)
class CatalogFile:
    """One quantization of a model, as it lies in its repository."""

    file: str
    """Path in the repository; of a split model that of the first part."""
    quantization: str
    """As in "Q4_K_M"."""
    bytes: int
    """Size, all parts together."""
    parts: int = 1
    """How many files it is split into."""
    sha256: str | None = None
    """SHA-256 in lower-case hexadecimal, where it is public; of split models never."""
    checked: bool = True
    """Whether `bytes` was found in public; otherwise it is computed from the model's shape and may be some percent off."""

    @property
    def name(self) -> str:
        """The file's name without the folders of the repository: what it is called in the models folder."""
        return PurePosixPath(self.file).name

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of all parts in the repository, in order."""
        first = f"-00001-of-{self.parts:05}"
        if self.parts == 1 or first not in self.file:
            return (self.file,)
        stem, _, suffix = self.file.rpartition(first)
        return tuple(f"{stem}-{number:05}-of-{self.parts:05}{suffix}" for number in range(1, self.parts + 1))


@dataclass(frozen=True, slots=True)
class CatalogModel:
    """A model of the catalog."""

    name: str
    """As it is shown and asked for."""
    repository: str
    """Where its files lie on the hub: user/repo."""
    revision: str | None
    """The commit to take; None for the newest."""
    license: str
    """SPDX identifier where there is one, else the license's own name."""
    parameters: int
    """How many weights it has."""
    context_length: int
    """Tokens it was made to read at once."""
    languages: str
    """In words."""
    good_at: str
    """In words."""
    vocabulary: str
    """Name of the tokenizer: models with the same one may draft for each other."""
    gated: bool
    """Whether the hub asks for a token and an accepted license."""
    shape: ModelShape
    files: tuple[CatalogFile, ...]
    """From the smallest to the largest."""
    unchecked: tuple[str, ...] = ()
    """What of this could not be checked: "bytes", "sha256", "files", "shape"."""

    def file(self, quantization: str) -> CatalogFile | None:
        """The file of a quantization, written in any case."""
        return next((file for file in self.files if file.quantization.casefold() == quantization.casefold()), None)


@dataclass(frozen=True, slots=True)
class Pair:
    """A target and a draft model that speaks its tokens. It is called as its target is: a name stands for both."""

    name: str
    target: CatalogModel
    draft: CatalogModel
    why: str
    """Why this draft: a sentence."""

    @property
    def ratio(self) -> float:
        """How many times larger the target is."""
        return self.target.parameters / self.draft.parameters


Named = TypeVar("Named", CatalogModel, Pair, CatalogModel | Pair)


@dataclass(frozen=True)
class Catalog:
    """All pairs and models by name."""

    pairs: tuple[Pair, ...]
    models: tuple[CatalogModel, ...]
    problem: str = ""
    """Why a person's own catalog is not in it: a sentence, empty where it is, or there is none."""

    def get(self, name: str) -> Pair | CatalogModel | None:
        """The pair or else the model with exactly this name, in any case."""
        return self._all().get(name.casefold())

    def find(self, name: str) -> Pair | CatalogModel:
        """The pair or else the model that is meant: by name, or by a beginning that only one has. Raises UserError."""
        return self._find(name, self._all(), "model or pair")

    def pair(self, name: str) -> Pair:
        """The pair that is meant, as in `find`. Raises UserError."""
        return self._find(name, _by_name(self.pairs), "pair")

    def model(self, name: str) -> CatalogModel:
        """The model that is meant, as in `find`. Raises UserError."""
        return self._find(name, _by_name(self.models), "model")

    def model_of(self, path: Path) -> CatalogModel | None:
        """The model whose file this is, by the file's name: one of the catalog's, or another quantization of one."""
        stem = model_stem(path.name)
        return next(
            (model for model in self.models if any(model_stem(file.name) == stem for file in model.files)), None
        )

    def pairs_with(self, model: CatalogModel) -> tuple[Pair, ...]:
        """The pairs whose target is `model`."""
        return tuple(pair for pair in self.pairs if pair.target == model)

    def _find(self, name: str, items: Mapping[str, Named], kind: str) -> Named:
        try:
            return _find(name, items, kind)
        except UserError as error:
            # What is missing may stand in the catalog that cannot be read.
            raise (UserError(self.problem) if self.problem else error) from None

    def _all(self) -> dict[str, CatalogModel | Pair]:
        everything: dict[str, CatalogModel | Pair] = {**_by_name(self.models)}
        everything.update(_by_name(self.pairs))
        return everything


def load_catalog(user_file: Path | None = None) -> Catalog:
    """The catalog that comes with localspec, extended by `user_file` where there is one: a model or pair of the same
    name replaces ours. Raises UserError with the file and the problem."""
    from localspec.hub.catalog_file import read_catalog

    return read_catalog(user_file)


def usable_catalog(user_file: Path) -> Catalog:
    """The same, but a person's own catalog that cannot be used only leaves us with ours, and `Catalog.problem` says why: it
    must not hide what is installed."""
    try:
        return load_catalog(user_file)
    except UserError as error:
        return replace(load_catalog(), problem=str(error))


def model_stem(file_name: str) -> str:
    """A file's name without its quantization, its part, .gguf and an owner before "--", in lower case: the same for all
    files of a model."""
    name = _OWNER.sub("", _ENDING.sub("", file_name))
    found = _QUANTIZED.fullmatch(name)
    return (found["stem"] if found else name).casefold()


def _by_name(items: Iterable[Named]) -> dict[str, Named]:
    return {item.name.casefold(): item for item in items}


def _find(name: str, items: Mapping[str, Named], kind: str) -> Named:
    key = name.strip().casefold()
    if key in items:
        return items[key]
    begun = [item for known, item in items.items() if key and known.startswith(key)]
    if len(begun) == 1:
        return begun[0]
    shown = name if len(name) <= _SHOWN_CHARACTERS else name[:_SHOWN_CHARACTERS] + "…"
    if begun:
        raise UserError(f"{shown} could be {listing([item.name for item in begun], 'or')}: give more of the name.")
    near = [items[match] for match in difflib.get_close_matches(key, items)]
    remedy = f"the nearest: {listing([item.name for item in near])}" if near else "localspec models lists them"
    raise UserError(f"There is no {kind} {shown!r} in the catalog; {remedy}.")
