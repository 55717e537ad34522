"""Answers that are kept between two uses of the command, one file a prompt, so that what was stopped goes on."""

import hashlib
import json
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localspec.engine.engine import EngineSettings
from localspec.engine.llama import version
from localspec.measure.acceptance_answers import Answers, Followed
from localspec.measure.prompts import Prompt
from localspec.measure.recording import PER_POSITION, Recording, Source

_VERSION = 1
_NAME_LENGTH = 24


def cache_name(settings: EngineSettings, longest: int, seed: int, stop: Sequence[str]) -> str:
    """A folder's name for all that answers depend on, but for their prompts. A model file that was replaced is another
    one. Raises OSError for a model file that is gone."""
    files = [path for path in (settings.target, settings.draft) if path]
    return _digest(
        _VERSION,
        version(),
        [[str(path.resolve()), path.stat().st_size, path.stat().st_mtime_ns] for path in files],
        [settings.gpu_layers, settings.threads, settings.kv_type],
        [longest, seed, list(stop)],
    )


class AnswerCache:
    """The answers of one pair and one way of asking, in a folder."""

    def __init__(self, folder: Path) -> None:
        """`folder` need not exist."""
        self._folder = folder

    def find(self, prompt: Prompt, tokens: Sequence[int]) -> Answers | None:
        """The answers to a prompt, whose token ids these are; None where there are none, or none that can be read."""
        try:
            with np.load(self._path(prompt, tokens), allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            return _answers(prompt, arrays)
        except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile, zlib.error):
            return None

    def keep(self, prompt: Prompt, tokens: Sequence[int], answers: Answers) -> None:
        """Write them, whole or not at all. Raises OSError."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._path(prompt, tokens)
        part = path.with_name(path.name + ".part")
        try:
            with part.open("wb") as file:
                np.savez_compressed(file, **_arrays(answers))  # type: ignore[arg-type]
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)

    def _path(self, prompt: Prompt, tokens: Sequence[int]) -> Path:
        return self._folder / f"{_digest(prompt.id, prompt.category, list(tokens))}.npz"


def _digest(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:_NAME_LENGTH]


def _arrays(answers: Answers) -> dict[str, NDArray[Any]]:
    arrays: dict[str, NDArray[Any]] = {"prompt": answers.prompt, "answer": answers.answer}
    for kind, followed in (("greedy", answers.greedy), ("sampled", answers.sampled)):
        if followed:
            recording = followed.recording
            arrays[f"{kind}.overlap"] = followed.overlap
            arrays[f"{kind}.source"] = np.array(json.dumps(asdict(recording.source)))
            arrays[f"{kind}.ended"] = np.array(recording.ended)
            for name in PER_POSITION:
                arrays[f"{kind}.recording.{name}"] = getattr(recording, name)
    return arrays


def _answers(prompt: Prompt, arrays: dict[str, NDArray[Any]]) -> Answers:
    greedy, sampled = (_followed(prompt, arrays, kind) for kind in ("greedy", "sampled"))
    return Answers(prompt.id, prompt.category, arrays["prompt"], arrays["answer"], greedy, sampled)


def _followed(prompt: Prompt, arrays: dict[str, NDArray[Any]], kind: str) -> Followed | None:
    if f"{kind}.overlap" not in arrays:
        return None
    recording = Recording(
        id=prompt.id,
        category=prompt.category,
        source=Source(**json.loads(str(arrays[f"{kind}.source"]))),
        prompt=arrays["prompt"],
        ended=bool(arrays[f"{kind}.ended"]),
        **{name: arrays[f"{kind}.recording.{name}"] for name in PER_POSITION},
    )
    return Followed(recording, arrays[f"{kind}.overlap"])
