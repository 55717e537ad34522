"""Keys of a person's own: the table [keys] in config.toml, by the ids of what they do."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from textual.app import App
from textual.binding import Binding
from textual.dom import DOMNode

_KEY = re.compile(r"(?:(?:ctrl|alt|shift|super|meta|hyper)\+)*(?:[a-z0-9_]+|\S)", re.IGNORECASE)
_WRITES = re.compile(r"(?:shift\+)?(?:.|space|enter|tab|backspace|delete|left|right|up|down|home|end)", re.IGNORECASE)
"""Keys that a person needs to write."""
_SHOWN_CHARACTERS = 40

Group = Iterable[type[DOMNode]]
"""Classes whose keys can be pressed at the same time."""


@dataclass(slots=True)
class Keymap:
    """What to give to `App.set_keymap`, and what is wrong with the rest of the table."""

    keys: dict[str, str] = field(default_factory=dict)
    """Keys, separated by commas, by the id of a binding."""
    problems: list[str] = field(default_factory=list)
    """A sentence each."""

    @property
    def sentence(self) -> str:
        """The first problem, and how many more there are; empty when all is well."""
        if len(self.problems) < 2:
            return "".join(self.problems)
        more = len(self.problems) - 1
        return f"{self.problems[0]} {more} more {'line needs' if more == 1 else 'lines need'} a change, too."


def load_keymap(table: object, groups: Sequence[Group]) -> Keymap:
    """The keys of `table`, which is [keys] of config.toml as TOML reads it (None where there is none).

    `groups` are the classes with bindings. What cannot be used is left out, and the key stays what it was.
    """
    if table is None:
        return Keymap()
    if not isinstance(table, Mapping):
        return Keymap(
            problems=['keys in config.toml is not a table: write [keys], and below it "chat.new" = "ctrl+t".']
        )
    found = [list(_bindings(group)) for group in groups]
    known = {binding.id: binding for group in found for binding in group if binding.id}
    keymap = Keymap()
    for id_, given in table.items():
        if problem := _problem(id_, given, known):
            keymap.problems.append(problem)
        else:
            keymap.keys[id_] = ",".join(_split(given))
    for group in found:
        _settle(keymap, group)
    return keymap


def _problem(id_: str, given: object, known: Mapping[str, Binding]) -> str:
    """What is wrong with one line of the table by itself."""
    if id_ not in known:
        near = difflib.get_close_matches(id_, known, n=1)
        remedy = f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(known))}."
        return f"There is no {_shown(id_)} in [keys]: {remedy}"
    if not isinstance(given, str) or not _split(given):
        return f'{id_} in [keys] is not a key: write it as "ctrl+t".'
    for key in _split(given):
        if not _KEY.fullmatch(key):
            return f'{id_} in [keys]: {_shown(key)} is not a key; write it as "ctrl+t".'
        if (known[id_].priority or id_.startswith("prompt.")) and _WRITES.fullmatch(key):
            return f"{id_} in [keys]: {key} is needed for writing; choose another key."
    return ""


def _settle(keymap: Keymap, group: Sequence[Binding]) -> None:
    """A key that two would have stays with the first, or with the one that has it without the table."""
    while clash := _clash(keymap.keys, group):
        key, loser, owner = clash
        del keymap.keys[loser]
        keymap.problems.append(f"{key} in [keys] cannot be for both {owner} and {loser}: {loser} keeps its own key.")


def _clash(keys: Mapping[str, str], group: Sequence[Binding]) -> tuple[str, str, str] | None:
    """A key that is given twice, who loses it and whose it stays."""
    order = [binding.id for binding in group if binding.id]
    own = {(binding.id, key) for binding in group for key in _split(binding.key)}
    owners = {
        key: binding.id or binding.action for binding in group if binding.id not in keys for key in _split(binding.key)
    }
    for id_ in (id_ for id_ in keys if id_ in order):
        for key in _split(keys[id_]):
            if owners.setdefault(key, id_) != id_ and (id_, key) not in own:
                return key, id_, owners[key]
    return None


def _bindings(group: Group) -> Iterable[Binding]:
    """All bindings of the classes that are our own, and of the app."""
    for class_ in group:
        for base in class_.__mro__:
            if base.__module__.startswith("localspec.") or base is App:
                yield from (item for item in base.__dict__.get("BINDINGS", ()) if isinstance(item, Binding))


def _split(keys: str) -> list[str]:
    return [key.strip() for key in keys.split(",") if key.strip()]


def _shown(word: str) -> str:
    return word if len(word) <= _SHOWN_CHARACTERS else f"{word[:_SHOWN_CHARACTERS]}…"
