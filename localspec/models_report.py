"""What `localspec models` says, as text and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from localspec.console import json_text, one_line
from localspec.engine.gguf import GgufHeader
from localspec.hub.catalog import CatalogFile, CatalogModel
from localspec.hub.fit import Verdict
from localspec.hub.look import Look
from localspec.hub.machine import Machine
from localspec.hub.offers import Choice, Offer
from localspec.hub.resolve import InstalledModel
from localspec.hub.suggest import Suggestion

_UNCHECKED = {
    "bytes": "the sizes marked with ~, which are computed",
    "files": "the names of some files",
    "revision": "the commit, so that the newest is taken",
    "sha256": "the hashes of the files",
    "shape": "the measures of the model",
    "vocabulary": "what the tokens are that its draft model lacks",
}


@dataclass(frozen=True)
class InstalledReport:
    """An installed model."""

    model: InstalledModel
    known: CatalogModel | None
    problem: str | None
    """Why it cannot be used: a sentence."""
    header: GgufHeader | None
    verdict: Verdict | None
    drafts: Sequence[Suggestion]

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "name": self.model.name,
            "path": str(self.model.path),
            "bytes": self.model.bytes,
            "catalog": self.known.name if self.known else None,
            "problem": self.problem,
            "fit": _verdict_document(self.verdict) if self.verdict else None,
            "drafts": [_suggestion_document(draft) for draft in self.drafts],
        }

    def text(self) -> str:
        """For people."""
        facts = [("file", str(self.model.path)), ("size", size_text(self.model.bytes))]
        if self.problem:
            facts.append(("problem", self.problem))
        if self.known:
            facts.append(("catalog", self.known.name))
        if self.header:
            facts += _header_facts(self.header)
        if self.verdict:
            facts.append(("fit", self.verdict.text))
        for draft in self.drafts:
            state = "installed" if draft.path else f"localspec pull {draft.name}"
            facts.append(("draft model", f"{draft.name}, {state}: {draft.why}"))
        return f"{one_line(self.model.name)}\n{_facts(facts)}"


@dataclass(frozen=True)
class ListReport:
    """All of it."""

    machine: Machine
    installed: Sequence[InstalledReport]
    offers: Sequence[Offer]

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "machine": {
                "name": self.machine.name,
                "memory_bytes": self.machine.memory,
                "gpu_bytes": self.machine.gpu,
                "unified": self.machine.unified,
            },
            "installed": [report.document() for report in self.installed],
            "pairs": [_offer_document(offer) for offer in self.offers],
        }

    def text(self) -> str:
        """For people."""
        machine = self.machine
        free = f"{size_text(machine.memory)} free for models"
        if machine.has_gpu:
            where = "of it on the GPU" if machine.unified else "on the GPU"
            free += f", {size_text(machine.gpu)} {where}"
        rows = [
            ("INSTALLED", "SIZE", "FIT", "DRAFT MODEL"),
            *(
                (
                    item.model.name,
                    size_text(item.model.bytes),
                    item.verdict.text if item.verdict else "cannot be used",
                    _drafts_text(item.drafts),
                )
                for item in self.installed
            ),
        ]
        pairs = [
            ("PAIR", "DRAFT MODEL", "DOWNLOAD", "FIT"),
            *(
                (
                    offer.pair.name,
                    offer.pair.draft.name,
                    size_text(offer.missing_bytes) if offer.missing_bytes else "installed",
                    offer.verdict.text,
                )
                for offer in self.offers
            ),
        ]
        tables = [_table(rows)] if self.installed else []
        return "\n".join([f"{machine.name}: {free}\n", *tables, _table(pairs)])


@dataclass(frozen=True)
class CatalogReport:
    """A model of the catalog, or a pair by its target."""

    model: CatalogModel
    verdicts: Sequence[Verdict]
    """One for each file, together with the pair's draft model."""
    offer: Offer | None
    """The pair."""
    installed: Sequence[InstalledModel]

    def document(self) -> dict[str, Any]:
        """As JSON."""
        names = {item.path.name.casefold() for item in self.installed}
        return {
            **_model_document(self.model),
            "files": [
                {
                    "quantization": file.quantization,
                    "file": file.file,
                    "bytes": file.bytes,
                    "bytes_checked": file.checked,
                    "parts": file.parts,
                    "sha256": file.sha256,
                    "installed": file.name.casefold() in names,
                    "fit": _verdict_document(found),
                }
                for file, found in zip(self.model.files, self.verdicts, strict=True)
            ],
            "unchecked": list(self.model.unchecked),
            "pair": _offer_document(self.offer) if self.offer else None,
        }

    def text(self) -> str:
        """For people."""
        model, offer = self.model, self.offer
        revision = f" at {model.revision[:7]}" if model.revision else ""
        facts = [
            ("good at", model.good_at),
            ("languages", model.languages),
            ("license", model.license + (", to be accepted on the hub first" if model.gated else "")),
            ("parameters", _count_text(model.parameters)),
            ("context", f"{model.context_length} tokens"),
            ("from", model.repository + revision),
        ]
        if offer:
            facts.append(("draft model", f"{offer.pair.draft.name}: {offer.pair.why}"))
            facts.append(("fit", offer.verdict.text))
        known = {file.name.casefold() for file in model.files}
        facts += [("installed", item.name) for item in self.installed if item.path.name.casefold() not in known]
        if model.unchecked:
            facts.append(("not checked", "; ".join(_UNCHECKED.get(item, item) for item in model.unchecked)))
        names = {item.path.name.casefold() for item in self.installed}
        header = ("FILE", "SIZE", "FIT WITH ITS DRAFT MODEL" if offer else "FIT", "")
        rows = [
            (file.quantization, _file_size(file), found.text, _state(file, names, offer))
            for file, found in zip(model.files, self.verdicts, strict=True)
        ]
        return f"{model.name}\n{_facts(facts)}\n{_table([header, *rows])}"


@dataclass(frozen=True)
class RemoteReport:
    """A model on the hub."""

    look: Look
    problem: str | None
    """Why it cannot be used: a sentence."""
    verdict: Verdict | None

    def document(self) -> dict[str, Any]:
        """As JSON."""
        model, header = self.look.model, self.look.header
        return {
            "name": str(self.look.reference),
            "repository": self.look.reference.repository,
            "commit": model.files[0].commit,
            "file": model.files[0].path,
            "quantization": model.quantization or None,
            "bytes": model.bytes,
            "architecture": header.architecture,
            "context_length": header.context_length,
            "vocabulary_size": header.vocabulary_size,
            "problem": self.problem,
            "fit": _verdict_document(self.verdict) if self.verdict else None,
            "drafts": [_suggestion_document(draft) for draft in self.look.drafts],
            "targets": [{"name": item.name, "path": str(item.path)} for item in self.look.targets],
        }

    def text(self) -> str:
        """For people."""
        model = self.look.model
        facts = [("file", f"{model.files[0].path}, {size_text(model.bytes)}, not installed")]
        if self.problem:
            facts.append(("problem", self.problem))
        facts += _header_facts(self.look.header)
        if self.verdict:
            facts.append(("fit", self.verdict.text))
        facts += [("draft model", f"{draft.name}, installed: {draft.why}") for draft in self.look.drafts]
        facts += [("drafts for", f"{item.name}, installed") for item in self.look.targets]
        return f"{self.look.reference}\n{_facts(facts)}"


def as_json(document: dict[str, Any]) -> str:
    """One document."""
    return json_text(document)


def size_text(count: int) -> str:
    """Bytes for people."""
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"


def _state(file: CatalogFile, names: set[str], offer: Offer | None) -> str:
    if file.name.casefold() in names:
        return "installed"
    is_next = offer and offer.verdict.fits and offer.target.file == file and not offer.target.installed
    return "pull takes this one" if is_next else ""


def _count_text(count: int) -> str:
    return f"{count / 1e9:.1f} billion" if count >= 1e9 else f"{count / 1e6:.0f} million"


def _file_size(file: CatalogFile) -> str:
    return size_text(file.bytes) if file.checked else f"~{size_text(file.bytes)}"


def _drafts_text(drafts: Sequence[Suggestion]) -> str:
    """The first that is installed, else what to do to have one."""
    if not drafts:
        return "-"
    ready = next((draft for draft in drafts if draft.path), None)
    return f"{ready.name}, installed" if ready else f"localspec pull {drafts[0].name}"


def _header_facts(header: GgufHeader) -> list[tuple[str, str]]:
    return [
        ("architecture", header.architecture),
        ("context", f"{header.context_length or 'unknown'} tokens"),
        ("vocabulary", f"{header.vocabulary_size or 'unknown'} tokens"),
    ]


def _suggestion_document(draft: Suggestion) -> dict[str, Any]:
    return {
        "name": draft.name,
        "installed": draft.path is not None,
        "path": str(draft.path) if draft.path else None,
        "why": draft.why,
    }


def _model_document(model: CatalogModel) -> dict[str, Any]:
    return {
        "name": model.name,
        "repository": model.repository,
        "revision": model.revision,
        "license": model.license,
        "gated": model.gated,
        "parameters": model.parameters,
        "context_length": model.context_length,
        "languages": model.languages,
        "good_at": model.good_at,
        "vocabulary": model.vocabulary,
    }


def _offer_document(offer: Offer) -> dict[str, Any]:
    return {
        "name": offer.pair.name,
        "installed": offer.is_installed,
        "download_bytes": offer.missing_bytes,
        "why": offer.pair.why,
        "fit": _verdict_document(offer.verdict),
        "target": _choice_document(offer.target),
        "draft": _choice_document(offer.draft),
    }


def _choice_document(choice: Choice) -> dict[str, Any]:
    return {
        "name": choice.model.name,
        "repository": choice.model.repository,
        "license": choice.model.license,
        "quantization": choice.quantization,
        "file": choice.file.file if choice.file else None,
        "bytes": choice.bytes,
        "bytes_checked": choice.file.checked if choice.file and not choice.installed else True,
        "installed": str(choice.installed.path) if choice.installed else None,
    }


def _verdict_document(found: Verdict) -> dict[str, Any]:
    return {
        "verdict": found.text,
        "fits": found.fits,
        "context": found.context,
        "gpu_layers": found.gpu_layers,
        "bytes": found.bytes,
    }


def _facts(facts: Sequence[tuple[str, str]]) -> str:
    width = max(len(name) for name, _text in facts)
    return "".join(f"  {name:<{width}}  {one_line(text)}\n" for name, text in facts)


def _table(rows: Sequence[tuple[str, ...]]) -> str:
    """Columns as wide as their widest cell."""
    rows = [tuple(map(one_line, row)) for row in rows]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)
    return "".join(f"{line}\n" for line in lines)
