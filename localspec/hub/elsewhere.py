"""Model files that other programs have downloaded: found and used where they are, never copied and never changed.

huggingface-hub: models--USER--REPO/snapshots/COMMIT/PATH, links to blobs named after their ETag. LM Studio:
USER/REPO/NAME. Ollama: blobs/sha256-HASH.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from localspec.hub.remote import RemoteFile


def find_elsewhere(files: tuple[RemoteFile, ...], environ: Mapping[str, str] = os.environ) -> list[Path] | None:
    """Where another program has these files, all of them; None where none has all."""
    for finder in (_in_hugging_face_cache, _in_lm_studio, _in_ollama):
        found = [finder(file, environ) for file in files]
        paths = [path for path in found if path is not None]
        if len(paths) == len(files):
            return paths
    return None


def hugging_face_cache(environ: Mapping[str, str] = os.environ) -> Path:
    """The folder in which huggingface-hub keeps repositories."""
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        if environ.get(name):
            return Path(environ[name]).expanduser()
    if environ.get("HF_HOME"):
        return Path(environ["HF_HOME"]).expanduser() / "hub"
    caches = Path(environ["XDG_CACHE_HOME"]) if environ.get("XDG_CACHE_HOME") else _home(environ) / ".cache"
    return caches.expanduser() / "huggingface" / "hub"


def ollama_folders(environ: Mapping[str, str] = os.environ) -> list[Path]:
    """The folders in which Ollama may keep models: a person's own, and that of the service on Linux."""
    if given := environ.get("OLLAMA_MODELS"):
        return [Path(given).expanduser()]
    return [_home(environ) / ".ollama" / "models", Path("/usr/share/ollama/.ollama/models")]


def _in_hugging_face_cache(file: RemoteFile, environ: Mapping[str, str]) -> Path | None:
    repository = hugging_face_cache(environ) / f"models--{file.repository.replace('/', '--')}"
    try:
        snapshots = sorted((repository / "snapshots").iterdir(), key=lambda path: path.name != file.commit)
    except OSError:
        return None
    for snapshot in snapshots:
        path = snapshot / file.path
        # Where links are not possible the cache holds the files themselves, and only the commit tells their content.
        is_ours = path.resolve().name == file.etag if path.is_symlink() else snapshot.name == file.commit
        if is_ours and _has_size(path, file):
            return path
    return None


def _in_lm_studio(file: RemoteFile, environ: Mapping[str, str]) -> Path | None:
    for folder in _lm_studio_folders(environ):
        path = folder / file.repository / file.name
        if _has_size(path, file):
            return path
    return None


def _lm_studio_folders(environ: Mapping[str, str]) -> Iterator[Path]:
    home = _home(environ)
    with contextlib.suppress(OSError, ValueError):
        yield Path((home / ".lmstudio-home-pointer").read_text("utf-8").strip()) / "models"
    yield home / ".lmstudio" / "models"
    yield home / ".cache" / "lm-studio" / "models"


def _in_ollama(file: RemoteFile, environ: Mapping[str, str]) -> Path | None:
    if file.sha256 is None:
        return None
    for folder in ollama_folders(environ):
        path = folder / "blobs" / f"sha256-{file.sha256}"
        if _has_size(path, file):
            return path
    return None


def _has_size(path: Path, file: RemoteFile) -> bool:
    try:
        return path.is_file() and path.stat().st_size == file.size and os.access(path, os.R_OK)
    except OSError:
        return False


def _home(environ: Mapping[str, str]) -> Path:
    return Path(environ["HOME"]) if environ.get("HOME") else Path.home()
