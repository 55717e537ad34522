"""Faults to be planted in the loop, the rules and the drafters: each is one that some implementation has really had."""

import pytest

import checks
from localspec.engine import generate
from localspec.engine.distribution import Distribution
from localspec.engine.drafters.base import Draft
from localspec.engine.drafters.draft_model import DraftModel
from localspec.engine.drafters.lookup import Lookup
from localspec.engine.generate import Loop
from localspec.engine.noise import Stream, noise_key
from localspec.engine.step import Finish


def argmax_called_a_sample(patch: pytest.MonkeyPatch) -> None:
    def take(self: DraftModel) -> tuple[int, Distribution | None]:
        assert self._looked is not None
        token, q = self._looked
        self.push(token)
        return token, q

    patch.setattr(DraftModel, "take", take)


def one_noise_for_all(patch: pytest.MonkeyPatch) -> None:
    def shared(seed: int, stream: Stream, position: int, step: int = 0) -> int:
        return noise_key(seed, Stream.TARGET, position, step)

    patch.setattr(generate, "noise_key", shared)
    patch.setattr("localspec.engine.drafters.draft_model.noise_key", shared)


def cut_by_own_value(patch: pytest.MonkeyPatch) -> None:
    honest = DraftModel.propose

    def propose(self: DraftModel, limit: int, step: int) -> Draft:
        draft = honest(self, limit, step)
        assert draft.q is not None
        unsure = (i for i, (x, q) in enumerate(zip(draft.tokens, draft.q, strict=True)) if q.of(x) < 0.5)
        cut = next(unsure, len(draft.tokens))
        return Draft(draft.drafter, draft.tokens[:cut], draft.survival[:cut], draft.q[:cut])

    patch.setattr(DraftModel, "propose", propose)


def better_of_two_samples(patch: pytest.MonkeyPatch) -> None:
    honest = DraftModel.propose

    def propose(self: DraftModel, limit: int, step: int) -> Draft:
        drafts = [honest(self, limit, step), honest(self, limit, step + 1_000_000)]
        return max(drafts, key=lambda draft: draft.q[0].of(draft.tokens[0]))  # type: ignore[index]

    patch.setattr(DraftModel, "propose", propose)


def residual_by_slot(patch: pytest.MonkeyPatch) -> None:
    def residual(p: Distribution, q: Distribution) -> Distribution:
        n = min(p.ids.size, q.ids.size)
        weights = (p.probs[:n] - q.probs[:n]).clip(0.0)
        return Distribution(p.ids[:n], weights / weights.sum()) if weights.sum() > 0 else p

    patch.setattr(generate, "residual", residual)


def rows_shifted_above_depth_two(patch: pytest.MonkeyPatch) -> None:
    honest = checks.TableModel.row
    patch.setattr(checks.TableModel, "row", lambda self, i: honest(self, i - 1 if i > 2 else i))


def bonus_token_lost(patch: pytest.MonkeyPatch) -> None:
    honest = Loop._verify

    def verify(self: Loop, draft: Draft, number: int):
        tokens, accepted, pieces, logprobs = honest(self, draft, number)
        if accepted and accepted == len(draft.tokens) and len(tokens) > accepted:
            tokens.pop()
        return tokens, accepted, pieces, logprobs

    patch.setattr(Loop, "_verify", verify)


def last_token_doubled(patch: pytest.MonkeyPatch) -> None:
    honest = Loop._verify

    def verify(self: Loop, draft: Draft, number: int):
        tokens, accepted, pieces, logprobs = honest(self, draft, number)
        return [*tokens, tokens[-1]] if accepted else tokens, accepted, pieces, logprobs

    patch.setattr(Loop, "_verify", verify)


def draft_not_caught_up(patch: pytest.MonkeyPatch) -> None:
    honest = DraftModel.look

    def look(self: DraftModel) -> int:
        if not self._opened:
            self._opened = True
            self._roll_back()
            lost = len(self._stream) - 1 - len(self.context.tokens)
            if lost > 0:
                self.context.tokens.extend([0] * lost)
        return honest(self)

    patch.setattr(DraftModel, "look", look)


def penalties_one_step_late(patch: pytest.MonkeyPatch) -> None:
    honest = Loop._verify

    class Late:
        def __init__(self, sampler) -> None:
            self.sampler, self.held = sampler, list[int]()

        def accept(self, token: int) -> None:
            self.held.append(token)

        def __getattr__(self, name: str):
            return getattr(self.sampler, name)

    def verify(self: Loop, draft: Draft, number: int):
        late = Late(self.sampler)
        self.sampler = late  # type: ignore[assignment]
        result = honest(self, draft, number)
        self.sampler = late.sampler
        for token in late.held:
            self.sampler.accept(token)
        return result

    patch.setattr(Loop, "_verify", verify)


def on_after_the_end(patch: pytest.MonkeyPatch) -> None:
    honest = Loop._verify

    def verify(self: Loop, draft: Draft, number: int):
        codec, self.codec = self.codec, checks.TableCodec(end=None)
        result = honest(self, draft, number)
        self.codec = codec
        if any(codec.is_end(token) for token in result[0]):
            self._finish = Finish.STOP
        return result

    patch.setattr(Loop, "_verify", verify)


def on_after_a_stop_string(patch: pytest.MonkeyPatch) -> None:
    honest_take, honest_verify = Loop._take, Loop._verify

    def take(self: Loop, token: int) -> str:
        text = honest_take(self, token)
        self._finish = Finish.STOP if self.codec.is_end(token) else None
        return text

    def verify(self: Loop, draft: Draft, number: int):
        result = honest_verify(self, draft, number)
        if self.text.stopped:
            self._finish = Finish.STOP
        return result

    patch.setattr(Loop, "_take", take)
    patch.setattr(Loop, "_verify", verify)


def refused_rows_use_random_numbers(patch: pytest.MonkeyPatch) -> None:
    used: dict[int, int] = {}
    honest = Loop._verify

    def judge(self: Loop, row, draft: Draft, index: int, number: int):
        count = used.get(id(self), 0)
        used[id(self)] = count + 1
        token = self.sampler.draw(row, noise_key(self.request.seed, Stream.TARGET, count))
        return token, index < len(draft.tokens) and token == draft.tokens[index]

    def verify(self: Loop, draft: Draft, number: int):
        if number == 0:
            used[id(self)] = 0
        result = honest(self, draft, number)
        used[id(self)] += len(draft.tokens) + 1 - len(result[0])
        return result

    patch.setattr(Loop, "_judge", judge)
    patch.setattr(Loop, "_verify", verify)


def plausible_is_good_enough(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(generate, "accepts", lambda p, q, token, u: p.of(token) > 0.15)


def near_match_is_good_enough(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(generate, "matches", lambda target, drafted: abs(target - drafted) <= 1)


def draft_past_the_edge(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Loop, "_room", lambda self: 16)


def index_kept_after_edit(patch: pytest.MonkeyPatch) -> None:
    def rewind(self: Lookup, length: int) -> None:
        del self._index.tokens[length:]

    patch.setattr(Lookup, "rewind", rewind)


def accepted_tokens_are_certain(patch: pytest.MonkeyPatch) -> None:
    honest = Loop._verify

    def verify(self: Loop, draft: Draft, number: int):
        tokens, accepted, pieces, logprobs = honest(self, draft, number)
        return tokens, accepted, pieces, [0.0] * min(accepted, len(logprobs)) + logprobs[accepted:]

    patch.setattr(Loop, "_verify", verify)
