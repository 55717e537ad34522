"""What other programs know of a repository on the hub, for when the hub itself cannot be asked."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from localspec.hub.elsewhere import hugging_face_cache, ollama_folders
from localspec.hub.reference import HubReference
from localspec.hub.remote import RemoteFile

_SHA256 = re.compile(r"[0-9a-f]{64}")
_MODEL = "application/vnd.ollama.image.model"


def cached_files(reference: HubReference, environ: Mapping[str, str] = os.environ) -> list[RemoteFile]:
    """The files of a repository that lie in huggingface-hub's cache, as of the commit that the reference meant when they
    were downloaded; else those that Ollama has from there."""
    return list(_of_hugging_face(reference, environ)) or list(_of_ollama(reference, environ))


def _of_hugging_face(reference: HubReference, environ: Mapping[str, str]) -> Iterator[RemoteFile]:
    repository = hugging_face_cache(environ) / f"models--{reference.repository.replace('/', '--')}"
    revision = reference.revision or "main"
    commit = revision
    with contextlib.suppress(OSError, ValueError):
        commit = (repository / "refs" / revision).read_text("utf-8").strip()
    snapshot = repository / "snapshots" / commit
    for path in sorted(snapshot.rglob("*.gguf")):
        with contextlib.suppress(OSError):
            etag = path.resolve().name
            sha256 = etag if _SHA256.fullmatch(etag) else None
            name = path.relative_to(snapshot).as_posix()
            yield RemoteFile(reference.repository, commit, name, path.stat().st_size, etag, sha256)


def _of_ollama(reference: HubReference, environ: Mapping[str, str]) -> Iterator[RemoteFile]:
    """Ollama calls a model by its quantization, and knows its file by the SHA-256 alone."""
    user, _, name = reference.repository.partition("/")
    for folder in ollama_folders(environ):
        for host in ("hf.co", "huggingface.co"):
            manifests = folder / "manifests" / host / user / name
            with contextlib.suppress(OSError):
                for manifest in sorted(manifests.iterdir()):
                    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                        digest, size = _model_layer(manifest)
                        path = f"{name.removesuffix('-GGUF')}-{manifest.name}.gguf"
                        yield RemoteFile(reference.repository, "", path, size, digest, digest)


def _model_layer(manifest: Path) -> tuple[str, int]:
    for layer in json.loads(manifest.read_text("utf-8"))["layers"]:
        if layer["mediaType"] == _MODEL:
            return str(layer["digest"]).removeprefix("sha256:"), int(layer["size"])
    raise ValueError("there is no model in it")
