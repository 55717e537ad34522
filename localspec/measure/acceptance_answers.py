"""What the acceptance table is computed from: per prompt the target's greedy answer and one sampled at temperature 1, with
what the draft model says at each of their tokens."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from localspec.engine.compatibility import common_vocabulary
from localspec.engine.engine import Engine, Options
from localspec.engine.errors import Interrupted
from localspec.engine.llama import Context, ContextSettings
from localspec.engine.sampling import Sampling
from localspec.engine.step import Finish
from localspec.engine.stop import Stop
from localspec.engine.text import TextStream
from localspec.measure.prompts import Prompt
from localspec.measure.recording import BRANCH, Recorder, Recording, Source

GREEDY = Sampling(temperature=0.0)
UNCUT = Sampling(temperature=1.0, top_k=0, top_p=1.0)
"""The models' own distributions: the softmax over the whole vocabulary at temperature 1."""
_DRAFT_BATCH = 256
"""That of the engine: rounding depends on it."""


@dataclass(frozen=True, slots=True, eq=False)
class Followed:
    """An answer of n tokens that both models have read, token by token."""

    recording: Recording
    overlap: NDArray[np.float64]
    """At each position the sum of min(p, q) of the two uncut distributions, (n,)."""


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """What the models made of one prompt."""

    id: str
    category: str
    prompt: NDArray[np.int32]
    """Token ids."""
    answer: NDArray[np.int32]
    """Token ids of the target's greedy answer, with the one that ends it."""
    greedy: Followed | None = None
    """The same answer with the draft model beside it; None without a draft model."""
    sampled: Followed | None = None
    """An answer sampled at temperature 1; None without a draft model, for which alone it is needed."""


def overlap(target_row: NDArray[np.float32], draft_row: NDArray[np.float32]) -> float:
    """The sum of min(p, q) of the softmaxes of two rows of logits, shapes (V,) and (W,), W <= V: how likely a token drawn
    from q is accepted (Leviathan, Kalman, Matias 2023, corollary 3.6)."""
    p, q = _softmax(target_row), _softmax(draft_row)
    return float(np.minimum(p[: q.size], q).sum())


def _softmax(row: NDArray[np.float32]) -> NDArray[np.float64]:
    weights: NDArray[np.float64] = np.exp(row.astype(np.float64) - float(row.max()))
    weights /= weights.sum()
    return weights


class Answering:
    """Makes the answers on a loaded engine, whose own cache it uses. Close it before the engine."""

    def __init__(self, engine: Engine, longest: int, seed: int, stop: Sequence[str], longest_prompt: int) -> None:
        """`longest`: tokens of an answer. `seed`: of the sampled ones. `stop`: strings that end an answer.
        `longest_prompt`: tokens. Raises ModelError where the draft model's context does not fit into the memory."""
        self._engine, self._longest, self._seed, self._stop = engine, longest, seed, tuple(stop)
        self._draft_context: Context | None = None
        if engine.draft:
            settings = ContextSettings(
                length=longest_prompt + longest + BRANCH + 1,
                batch=_DRAFT_BATCH,
                rows=1,
                threads=engine.settings.threads,
            )
            self._draft_context = Context(engine.draft, settings)

    def answer(self, prompt: Prompt, tokens: Sequence[int], stop: Stop) -> Answers | None:
        """The answers to one prompt, whose token ids these are, at least two; None when it was stopped."""
        if stop.asked:
            return None
        try:
            if self._draft_context is None:
                return self._plain(prompt, tokens, stop)
            with stop.ending(self._interrupt):
                greedy = self._follow(self._draft_context, prompt, tokens, GREEDY)
                sampled = self._follow(self._draft_context, prompt, tokens, UNCUT)
        except Interrupted:
            return None
        return Answers(prompt.id, prompt.category, np.array(tokens, np.int32), greedy.recording.answer, greedy, sampled)

    def _interrupt(self) -> None:
        self._engine.interrupt()
        if self._draft_context:
            self._draft_context.interrupt()

    def close(self) -> None:
        """Free the draft model's second cache."""
        if self._draft_context:
            self._draft_context.close()

    def __enter__(self) -> "Answering":
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def _follow(self, draft: Context, prompt: Prompt, tokens: Sequence[int], sampling: Sampling) -> Followed:
        """One answer of the target, one token a pass, and the draft model along it."""
        engine, overlaps = self._engine, list[float]()
        source = Source(
            engine.settings.target.name,
            draft.model.path.name,
            sampling.temperature,
            sampling.top_k,
            sampling.top_p,
            self._seed,
        )
        # Where the draft goes on after a wrong token matters only to the policy, and is lost on a memory that cannot be cut.
        branches = sampling.greedy and not draft.memory.is_recurrent
        recorder = Recorder(
            engine.target_context,
            draft,
            common_vocabulary(engine.target.vocabulary, draft.model.vocabulary),
            self._ending(),
            source,
            BRANCH if branches else 0,
            lambda target_row, draft_row: overlaps.append(overlap(target_row, draft_row)),
        )
        recording = recorder.record(prompt, tokens, self._longest)
        return Followed(recording, np.array(overlaps))

    def _ending(self) -> Callable[[int], bool]:
        """Says of each token of an answer, asked once and in order, whether the answer ends with it."""
        vocabulary, text = self._engine.target.vocabulary, TextStream(self._stop)

        def ends(token: int) -> bool:
            if vocabulary.is_end(token):
                return True
            text.push(vocabulary.piece(token))
            return text.stopped

        return ends

    def _plain(self, prompt: Prompt, tokens: Sequence[int], stop: Stop) -> Answers | None:
        """Without a draft model the engine's own plain decoding is all there is."""
        options = Options(sampling=GREEDY, drafter="none", seed=self._seed, max_tokens=self._longest, stop=self._stop)
        steps = list(self._engine.generate(tokens, options, stop=stop))
        if steps[-1].finish is Finish.INTERRUPTED:
            return None
        answer = [token for step in steps for token in step.tokens]
        return Answers(prompt.id, prompt.category, np.array(tokens, np.int32), np.array(answer, np.int32))
