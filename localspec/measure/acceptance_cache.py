"""Answers that are kept between two uses of the command, one file a prompt, so that what was stopped goes on."""

import hashlib
import json
import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from localspec.engine.engine import EngineSettings
from localspec.engine.llama import version
from localspec.measure.acceptance_answers import Answers, Followed
from localspec.measure.prompts import Prompt
from localspec.measure.recording import PER_POSITION, Recording, Source
from localspec.measure.wall_clock import TimedPrompt
from localspec.whole_file import private_folder, whole_file

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
        self.folder = folder

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

        def write(file: BinaryIO) -> None:
            np.savez_compressed(file, **_arrays(answers))  # type: ignore[arg-type]

        self._write(self._path(prompt, tokens), write)

    def find_timed(self, prompt: Prompt, tokens: Sequence[int]) -> TimedPrompt | None:
        """What the clock has said of a prompt; None as in `find`."""
        try:
            return TimedPrompt.read(json.loads(self._path(prompt, tokens, ".json").read_text(encoding="utf-8")))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError):
            return None

    def keep_timed(self, prompt: Prompt, tokens: Sequence[int], timed: TimedPrompt) -> None:
        """Write it likewise. Raises OSError."""
        self._write(self._path(prompt, tokens, ".json"), lambda file: file.write(json.dumps(asdict(timed)).encode()))

    def _write(self, path: Path, write: Callable[[BinaryIO], object]) -> None:
        private_folder(self.folder)
        with whole_file(path, sync=False) as file:
            write(file)

    def _path(self, prompt: Prompt, tokens: Sequence[int], ending: str = ".npz") -> Path:
        return self.folder / f"{_digest(prompt.id, prompt.category, list(tokens))}{ending}"


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
