"""What the place-aware lookup knows before its first answer, learned from edits; docs/make_place_priors.py makes it anew."""

import json
from collections.abc import Sequence
from pathlib import Path

from localspec.engine import policy
from localspec.engine.chain import Chain
from localspec.engine.drafters import place
from localspec.engine.drafters.lookup import LONGEST_DRAFT
from localspec.engine.drafters.place import PlaceLookup
from localspec.measure.edit_replay import EditAnswer, Piece, costs_of
from localspec.measure.profiles import PROFILES
from localspec.measure.replay import run_loop

_LEAST, _MOST = 8.0, 30.0
"""Observations that a rate needs to be kept, and those that it counts like at most: it has to follow what it meets."""

Priors = dict[str, list[tuple[int, float, float]]]
"""By the name of a table: key, hits and trials of its cells."""


def train(edits: Sequence[EditAnswer], piece: Piece) -> Priors:
    """What is learned from edits on all devices, one after the other."""
    lookup = PlaceLookup(piece, {})
    for profile in PROFILES.values():
        session = policy.Session(Chain(costs_of(profile), lookup, None))
        for edit in edits:
            lookup.rewind(0)
            lookup.observe(edit.prompt.tolist())
            lookup.begin((edit.document,), rewrites=True)
            run_loop(edit, profile, policy.Policy(session, LONGEST_DRAFT), (lookup,))
    return {name: _kept(cells) for name, cells in lookup.learned.items()}


def _kept(cells: dict[int, tuple[float, float]]) -> list[tuple[int, float, float]]:
    kept = []
    for key, (hits, trials) in sorted(cells.items()):
        if trials >= _LEAST:
            share = min(1.0, _MOST / trials)
            kept.append((key, round(hits * share, 1), round(trials * share, 1)))
    return kept


def write(priors: Priors, path: Path = place.PRIORS) -> None:
    """One table a line."""
    lines = [f"{json.dumps(name)}: {json.dumps(cells, separators=(',', ':'))}" for name, cells in priors.items()]
    path.write_text("{" + ",\n".join(lines) + "}\n", encoding="utf-8")
