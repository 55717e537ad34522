"""catalog.toml, ours and a person's own: from its text to the catalog."""

from __future__ import annotations

import os
import re
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, fields
from importlib.resources import files
from pathlib import Path
from typing import Any

from localspec.engine.errors import UserError
from localspec.hub.catalog import Catalog, CatalogFile, CatalogModel, Pair
from localspec.hub.shape import MOST_LAYERS, ModelShape

USER_CATALOG = "catalog.toml"
"""Name of a person's own catalog in the config folder."""

_MODEL_KEYS = {
    "repository": str,
    "revision": str,
    "license": str,
    "parameters": int,
    "context_length": int,
    "languages": str,
    "good_at": str,
    "vocabulary": str,
    "gated": bool,
    "shape": dict,
    "files": list,
    "unchecked": list,
}
_MODEL_OPTIONAL: dict[str, Any] = {
    "revision": None,
    "gated": False,
    "unchecked": [],
    "languages": "",
    "good_at": "",
    "license": "unknown",
}
_FILE_KEYS = {"file": str, "quantization": str, "bytes": int, "parts": int, "sha256": str, "checked": bool}
_FILE_OPTIONAL = {"parts": 1, "sha256": None, "checked": True}
_PAIR_KEYS = {"target": str, "draft": str, "why": str}
_PAIR_OPTIONAL = {"why": ""}
_SHAPE_KEYS = {field.name: int for field in fields(ModelShape)}
_SHAPE_OPTIONAL = {field.name: field.default for field in fields(ModelShape) if field.default is not MISSING}
_KINDS = {str: "a text in quotes", int: "a whole number", bool: "true or false", dict: "a table", list: "a list"}
_MOST_BYTES = 10_000_000
_MOST_PARTS = 99_999
_REPOSITORY = re.compile(r"\w[\w.-]*/\w[\w.-]*", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9][\w.+-]*", re.ASCII)
_SHA256 = re.compile(r"[0-9a-f]{64}")


class _BadCatalogError(Exception):
    """What is wrong, as a clause."""


def read_catalog(user_file: Path | None) -> Catalog:
    """Our catalog with that of `user_file` laid over it. Raises UserError."""
    ours = _parse(_shipped().read_text("utf-8"))
    if user_file is None:
        return _built(ours, {})
    try:
        return _built(ours, _parse(_bytes_of(user_file).decode("utf-8-sig")))
    except (FileNotFoundError, NotADirectoryError):
        return _built(ours, {})
    except OSError as error:
        raise UserError(
            f"{user_file} cannot be read ({error.strerror}): check what it is and its permissions."
        ) from error
    except UnicodeDecodeError as error:
        raise UserError(f"{user_file} is not UTF-8: save the file as UTF-8.") from error
    except _BadCatalogError as error:
        raise UserError(f"The catalog {user_file} cannot be used ({error}): mend or remove it.") from None


def _bytes_of(user_file: Path) -> bytes:
    # Opening a pipe would wait for its other end.
    with os.fdopen(os.open(user_file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise _BadCatalogError("it is not a file")
        content = file.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise _BadCatalogError(f"it is larger than {_MOST_BYTES // 10**6} MB")
    return content


def _shipped() -> Any:
    """Our catalog: in the package where it was installed from a wheel, at the top of the repository in a checkout."""
    packed = files("localspec.hub").joinpath(USER_CATALOG)
    return packed if packed.is_file() else Path(__file__).parents[2] / "models" / USER_CATALOG


def _parse(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise _BadCatalogError("its lists or tables are nested too deep") from None
    except ValueError as error:
        # A number of thousands of digits is an error of Python's own.
        raise _BadCatalogError(f"it is not TOML: {error}") from None


def _built(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> Catalog:
    for key in theirs:
        if key not in ("models", "pairs"):
            raise _BadCatalogError(f"{key} is neither models nor pairs")
    models: dict[str, CatalogModel] = {}
    pairs: dict[str, Pair] = {}
    for source in (ours, theirs):
        for name, table in _tables(source, "models"):
            models[name.casefold()] = _model(name, table)
    for source in (ours, theirs):
        for name, table in _tables(source, "pairs"):
            pairs[name.casefold()] = _pair(name, table, models)
    return Catalog(tuple(pairs.values()), tuple(models.values()))


def _tables(source: Mapping[str, Any], kind: str) -> list[tuple[str, Mapping[str, Any]]]:
    tables = source.get(kind, {})
    if not isinstance(tables, dict) or not all(isinstance(table, dict) for table in tables.values()):
        raise _BadCatalogError(f'{kind} are not written as in [{kind}."my-model"]')
    for name in tables:
        if not _NAME.fullmatch(name):
            raise _BadCatalogError(f"{name!r} is no name: use letters, digits, dots and dashes")
    return list(tables.items())


def _model(name: str, table: Mapping[str, Any]) -> CatalogModel:
    where = f"the model {name}"
    values = _checked(where, table, _MODEL_KEYS, _MODEL_OPTIONAL)
    if not _REPOSITORY.fullmatch(values["repository"]):
        raise _BadCatalogError(f"repository of {where} is not written as user/repo")
    shape = ModelShape(**_checked(f"the shape of {where}", values["shape"], _SHAPE_KEYS, _SHAPE_OPTIONAL))
    if not values["parameters"]:
        raise _BadCatalogError(f"parameters of {where} is not a possible size")
    if shape.layers > MOST_LAYERS:
        raise _BadCatalogError(f"layers of {where} are more than the {MOST_LAYERS} that llama.cpp loads")
    found = [_file(where, number, item) for number, item in enumerate(values["files"], 1)]
    if not found:
        raise _BadCatalogError(f"{where} has no files")
    values |= {
        "shape": shape,
        "files": tuple(sorted(found, key=lambda file: file.bytes)),
        "unchecked": tuple(str(item) for item in values["unchecked"]),
    }
    return CatalogModel(name, **values)


def _file(model: str, number: int, item: Any) -> CatalogFile:
    where = f"file {number} of {model}"
    if not isinstance(item, dict):
        raise _BadCatalogError(f"{where} is not a table")
    file = CatalogFile(**_checked(where, item, _FILE_KEYS, _FILE_OPTIONAL))
    if not file.file.lower().endswith(".gguf") or file.file.startswith("/") or ".." in file.file.split("/"):
        raise _BadCatalogError(f"{where} is not the path of a .gguf in its repository")
    if file.sha256 is not None and not _SHA256.fullmatch(file.sha256):
        raise _BadCatalogError(f"sha256 of {where} is not 64 digits of lower-case hexadecimal")
    if not file.quantization.isprintable() or not file.file.isprintable():
        raise _BadCatalogError(f"{where} has characters that no name has")
    if not 1 <= file.parts <= _MOST_PARTS:
        raise _BadCatalogError(f"parts of {where} is not from 1 to {_MOST_PARTS}")
    if file.parts > 1 and f"-00001-of-{file.parts:05}" not in file.file:
        raise _BadCatalogError(f"{where} has {file.parts} parts and is not called as the first of them")
    return file


def _pair(name: str, table: Mapping[str, Any], models: Mapping[str, CatalogModel]) -> Pair:
    where = f"the pair {name}"
    values = _checked(where, table, _PAIR_KEYS, _PAIR_OPTIONAL)
    for role in ("target", "draft"):
        model = models.get(values[role].casefold())
        if model is None:
            raise _BadCatalogError(f"{role} of {where} is {values[role]}, which is no model of the catalog")
        values[role] = model
    namesake = models.get(name.casefold())
    if namesake not in (None, values["target"]):
        raise _BadCatalogError(f"{where} is called like a model that is not its target")
    if values["target"].vocabulary != values["draft"].vocabulary:
        raise _BadCatalogError(f"target and draft of {where} have different vocabularies")
    return Pair(name, **values)


def _checked(
    where: str, table: Mapping[str, Any], keys: Mapping[str, type], optional: Mapping[str, Any]
) -> dict[str, Any]:
    """The values of `table` by `keys`, all there and of the right type."""
    for key in table:
        if key not in keys:
            raise _BadCatalogError(f"{where} has {key}, which means nothing; it may have {', '.join(keys)}")
    values: dict[str, Any] = {}
    for key, kind in keys.items():
        if key not in table:
            if key not in optional:
                raise _BadCatalogError(f"{where} lacks {key}")
            values[key] = optional[key]
            continue
        value = table[key]
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise _BadCatalogError(f"{key} of {where} is not {_KINDS[kind]}")
        if isinstance(value, int) and not 0 <= value < 1 << 62:
            raise _BadCatalogError(f"{key} of {where} is not a possible size")
        values[key] = value
    return values
