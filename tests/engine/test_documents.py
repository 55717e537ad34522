"""Documents in the engine: the same text in fewer steps, with a draft model or without."""

from __future__ import annotations

import pytest
from recorded import open_engine

import reciting
from fakes import TableCodec, TableModel, TableSampler, tables
from localspec.engine.chain import Chain
from localspec.engine.costs import CostCurve, Costs
from localspec.engine.drafters.draft_model import Drafting, DraftModel
from localspec.engine.drafters.place import PlaceLookup
from localspec.engine.engine import Engine, Options
from localspec.engine.generate import Loop, Request
from localspec.engine.policy import Policy, Session
from localspec.engine.sampling import Sampling
from localspec.engine.step import Step

LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
GREEDY = Sampling(temperature=0.0)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    """It says the letters over and over, whatever it is asked."""
    with open_engine(reciting.circle(tmp_path_factory.mktemp("circle") / "circle.gguf", LETTERS)) as engine:
        yield engine


def rewrite(engine: Engine, documents: list[tuple[int, int]], drafter: str = "lookup") -> list[Step]:
    """An answer to a prompt that holds the letters once."""
    options = Options(GREEDY, drafter, draft_max=8, seed=0, max_tokens=30, rewrites=True)
    return list(engine.generate([*LETTERS.encode()], options, documents=documents))


def text(steps: list[Step]) -> list[int]:
    return [token for step in steps for token in step.tokens]


def test_the_first_step_copies_the_document(engine: Engine) -> None:
    """Plain lookup has nothing to go by yet; the text is the same."""
    plain, placed = rewrite(engine, []), rewrite(engine, [(0, 35)])
    assert plain[0].accepted == 0
    assert (placed[0].drafter, placed[0].accepted) == ("lookup", 8)
    assert text(placed) == text(plain) == [*LETTERS.encode()][:30]
    assert len(placed) < len(plain)


def test_a_simulated_clock_starts_the_place_anew(engine: Engine) -> None:
    """What had been learned is forgotten, and documents still work."""
    engine.simulate(lambda width: 1.0 + 0.01 * width, lambda width: 1.0)
    assert rewrite(engine, [(0, 35)], "auto")[0].accepted > 3


def session(model: DraftModel | None) -> Session:
    """On a device where long passes cost little."""
    curve = CostCurve.measured({1: 1.0, 9: 1.4, 33: 2.5})
    costs = Costs(curve, CostCurve.measured({1: 0.1, 8: 0.2}) if model else None)
    return Session(Chain(costs, PlaceLookup(lambda token: b" w"), model))


@pytest.mark.parametrize("drafting", [None, *Drafting])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_the_text_is_the_targets_own(drafting: Drafting | None, temperature: float) -> None:
    """A document that the answer begins with and leaves soon, with a draft model that knows something else: seeded, every
    token of the match rule is the one that plain decoding draws; by rejection the answer just has to come to its end."""
    logits, other = tables(seed=3), tables(seed=4)

    def answer(model: DraftModel | None, lookup: PlaceLookup | None) -> list[Step]:
        prompt = [*document, 0, 1]
        target = TableModel(logits)
        target.decode(prompt[:-1])
        sampler = TableSampler(temperature)
        sampler.begin(prompt)
        chosen = session(model)
        chosen.chain.lookup = lookup
        drafters = [drafter for drafter in (lookup, model) if drafter]
        for drafter in drafters:
            drafter.observe(prompt)
        if lookup:
            lookup.begin([(0, len(document))], rewrites=True)
        if model:
            model.begin(TableSampler(temperature), drafting or Drafting.COUPLED, 5, temperature == 0.0)
        loop = Loop(
            target, sampler, Policy(chosen, 16), drafters, TableCodec(end=None), Request(5, max_tokens=60), prompt
        )
        return list(loop.run())

    document: list[int] = []
    document = [token for step in answer(None, None) for token in step.tokens][:40]
    plain = answer(None, None)
    model = DraftModel(TableModel(other), 12) if drafting else None
    placed = answer(model, PlaceLookup(lambda token: b" w"))
    assert sum(len(step.tokens) for step in placed) == 60
    if drafting is not Drafting.SAMPLED or temperature == 0.0:
        assert any(step.drafter == "lookup" and step.accepted for step in placed)
        assert [t for step in placed for t in step.tokens] == [t for step in plain for t in step.tokens]
