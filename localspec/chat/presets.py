"""Instructions that people give often, by name: ours, and those of a person's config.toml."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass

from localspec.engine.errors import UserError

_PLACE = "{}"


@dataclass(frozen=True, slots=True)
class Preset:
    """One instruction."""

    name: str
    """As it is written behind --preset and shown in a list: "fix grammar"."""
    instruction: str
    """With {} where what is behind the colon goes, as in translate:LANG."""
    argument: str | None = None
    """What goes there, where it takes something: "LANG"."""

    @property
    def shown(self) -> str:
        """The name with what it takes: "translate:LANG"."""
        return f"{self.name}:{self.argument}" if self.argument else self.name

    def filled(self, argument: str = "") -> str:
        """The instruction to send. Raises UserError where an argument is missing or there is no place for one."""
        argument = argument.strip()
        if self.argument and not argument:
            example = ", as in translate:French" if self.argument == "LANG" else ""
            raise UserError(f"The preset {self.name} needs more; write {self.shown}{example}.")
        if argument and not self.argument:
            raise UserError(f"The preset {self.name} takes nothing behind a colon; leave out :{argument[:40]}.")
        return self.instruction.replace(_PLACE, argument) if self.argument else self.instruction


_OURS = (
    Preset("fix grammar", "Fix the spelling, the grammar and the punctuation. Change nothing else."),
    Preset("shorten", "Make it about half as long. Keep what matters most."),
    Preset("simplify", "Use simpler words and shorter sentences. Keep the meaning."),
    Preset("formal", "Make the tone formal and polite. Keep the meaning."),
    Preset("translate", "Translate it into {}. Keep the formatting as it is.", "LANG"),
    Preset("comment code", "Add comments to the code that say why it does what it does. Leave the code as it is."),
    Preset(
        "plain language",
        "Rewrite it in plain language, for somebody who knows nothing of the subject. Leave out no fact.",
    ),
)


def presets(own: Mapping[str, object] | None = None) -> tuple[Preset, ...]:
    """Ours and then `own`, the table [rewrite.presets] of config.toml, names to instructions; of two with the same name, the
    person's. Raises UserError for what is no instruction."""
    found = {_key(preset.name): preset for preset in _OURS}
    for name, instruction in (own or {}).items():
        if not isinstance(instruction, str) or not instruction.strip():
            raise UserError(f'The preset {name} in config.toml is no instruction; write {name} = "Do this.".')
        if not _key(name) or ":" in name:
            raise UserError(f"The preset {name!r} in config.toml has no name to call it by; use letters.")
        found[_key(name)] = Preset(name, instruction, "TEXT" if _PLACE in instruction else None)
    return tuple(found.values())


def own_presets(table: object) -> Mapping[str, object]:
    """The table [rewrite.presets] in `table`, what config.toml has as [rewrite]. Raises UserError where it is something
    else."""
    if not isinstance(table, Mapping) or table.keys() - {"presets"}:
        raise UserError("[rewrite] in config.toml holds presets only; write them under [rewrite.presets].")
    own = table.get("presets", {})
    if not isinstance(own, Mapping):
        raise UserError("rewrite.presets in config.toml is no table; write [rewrite.presets] and then the presets.")
    return own


def find_preset(name: str, known: tuple[Preset, ...]) -> str:
    """The instruction of `name`, "translate:French" for example; blanks, hyphens and capitals do not matter. Raises
    UserError that names those there are."""
    called, _, argument = name.partition(":")
    by_key = {_key(preset.name): preset for preset in known}
    if preset := by_key.get(_key(called)):
        return preset.filled(argument)
    near = difflib.get_close_matches(_key(called), by_key, n=1)
    shown = ", ".join(_in_one_word(preset.shown) for preset in known)
    remedy = f"perhaps {_in_one_word(by_key[near[0]].shown)} is meant" if near else f"there are {shown}"
    raise UserError(f"There is no preset {called.strip()[:40]!r}; {remedy}.")


def _in_one_word(name: str) -> str:
    """As it is written in a shell, without quotes."""
    return re.sub(r"\s+", "-", name)


def _key(name: str) -> str:
    return re.sub(r"[\s_-]+", "", name).lower()
