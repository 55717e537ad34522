"""The settings of a run, in layers: defaults, then config.toml, then LOCALSPEC_* variables, then the command line."""

import difflib
import math
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

from platformdirs import PlatformDirs

from localspec.engine.errors import UserError
from localspec.whole_file import private_folder

CONFIG_FILE = "config.toml"
GIVEN = "at the start"
"""Where a value comes from that is neither in the environment nor in config.toml now."""
_SHOWN_CHARACTERS = 60


@dataclass(frozen=True)
class Settings:
    """What a person can set for a run. None means "not set": the model's recommendation, else the built-in default."""

    model: str | None = None
    """The target: a path to a .gguf, the name of an installed model, or a hub reference."""
    draft: str | None = None
    """The draft model, written like `model`, or "none" for no draft model."""
    drafter: Literal["auto", "draft", "lookup", "none"] = "auto"
    """Who proposes tokens; "none" decodes plainly."""
    draft_max: int | None = None
    """The longest draft, in tokens."""
    ctx: int | None = None
    """Context length, in tokens; None is what the model was trained with, up to 8192, or what fits into the memory."""
    gpu_layers: int | Literal["all"] | None = None
    """How many of the model's layers go to the GPU; None is as many as fit."""
    threads: int | None = None
    """CPU threads; None is one for each physical performance core."""
    kv_type: Literal["f16", "q8_0"] = "f16"
    """Number format of the KV cache."""
    temp: float | None = None
    """Temperature; 0 always takes the likeliest token."""
    top_k: int | None = None
    """Sample among this many likeliest tokens; 0 for all of them."""
    top_p: float | None = None
    """Sample among the likeliest tokens that together reach this probability."""
    min_p: float | None = None
    """Sample among tokens at least this likely, relative to the likeliest."""
    repeat_penalty: float | None = None
    """Divides the logits of recent tokens; 1 is off."""
    frequency_penalty: float | None = None
    """Subtracted from a recent token's logit once for each time it occurred; 0 is off."""
    presence_penalty: float | None = None
    """Subtracted from the logit of every recent token; 0 is off."""
    seed: int | None = None
    """Seed of the random numbers; None draws one."""
    max_tokens: int | None = None
    """Longest answer, in tokens."""
    verification: Literal["auto", "match", "rejection"] = "auto"
    """How drafts are verified; both ways are exact."""
    system: str | None = None
    """The system prompt."""


class _InvalidError(Exception):
    """Why a value is refused, continuing a sentence that begins with the value's place."""


@dataclass(frozen=True)
class _Text:
    """Any text; unless `empty`, it holds something other than blanks."""

    empty: bool = False

    def read(self, raw: object) -> str:
        if not isinstance(raw, str):
            raise _InvalidError("is not a text: put it in quotes")
        if not self.empty and not raw.strip():
            raise _InvalidError("is empty: give a value or leave it out")
        return raw


@dataclass(frozen=True)
class _Choice:
    """One of a few words, in any case."""

    words: tuple[str, ...]

    def read(self, raw: object) -> str:
        word = raw.strip().lower() if isinstance(raw, str) else None
        if word not in self.words:
            raise _InvalidError(f"is not one of the choices: give {', '.join(self.words[:-1])} or {self.words[-1]}")
        return word


@dataclass(frozen=True)
class _Number:
    """A number from `low` to `high`, whole where those are; as a number, or as text that spells one or is `word`."""

    low: float
    high: float
    word: str | None = None

    def read(self, raw: object) -> float | str:
        if self.word is not None and isinstance(raw, str) and raw.strip().lower() == self.word:
            return self.word
        value = self._parse(raw)
        if not self.low <= value <= self.high:
            raise _InvalidError(f"is out of range: {self._remedy()}")
        return value

    def _parse(self, raw: object) -> float:
        whole = isinstance(self.low, int)
        kinds = (int, str) if whole else (int, float, str)
        if isinstance(raw, kinds) and not isinstance(raw, bool):
            try:
                value = int(raw) if whole else float(raw)
            except OverflowError:
                return math.inf
            except ValueError:
                pass
            else:
                if whole or not math.isnan(value):
                    return value
        raise _InvalidError(f"is not a {'whole ' if whole else ''}number: {self._remedy()}")

    def _remedy(self) -> str:
        kind = "whole number" if isinstance(self.low, int) else "number"
        return f"give a {kind} from {self.low:.15g} to {self.high:.15g}" + (f" or {self.word}" if self.word else "")


_RULES: dict[str, _Text | _Choice | _Number] = {
    "model": _Text(),
    "draft": _Text(),
    "drafter": _Choice(("auto", "draft", "lookup", "none")),
    "draft_max": _Number(1, 32),
    "ctx": _Number(1, 1 << 30),
    "gpu_layers": _Number(0, 9999, word="all"),
    "threads": _Number(1, 1024),
    "kv_type": _Choice(("f16", "q8_0")),
    "temp": _Number(0.0, 5.0),
    "top_k": _Number(0, 1_000_000),
    "top_p": _Number(0.0, 1.0),
    "min_p": _Number(0.0, 1.0),
    "repeat_penalty": _Number(0.1, 10.0),
    "frequency_penalty": _Number(-2.0, 2.0),
    "presence_penalty": _Number(-2.0, 2.0),
    # Every random engine takes 32 bits, and JSON readers keep them exactly.
    "seed": _Number(0, (1 << 32) - 1),
    "max_tokens": _Number(1, 1 << 30),
    "verification": _Choice(("auto", "match", "rejection")),
    "system": _Text(empty=True),
}

_OF_THE_APP = ("theme", "keys", "rewrite")
"""In config.toml only: how the chat looks, its keys, and a person's own instructions for rewriting."""


@dataclass(frozen=True)
class Folders:
    """Where things are kept. None of them need exist: whoever writes calls `make_private` first."""

    config: Path
    """config.toml."""
    data: Path
    """What must not be lost: conversations."""
    models: Path
    """Model files."""
    cache: Path
    """What can be made again: measured cost curves."""
    logs: Path
    """Log files."""


def find_folders(environ: Mapping[str, str] = os.environ) -> Folders:
    """The platform's folders, each replaced by LOCALSPEC_{CONFIG,DATA,CACHE,LOG}_DIR where that is set."""
    usual = PlatformDirs("localspec", appauthor=False)

    def choose(kind: str, fallback: Path) -> Path:
        given = environ.get(f"LOCALSPEC_{kind}_DIR")
        return Path(given).expanduser().absolute() if given else fallback

    data = choose("DATA", usual.user_data_path)
    return Folders(
        config=choose("CONFIG", usual.user_config_path),
        data=data,
        models=data / "models",
        cache=choose("CACHE", usual.user_cache_path),
        logs=choose("LOG", usual.user_log_path),
    )


def make_private(folder: Path) -> Path:
    """Create `folder` and its missing parents for this user alone (mode 0700) and return it, or raise UserError."""
    try:
        private_folder(folder)
    except OSError as error:
        raise UserError(
            f"The folder {folder} cannot be created ({error.strerror}): check its permissions, or choose another place "
            "with the LOCALSPEC_*_DIR variables."
        ) from error
    return folder


def load_settings(command_line: Mapping[str, object], environ: Mapping[str, str] = os.environ) -> Settings:
    """The settings in force.

    `command_line` holds option values by field name, None where an option was not given. An empty LOCALSPEC_* variable
    counts as not set. Raises UserError for the first value that cannot be used, naming where it was given.
    """
    strangers = command_line.keys() - _RULES.keys()
    if strangers:
        raise TypeError(f"not settings: {', '.join(sorted(strangers))}")
    values: dict[str, Any] = {}
    file = find_folders(environ).config / CONFIG_FILE
    for name, raw in _read_config(file).items():
        if name not in _OF_THE_APP:
            values[name] = _read(name, raw, f"{name} = {_shown(raw)} in {file}")
    for field in fields(Settings):
        variable = f"LOCALSPEC_{field.name.upper()}"
        if given := environ.get(variable):
            values[field.name] = _read(field.name, given, f"{variable}={_shown(given)}")
    for name, raw in command_line.items():
        if raw is not None:
            values[name] = _read(name, raw, f"--{name.replace('_', '-')} {_shown(raw)}")
    return Settings(**values)


def check_value(name: str, raw: object) -> object:
    """The value of the setting `name` that `raw`, a value or what a person typed, stands for. Raises UserError."""
    return _read(name, raw, _shown(raw))


def load_app_settings(environ: Mapping[str, str] = os.environ) -> dict[str, object]:
    """`theme` and the tables `keys` and `rewrite` of config.toml, unchecked, where they are given. Raises UserError."""
    table = _read_config(find_folders(environ).config / CONFIG_FILE)
    return {name: table[name] for name in _OF_THE_APP if name in table}


def origins(settings: Settings, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Where each value of `settings` comes from, in words, for those that are not the built-in default.

    "at the start" is what was given on the command line, or stood in config.toml then.
    """
    try:
        table = _read_config(find_folders(environ).config / CONFIG_FILE)
    except UserError:
        table = {}
    found = {}
    for field in fields(settings):
        value = getattr(settings, field.name)
        if value == field.default:
            continue
        variable = f"LOCALSPEC_{field.name.upper()}"
        given = {variable: environ.get(variable) or None, CONFIG_FILE: table.get(field.name)}
        found[field.name] = next(
            (place for place, raw in given.items() if raw is not None and _is(field.name, raw, value)), GIVEN
        )
    return found


def _is(name: str, raw: object, value: object) -> bool:
    try:
        return _RULES[name].read(raw) == value
    except _InvalidError:
        return False


def _read(name: str, raw: object, place: str) -> object:
    try:
        return _RULES[name].read(raw)
    except _InvalidError as error:
        raise UserError(f"{place} {error}.") from None


def _shown(raw: object) -> str:
    """`raw` on one line and not too long, quoted only where that helps to see it."""
    text = str(raw)
    if not text.strip() or not text.isprintable():
        text = repr(text)
    return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "…"


def _read_config(file: Path) -> dict[str, object]:
    table = parse_config(file, read_config_file(file))[0]
    for key in table:
        if key not in _RULES and key not in _OF_THE_APP:
            raise UserError(_unknown_key(file, key))
    return table


def read_config_file(file: Path) -> bytes:
    """The bytes of config.toml, none where there is no such file. Raises UserError."""
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise UserError(f"{file} cannot be read ({error.strerror}): check what it is and its permissions.") from error


def parse_config(file: Path, content: bytes) -> tuple[dict[str, Any], str]:
    """What `content`, the bytes of `file`, means, and its text without a byte order mark. Raises UserError."""
    try:
        text = content.decode("utf-8-sig")
        return tomllib.loads(text), text
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UserError(f"Line {line} of {file} is not UTF-8: save the file as UTF-8.") from error
    except tomllib.TOMLDecodeError as error:
        raise UserError(_toml_sentence(file, text, str(error))) from error
    except (RecursionError, ValueError) as error:
        # A number of thousands of digits is an error of Python's own.
        raise UserError(f"{file} cannot be read ({error}): write plain values into it, as `name = value`.") from error


def _toml_sentence(file: Path, text: str, message: str) -> str:
    found = re.search(r"^(.*) \(at (?:line (\d+), column \d+|end of document)\)$", message, re.DOTALL)
    reason, line = (found[1], found[2]) if found else (message, None)
    line = line or str(max(1, len(text.splitlines())))
    return f"Line {line} of {file} is not TOML ({reason}): write it as `name = value`, with texts in quotes."


def _unknown_key(file: Path, key: str) -> str:
    name = key.lower().replace("-", "_")
    begun = [setting for setting in _RULES if name.startswith(setting)]
    near = difflib.get_close_matches(name, _RULES, n=1) or begun
    remedy = f"did you mean {near[0]}?" if near else f"the settings are {', '.join(_RULES)}."
    return f"{_shown(key)} in {file} is not a setting: {remedy}"
