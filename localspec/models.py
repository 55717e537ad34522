"""`localspec models` and `localspec rm`: what is installed, what the catalog offers, what fits this machine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from localspec.console import one_line, say, write_out
from localspec.engine.errors import ModelError, UserError
from localspec.engine.gguf import check_loadable, inspect
from localspec.hub.catalog import Catalog, CatalogModel, Pair, usable_catalog
from localspec.hub.catalog_file import USER_CATALOG
from localspec.hub.fit import Sized, verdict
from localspec.hub.machine import Machine, this_machine
from localspec.hub.offers import offer, offers
from localspec.hub.reference import HubReference, parse_reference
from localspec.hub.removal import Removal, delete, removal
from localspec.hub.resolve import InstalledModel, installed, installed_at, resolve
from localspec.hub.shape import shape_of
from localspec.hub.suggest import drafts_for
from localspec.models_report import (
    CatalogReport,
    InstalledReport,
    ListReport,
    RemoteReport,
    as_json,
    size_text,
)
from localspec.program import EXIT_FAILED
from localspec.settings import Folders, load_settings

EXIT_DONE = 0


@dataclass(frozen=True)
class Models:
    """One use of a command. Every method returns the exit code and raises UserError."""

    folders: Folders
    quiet: bool = False
    look: Callable[[], Machine] = this_machine
    """Finds out what the machine has; models get no more than is free now."""

    def show_list(self, in_json: bool) -> int:
        """What is installed, and all pairs of the catalog with their verdicts."""
        catalog, machine = self._catalog, self.look()
        report = ListReport(
            machine,
            [self._installed_report(model, machine) for model in self._found],
            offers(catalog, self._found, machine),
        )
        self._say_what_is_missing()
        return write_out(as_json(report.document())) if in_json else write_out(report.text())

    def show(self, name: str, in_json: bool) -> int:
        """All that is known of one pair or model: installed, of the catalog, or on the hub."""
        report = self._report(name)
        self._say_what_is_missing()
        return write_out(as_json(report.document())) if in_json else write_out(report.text())

    def remove(self, name: str, sure: bool) -> int:
        """Delete the files of a model or a pair, after a question on the terminal unless the person is `sure`."""
        what = removal(name, self.folders.models, self._catalog)
        for sentence in self._warnings(what):
            say(sentence)
        if not sure and not self._agreed(what):
            self._say("Nothing was deleted.")
            return EXIT_FAILED
        delete(what)
        self._say(
            f"{_names(what)} {'is' if len(what.names) == 1 else 'are'} deleted, which frees {size_text(what.bytes)}."
        )
        return EXIT_DONE

    @cached_property
    def _catalog(self) -> Catalog:
        return usable_catalog(self.folders.config / USER_CATALOG)

    def _say_what_is_missing(self) -> None:
        """Behind everything that raises the same sentence."""
        if self._catalog.problem:
            say(self._catalog.problem)

    @cached_property
    def _found(self) -> list[InstalledModel]:
        return installed(self.folders.models)

    def _report(self, name: str) -> CatalogReport | InstalledReport | RemoteReport:
        known = self._catalog.get(name)
        if known is None:
            try:
                path = resolve(name, self.folders.models, lambda: self._catalog)
            except ModelError:
                if reference := parse_reference(name):
                    return self._remote_report(reference)
                known = self._catalog.find(name)
            else:
                return self._installed_report(installed_at(path), self.look())
        return self._catalog_report(known, self.look())

    def _remote_report(self, reference: HubReference) -> RemoteReport:
        from localspec.hub.hub_client import Hub
        from localspec.hub.look import look

        found = look(reference, self._found, Hub())
        try:
            check_loadable(found.header)
            fit = verdict(Sized(shape_of(found.header), found.model.bytes), None, self.look())
        except ModelError as error:
            return RemoteReport(found, str(error), None)
        return RemoteReport(found, None, fit)

    def _installed_report(self, model: InstalledModel, machine: Machine) -> InstalledReport:
        known = self._catalog.model_of(model.path)
        try:
            header = inspect(model.path)
            found = verdict(Sized(shape_of(header), model.bytes), None, machine)
        except ModelError as error:
            return InstalledReport(model, known, str(error), None, None, [])
        return InstalledReport(model, known, None, header, found, drafts_for(model, self._found, self._catalog))

    def _catalog_report(self, known: Pair | CatalogModel, machine: Machine) -> CatalogReport:
        model = known.target if isinstance(known, Pair) else known
        chosen = offer(known, self._catalog, self._found, machine) if isinstance(known, Pair) else None
        draft = chosen.draft.sized if chosen else None
        verdicts = [verdict(Sized(model.shape, file.bytes), draft, machine) for file in model.files]
        ours = [item for item in self._found if self._catalog.model_of(item.path) == model]
        return CatalogReport(model, verdicts, chosen, ours)

    def _warnings(self, what: Removal) -> list[str]:
        sentences = [f"{model.name} stays, since {user} drafts with it." for model, user in what.kept]
        try:
            settings = load_settings({})
        except UserError:
            return sentences
        files = {model.path for model in what.models}
        for setting, ref in (("model", settings.model), ("draft", settings.draft)):
            try:
                used = ref and resolve(ref, self.folders.models, lambda: self._catalog) in files
            except ModelError:
                used = False
            if used:
                sentences.append(f"{ref} is the {setting} that your settings name: choose another one there.")
        return sentences

    def _agreed(self, what: Removal) -> bool:
        if not (sys.stdin and sys.stdin.isatty() and sys.stderr and sys.stderr.isatty()):
            raise UserError(
                "Nothing was deleted, since there is no terminal to ask on: add --yes to delete all the same."
            )
        sys.stderr.write(one_line(f"Delete {_names(what)} ({size_text(what.bytes)})? [y/N] "))
        sys.stderr.flush()
        return sys.stdin.readline().strip().casefold() in ("y", "yes")

    def _say(self, sentence: str) -> None:
        if not self.quiet:
            say(sentence)


def _names(what: Removal) -> str:
    names = what.names
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
