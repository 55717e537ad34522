"""What a pair did on one answer, token by token: enough to replay any way of drafting chains without a model.

Both models follow the answer that the target wrote. Up to its first wrong token a draft sees exactly this text, so what
the draft model would have proposed there is what is stored here; how it would have gone on after a wrong token is stored
as a branch, because a policy that looks at the draft's confidence also decides there when to stop.
"""

import json
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localspec.engine.acceptance import overlap
from localspec.engine.compatibility import common_vocabulary
from localspec.engine.errors import UserError
from localspec.engine.evaluator import Evaluator
from localspec.engine.llama import Context, ContextSettings, Model
from localspec.engine.noise import Stream, noise_key
from localspec.engine.sampling import Sampler, Sampling
from localspec.measure.prompts import Prompt

LONGEST_PROMPT, LONGEST_ANSWER = 3000, 129
BRANCH = 8
"""How far the draft is followed after a wrong token."""

_VERSION = 1

Render = Callable[[str], list[int]]
"""The words of a person as the token ids of a prompt."""


@dataclass(frozen=True, slots=True)
class Source:
    """What a recording was made with."""

    target: str
    """File name of the target."""
    draft: str
    temperature: float = 0.0
    top_k: int = 40
    top_p: float = 0.95
    seed: int = 0

    @property
    def sampling(self) -> Sampling:
        """The settings of both samplers."""
        return Sampling(temperature=self.temperature, top_k=self.top_k, top_p=self.top_p)


@dataclass(frozen=True, slots=True, eq=False)
class Recording:
    """One answer of n tokens. Position i is the one whose token is `answer[i]`.

    p and q are the two models' distributions after the sampling settings (point masses when greedy); "plain" means the
    softmax over the whole vocabulary at temperature 1.
    """

    id: str
    category: str
    source: Source
    prompt: NDArray[np.int32]
    """Token ids of the prompt."""
    answer: NDArray[np.int32]
    """Token ids that the target chose, shape (n,)."""
    ended: bool
    """Whether the last of them ends the answer; otherwise the answer was cut off."""
    target_top: NDArray[np.float32]
    """The target's largest plain probability, (n,)."""
    drafted: NDArray[np.int32]
    """What the draft model proposes here in match mode: its argmax when greedy, else the draw from q with the random
    numbers that the target's draw had, (n,)."""
    draft_top: NDArray[np.float32]
    """The draft's largest plain probability, (n,)."""
    draft_second: NDArray[np.float32]
    """The draft's second largest plain probability, (n,)."""
    answer_p: NDArray[np.float32]
    """p of the answer's token, (n,)."""
    drafted_q: NDArray[np.float32]
    """q of the drafted token, (n,)."""
    q_token: NDArray[np.int32]
    """The most probable token of q, (n,)."""
    q_top: NDArray[np.float32]
    """Its probability, (n,)."""
    overlap: NDArray[np.float32]
    """The sum of min(p, q): how likely a token drawn from q is accepted in rejection mode, (n,)."""
    branch: NDArray[np.int32]
    """What the draft model proposes at positions i + 1, i + 2, ... after its own wrong token at i, (n, BRANCH); -1 where
    the drafted token was right."""
    branch_top: NDArray[np.float32]
    """How sure the draft model is at those positions: its largest plain probability when greedy, the largest of q
    otherwise, (n, BRANCH); 0 where there is no branch."""

    @property
    def agrees(self) -> NDArray[np.bool_]:
        """Where the drafted token is the answer's, (n,)."""
        agrees: NDArray[np.bool_] = self.drafted == self.answer
        return agrees


PER_POSITION = (
    "answer",
    "target_top",
    "drafted",
    "draft_top",
    "draft_second",
    "answer_p",
    "drafted_q",
    "q_token",
    "q_top",
    "overlap",
    "branch",
    "branch_top",
)
"""The fields with one entry for each position of the answer."""
_TOKENS = ("answer", "drafted", "q_token", "branch")


@dataclass(slots=True)
class Recorder:
    """The two models' contexts, read and written side by side."""

    target: Evaluator
    draft: Evaluator
    vocabulary: int
    """How many token ids the two have in common."""
    is_end: Callable[[int], bool]
    source: Source
    branch: int = BRANCH
    watch: Callable[[NDArray[np.float32], NDArray[np.float32]], None] | None = None
    """Told the logits of target and draft at every position, shapes (V,) and the part of the draft's that is common."""
    _sampler: Sampler = field(init=False)

    def __post_init__(self) -> None:
        # One for both: without penalties a sampler remembers nothing.
        self._sampler = Sampler(self.source.sampling, self.vocabulary)

    def record(self, prompt: Prompt, tokens: Sequence[int], longest: int = LONGEST_ANSWER) -> Recording:
        """Write one answer as plain decoding does it, one token a pass, and let the draft model follow."""
        self._read(list(tokens[:-1]))
        self._decode(tokens[-1:], rows=1)
        rows = [self._position()]
        while not (ended := self.is_end(rows[-1]["answer"])) and len(rows) < longest:
            self._decode((rows[-1]["answer"],), rows=1)
            rows.append(self._position())
        arrays = {name: np.array([row[name] for row in rows], _type(name)) for name in PER_POSITION}
        return Recording(prompt.id, prompt.category, self.source, np.array(tokens, np.int32), ended=ended, **arrays)

    def _read(self, tokens: list[int]) -> None:
        """All of a prompt, or nothing where the contexts have read the very same one before: in parts it would be rounded
        differently."""
        contexts, length = (self.target, self.draft), len(tokens)
        if all(context.tokens[:length] == tokens and context.truncate(length) == length for context in contexts):
            return
        for context in contexts:
            context.truncate(0)
        self._decode(tokens)

    def _decode(self, tokens: Sequence[int], rows: int = 0) -> None:
        self.target.decode(tokens, rows)
        # As the draft model's drafter does with a token that the draft model has not.
        self.draft.decode([token if token < self.vocabulary else 0 for token in tokens], rows)

    def _position(self) -> dict[str, Any]:
        """Everything about the position that the last decoded token leads to."""
        target_row, draft_row = self.target.row(0), self.draft.row(0)[: self.vocabulary]
        if self.watch:
            self.watch(target_row, draft_row)
        p, q = self._sampler.distribution(target_row), self._sampler.distribution(draft_row)
        key = self._key(len(self.target.tokens))
        answer, drafted = p.draw(key), q.draw(key)
        draft_top, draft_second = _two_largest(draft_row)
        found = {
            "answer": answer,
            "target_top": _two_largest(target_row)[0],
            "drafted": drafted,
            "draft_top": draft_top,
            "draft_second": draft_second,
            "answer_p": p.of(answer),
            "drafted_q": q.of(drafted),
            "q_token": q.mode(),
            "q_top": q.probs.max(),
            "overlap": overlap(p, q),
        }
        return found | self._branch(None if drafted == answer else drafted)

    def _branch(self, wrong: int | None) -> dict[str, Any]:
        """Follow the draft model after a wrong token, and come back."""
        tokens, tops = np.full(self.branch, -1, np.int32), np.zeros(self.branch, np.float32)
        start, token = len(self.draft.tokens), wrong
        if token is not None:
            for index in range(self.branch):
                self.draft.decode((token,), rows=1)
                row = self.draft.row(0)[: self.vocabulary]
                q = self._sampler.distribution(row)
                token = q.draw(self._key(len(self.draft.tokens)))
                tokens[index] = token
                tops[index] = _two_largest(row)[0] if self.source.sampling.greedy else q.probs.max()
            if self.draft.truncate(start) != start:
                raise ValueError("a draft model that cannot go back to every token cannot be recorded")
        return {"branch": tokens, "branch_top": tops}

    def _key(self, position: int) -> int:
        return noise_key(self.source.seed, Stream.TARGET, position)


def record(
    target: Model,
    draft: Model,
    prompts: Iterable[Prompt],
    render: Render,
    *,
    sampling: Sampling | None = None,
    seed: int = 0,
    longest_prompt: int = LONGEST_PROMPT,
    longest_answer: int = LONGEST_ANSWER,
    threads: int | None = None,
) -> Iterator[Recording]:
    """Record the answer to the first turn of each prompt, one after the other.

    `sampling`: temperature, top-k and top-p, everything else at its default; None is greedy. `longest_prompt`: tokens;
    longer prompts are left out. Raises ModelError for a pair without a common vocabulary.
    """
    sampling = sampling or Sampling(temperature=0.0)
    source = Source(target.path.name, draft.path.name, sampling.temperature, sampling.top_k, sampling.top_p, seed)
    if source.sampling != sampling:
        raise ValueError("only temperature, top-k and top-p can be recorded")
    common = common_vocabulary(target.vocabulary, draft.vocabulary)
    length = longest_prompt + longest_answer + BRANCH
    # The batch sizes are the engine's: rounding depends on them.
    target_settings = ContextSettings(length=length, batch=512, rows=1, threads=threads)
    draft_settings = ContextSettings(length=length, batch=256, rows=1, threads=threads)
    with Context(target, target_settings) as target_context, Context(draft, draft_settings) as draft_context:
        recorder = Recorder(target_context, draft_context, common, target.vocabulary.is_end, source)
        for prompt in prompts:
            tokens = render(prompt.turns[0])
            if 1 < len(tokens) <= longest_prompt:
                yield recorder.record(prompt, tokens, longest_answer)


def _two_largest(row: NDArray[np.float32]) -> tuple[float, float]:
    """The two largest probabilities of the softmax over all of `row`, shape (V,), V >= 2."""
    second, first = np.partition(row, row.size - 2)[-2:]
    total = float(np.exp(row - first).sum(dtype=np.float64))
    return 1.0 / total, float(np.exp(second - first)) / total


def _type(name: str) -> type[np.generic]:
    return np.int32 if name in _TOKENS else np.float32


def save(path: Path, recordings: Sequence[Recording]) -> Path:
    """Write recordings of one source into one .npz file.

    What has one entry a token lies end to end over all answers: `prompt` and every name of PER_POSITION; recording j has
    `prompt_ends[j - 1]:prompt_ends[j]` and `answer_ends[j - 1]:answer_ends[j]`. `source` is JSON.
    """
    if not recordings or any(recording.source != recordings[0].source for recording in recordings):
        raise ValueError("a file holds recordings of one source, and at least one")
    arrays: dict[str, NDArray[Any]] = {
        "version": np.array(_VERSION),
        "source": np.array(json.dumps(asdict(recordings[0].source))),
        "id": np.array([recording.id for recording in recordings]),
        "category": np.array([recording.category for recording in recordings]),
        "ended": np.array([recording.ended for recording in recordings]),
        "prompt_ends": np.cumsum([recording.prompt.size for recording in recordings]),
        "answer_ends": np.cumsum([recording.answer.size for recording in recordings]),
    }
    for name in ("prompt", *PER_POSITION):
        arrays[name] = np.concatenate([getattr(recording, name) for recording in recordings])
    part = path.with_name(path.name + ".part")
    try:
        with part.open("wb") as file:
            np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
        return part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def load(path: Path) -> list[Recording]:
    """Read them back. Raises UserError for a file that is missing, damaged or of another kind."""
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        if int(arrays["version"]) != _VERSION:
            raise UserError(f"{path.name} is of another version of localspec; make the recording again.")
        source = Source(**json.loads(str(arrays["source"])))
        prompts = np.split(arrays["prompt"], arrays["prompt_ends"][:-1])
        parts = {name: np.split(arrays[name], arrays["answer_ends"][:-1]) for name in PER_POSITION}
        return [
            Recording(
                id=str(arrays["id"][index]),
                category=str(arrays["category"][index]),
                source=source,
                prompt=prompts[index],
                ended=bool(arrays["ended"][index]),
                **{name: parts[name][index] for name in PER_POSITION},
            )
            for index in range(arrays["id"].size)
        ]
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror or 'it is no .npz file'}); check the path.") from error
    except (ValueError, KeyError, TypeError, IndexError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise UserError(f"{path.name} is not a whole recording; make it again.") from error
