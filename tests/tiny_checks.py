"""Checks on tiny models with real caches."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from checks import demand
from localspec.engine.engine import Engine, EngineSettings, Options
from localspec.engine.llama import Context, ContextSettings, Model
from localspec.engine.sampling import Sampling
from localspec.engine.step import Step, Totals

PROMPT = list(b"the cat sat on the mat and the cat sat on the hat and ")
GREEDY = Sampling(temperature=0)
WARM = Sampling(temperature=0.8)


def load(target: Path, draft: Path | None = None, context: int = 512, **settings: object) -> Engine:
    """An engine of tiny models, on two threads."""
    return Engine(EngineSettings(target, draft, context_length=context, threads=2, **settings))  # type: ignore[arg-type]


def write(engine: Engine, options: Options, prompt: list[int] = PROMPT) -> tuple[list[int], Totals, list[Step]]:
    """An answer's tokens, sums and steps."""
    totals, steps = Totals(), []
    for step in engine.generate(prompt, options):
        totals.add(step)
        steps.append(step)
    return [token for step in steps for token in step.tokens], totals, steps


def check_same_text(target: Path, draft: Path | None, tokens: int = 120, **settings: object) -> None:
    """Greedy and seeded texts are the same whoever drafts."""
    with load(target, draft, **settings) as engine:
        for sampling in (GREEDY, WARM, Sampling(temperature=1.0, repeat_penalty=1.3, frequency_penalty=0.2)):
            for seed in (1, 2):
                texts = {}
                for drafter in ("none", "lookup", *(["draft"] if draft else []), "auto"):
                    options = Options(sampling, drafter, draft_max=7, seed=seed, max_tokens=tokens)
                    texts[drafter], totals, _ = write(engine, options)
                    demand(drafter in ("none", "auto") or totals.drafted > 0, f"{drafter} has drafted nothing")
                for drafter, text in texts.items():
                    demand(text == texts["none"], f"{drafter} changes the text ({sampling}, seed {seed})")


def check_support(target: Path, draft: Path) -> None:
    """Rejection mode never emits a token outside the target's top k."""
    with load(target, draft) as engine:
        sampling = Sampling(temperature=1.5, top_k=2, top_p=1.0)
        for seed in range(4):
            options = Options(sampling, "draft", 4, verification="rejection", seed=seed, max_tokens=80)
            tokens, totals, _ = write(engine, options)
            demand(0 < totals.accepted < totals.drafted, "nothing was accepted, or nothing refused")
            rows = evaluate(engine.target, [*PROMPT, *tokens])
            for index, token in enumerate(tokens):
                row = rows[len(PROMPT) + index - 1]
                rank = int((row > row[token] + 1e-3).sum())
                demand(rank < 2, f"token {index} is number {rank + 1} in a top 2")


def evaluate(model: Model, tokens: list[int]) -> NDArray[np.float32]:
    """The logits after each token, read one by one in a fresh context, shape (len(tokens), V)."""
    with Context(model, ContextSettings(length=1024, rows=1, threads=2)) as context:
        rows = []
        for token in tokens:
            context.decode([token], rows=1)
            rows.append(context.row(0).copy())
    return np.stack(rows)


def check_rollback(path: Path, full_window: bool = True) -> None:
    """After cuts of every depth, behind passes of every width, the logits are those of a fresh context."""
    rng = np.random.default_rng(5)
    with Model(path) as model:
        truth_tokens = [int(token) for token in rng.integers(0, 256, 160)]
        truth = evaluate(model, truth_tokens)
        settings = ContextSettings(length=512, batch=64, rows=9, threads=2, full_window=full_window)
        with Context(model, settings) as context:
            for _ in range(120):
                _random_moves(context, truth_tokens, rng)
                _compare(context, truth_tokens, truth)


def _random_moves(context: Context, tokens: list[int], rng: np.random.Generator) -> None:
    """Some passes that follow the text, one that leaves it, and a cut back to where it was left or further."""
    if len(context.tokens) > 120:
        context.truncate(int(rng.integers(0, 100)))
    for _ in range(int(rng.integers(1, 4))):
        start = len(context.tokens)
        context.decode(tokens[start : start + int(rng.integers(1, 9))])
    if rng.random() < 0.5:
        context.mark("step")
    here = len(context.tokens)
    wrong = [int(token) for token in rng.integers(0, 256, int(rng.integers(1, 9)))]
    if rng.random() < 0.7:
        context.decode(wrong)
    else:
        for token in wrong:
            context.decode([token])
    context.truncate(here if rng.random() < 0.7 else int(rng.integers(0, here)))


def _compare(context: Context, tokens: list[int], truth: NDArray[np.float32]) -> None:
    start = len(context.tokens)
    demand(context.tokens == tokens[:start], "the context does not know what it holds")
    context.decode(tokens[start : start + 3], rows=3)
    for index in range(3):
        difference = float(abs(context.row(index) - truth[start + index]).max())
        demand(difference < 1e-2, f"logits at {start + index} are off by {difference:.3f} after a cut")


def check_long_rewind(path: Path) -> None:
    """With a small sliding-window cache: after a cut far back, the logits are those of a fresh context."""
    rng = np.random.default_rng(6)
    tokens = [int(token) for token in rng.integers(0, 256, 700)]
    with Model(path) as model:
        truth = evaluate(model, tokens)
        settings = ContextSettings(length=1024, batch=32, rows=9, threads=2, full_window=False)
        with Context(model, settings) as context:
            for cut in (690, 640, 400, 33, 5):
                context.decode(tokens[len(context.tokens) : 695])
                kept = context.truncate(cut)
                demand(kept <= cut, "more is kept than was asked for")
                demand(cut < 690 or kept == cut, "the tail of the last pass cannot be cut")
                context.decode(tokens[kept:cut]) if kept < cut else None
                _compare(context, tokens, truth)
