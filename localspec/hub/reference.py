"""What a person writes to name something on the hub."""

from __future__ import annotations

import re
from dataclasses import dataclass

_WORD = r"[A-Za-z0-9][\w.-]*"
_REFERENCE = re.compile(
    rf"(?P<repository>{_WORD}/{_WORD})"
    r"(?:@(?P<revision>[\w.-]+))?"
    r"(?:/(?P<file>(?:[^/@:\\]+/)*[^/@:\\]+\.gguf)|:(?P<quantization>[\w.-]+))?"
    r"(?:@(?P<last>[\w./-]+))?",
    re.ASCII | re.IGNORECASE,
)
_PLACE = re.compile(r"(?:https?://)?(?:www\.)?(?:huggingface\.co|hf\.co)/|hf://", re.IGNORECASE)
_PAGE = re.compile(r"(?P<repository>[^/]+/[^/]+)/(?:resolve|blob|tree)/(?P<revision>[^/]+)(?P<rest>/[^?]*)?(?:\?.*)?")


@dataclass(frozen=True)
class HubReference:
    """A model on the hub: a repository, and which of its files."""

    repository: str
    """user/repo."""
    revision: str | None = None
    """A branch, a tag or a commit; None for the newest state of the main branch."""
    file: str | None = None
    """Path of a .gguf in the repository."""
    quantization: str | None = None
    """As in "Q4_K_M"; neither a file nor a quantization: whatever fits best."""

    def __str__(self) -> str:
        what = f"/{self.file}" if self.file else f":{self.quantization}" if self.quantization else ""
        return f"{self.repository}{what}" + (f"@{self.revision}" if self.revision else "")


def parse_reference(text: str) -> HubReference | None:
    """The reference that `text` is, None where it is none.

    user/repo, user/repo:QUANT and user/repo/file.gguf, each with @REVISION behind the repository or at the end; and the
    address of a repository or of a file on the hub's pages.
    """
    place = _PLACE.match(text)
    words = text[place.end() :].rstrip("/") if place else text
    if place and (page := _PAGE.fullmatch(words)):
        words = f"{page['repository']}@{page['revision']}{page['rest'] or ''}"
    found = _REFERENCE.fullmatch(words)
    if not found or (found["revision"] and found["last"]) or ".." in (found["file"] or "").split("/"):
        return None
    return HubReference(found["repository"], found["revision"] or found["last"], found["file"], found["quantization"])
