"""The figures of the acceptance table once more, in plain numpy and slow loops, from their definitions."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from localspec.engine.llama import Context, ContextSettings, Model


def save_logits(path: Path, model: Model, prompt: list[int], answer: list[int], length: int, batch: int) -> Path:
    """The logits that lead to every token of an answer, shape (n, V), one token a pass as in plain decoding."""
    settings = ContextSettings(length=length, batch=batch, rows=1, threads=1)
    rows = []
    with Context(model, settings) as context:
        context.decode(prompt[:-1])
        for token in [prompt[-1], *answer[:-1]]:
            context.decode([token], rows=1)
            rows.append(context.row(0).copy())
    np.save(path, np.array(rows))
    return path


def softmax(logits: np.ndarray) -> np.ndarray:
    """Over the last axis, at temperature 1."""
    logits = logits.astype(np.float64)
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def sum_min(target_logits: np.ndarray, draft_logits: np.ndarray) -> float:
    """Over all positions the sum of sum_x min(p(x), q(x))."""
    return float(np.minimum(softmax(target_logits), softmax(draft_logits)).sum())


def bigram_hits(prompt: list[int], answer: list[int]) -> int:
    """Positions where the token after the most recent earlier copy of the last two tokens is the next one."""
    hits = 0
    for number, token in enumerate(answer):
        text = prompt + answer[:number]
        for end in range(len(text) - 1, 1, -1):
            if text[end - 2 : end] == text[-2:]:
                hits += text[end] == token
                break
    return hits


def draft_steps(agrees: list[bool], k: int) -> list[int]:
    """Tokens of each step with drafts of k tokens; the target's own token past the end of the answer is not one."""
    steps, at = [], 0
    while at < len(agrees):
        accepted = 0
        while accepted < k and at + accepted < len(agrees) and agrees[at + accepted]:
            accepted += 1
        steps.append(min(accepted + 1, len(agrees) - at))
        at += accepted + 1
    return steps


def lookup_steps(prompt: list[int], answer: list[int]) -> list[tuple[int, int, int]]:
    """Prompt lookup: of each step its tokens, how many were proposed, and how many of those accepted."""
    steps, at = [], 0
    while at < len(answer):
        text = prompt + answer[:at]
        proposal = _proposal(text)
        accepted = 0
        while accepted < len(proposal) and answer[at + accepted : at + accepted + 1] == [proposal[accepted]]:
            accepted += 1
        steps.append((min(accepted + 1, len(answer) - at), len(proposal), accepted))
        at += accepted + 1
    return steps


def _proposal(text: list[int]) -> list[int]:
    for n in (3, 2, 1):
        for end in range(len(text) - 1, n - 1, -1):
            if text[end - n : end] == text[-n:]:
                return text[end : end + 10]
    return []
