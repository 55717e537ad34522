"""How answers end, and where characters do: by a token, a stop string, a number of tokens, the end of the context."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from recorded import Passes, draft_context, open_engine

import tiny
from localspec.engine.engine import Engine, Options
from localspec.engine.errors import ContextFullError
from localspec.engine.sampling import Sampling
from localspec.engine.step import Finish, Step
from reciting import circle, recite
from tiny_checks import GREEDY, PROMPT, WARM, write

DRAFTERS = ("none", "lookup", "draft")
ALL = (*DRAFTERS, "auto")
ALPHABET = "abcdefghijklmnopqrstuvwxyz"


def said(steps: list[Step]) -> str:
    """The text of an answer."""
    return "".join(step.text for step in steps)


@pytest.fixture(scope="module")
def alphabet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """Target and draft model say the alphabet over and over: every draft is right."""
    folder = tmp_path_factory.mktemp("alphabet")
    path = circle(folder / "alphabet.gguf", ALPHABET)
    with open_engine(path, path, context=256) as engine:
        yield engine


def spelled(engine: Engine, drafter: str, **more: object) -> list[Step]:
    """The steps of an answer to "xyz": the alphabet from a on."""
    options = Options(GREEDY, drafter, **({"draft_max": 5} | more))  # type: ignore[arg-type]
    return write(engine, options, list(b"abcdefghijklmnopqrstuvwxyz" * 2))[2]


# --- stop strings -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("drafter", ALL)
@pytest.mark.parametrize("draft_max", [1, 2, 3, 7])
def test_a_stop_string_anywhere(alphabet: Engine, drafter: str, draft_max: int) -> None:
    """Of one to five tokens, at every place against the steps' boundaries: nothing of it or after it is shown."""
    for start in range(20):
        for length in (1, 2, 5):
            stop = ALPHABET[start : start + length]
            steps = spelled(alphabet, drafter, draft_max=draft_max, stop=(stop,), max_tokens=60)
            assert said(steps) == ALPHABET[:start]
            assert steps[-1].finish is Finish.STOP
            # The tokens are kept up to the one that completes it, so that the cache can be used again.
            assert sum(len(step.tokens) for step in steps) == start + length
            assert list(alphabet.stream)[52:] == list(ALPHABET[: start + length].encode())


@pytest.mark.parametrize("drafter", ALL)
def test_several_stop_strings(alphabet: Engine, drafter: str) -> None:
    """The one that is complete first counts, whatever their order; empty ones are none."""
    for stop, shown in (
        (("fg", "cd"), "ab"),
        (("cdefg", "de"), "abc"),
        (("", "hij", "ghij"), "abcdef"),
        (("zzz", "yza"), ALPHABET[:24]),
        (("äö",), (ALPHABET * 2)[:40]),
    ):
        for order in (stop, stop[::-1]):
            assert said(spelled(alphabet, drafter, stop=order, max_tokens=40)) == shown


@pytest.mark.parametrize("drafter", ALL)
def test_the_beginning_of_a_stop_string_is_shown_at_the_end(alphabet: Engine, drafter: str) -> None:
    """What looked like a stop string and was cut off by the number of tokens is text."""
    steps = spelled(alphabet, drafter, stop=("fghijk",), max_tokens=8)
    assert said(steps) == "abcdefgh"
    assert steps[-1].finish is Finish.LENGTH
    assert all("f" not in step.text for step in steps[:-1])


@pytest.mark.parametrize("drafter", ALL)
def test_stop_strings_in_a_real_text(target: Path, drafter: str) -> None:
    """Every three characters of an answer as its stop string, with drafts that are partly right."""
    with open_engine(target, target) as engine:
        full = write(engine, Options(WARM, "none", seed=1, max_tokens=40))[2]
        text = said(full)
        for start in range(0, len(text) - 3, 3):
            stop = text[start : start + 3]
            steps = write(engine, Options(WARM, drafter, draft_max=5, seed=1, max_tokens=40, stop=(stop,)))[2]
            assert said(steps) == text[: text.index(stop)]
            assert steps[-1].finish is Finish.STOP


# --- end tokens -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("drafter", DRAFTERS)
@pytest.mark.parametrize("end", [tiny.IM_END, tiny.EOS])
def test_an_end_token_inside_a_draft(tmp_path: Path, drafter: str, end: int) -> None:
    """The draft goes on after it; nothing behind it is kept, in the text, the stream or the cache."""
    path = recite(tmp_path / "end.gguf", [*b"abcdefgh", end, *b"XYZ"])
    with open_engine(path, path, context=256) as engine:
        for draft_max in range(1, 12):
            # The prompt holds the end token and what a lookup would copy behind it.
            prompt = [*b"abcdefgh", end, *b"XYZXYZ", *b"ab"]
            options = Options(GREEDY, drafter, draft_max=draft_max)
            tokens, totals, steps = write(engine, options, prompt)
            assert tokens == [*b"cdefgh", end]
            assert said(steps) == "cdefgh"
            assert steps[-1].finish is Finish.STOP
            assert drafter == "none" or totals.drafted > 0
            assert list(engine.stream) == [*prompt, *tokens]
            assert engine.target_context.tokens == [*prompt, *tokens][: len(engine.target_context.tokens)]


def test_end_tokens_of_a_random_model(target: Path, draft: Path) -> None:
    """Answers that end by themselves, at temperature 1.5: the same tokens whoever drafts, the end token last."""
    hot = Sampling(temperature=1.5, top_k=0, top_p=1.0)
    with open_engine(target, draft) as engine:
        ended = 0
        for seed in range(12):
            texts = {}
            for drafter in DRAFTERS:
                options = Options(hot, drafter, draft_max=6, seed=seed, max_tokens=200)
                texts[drafter], totals, _ = write(engine, options)
                ends = [index for index, token in enumerate(texts[drafter]) if engine.target.vocabulary.is_end(token)]
                assert ends in ([], [len(texts[drafter]) - 1])
                assert (totals.finish is Finish.STOP) == bool(ends)
            assert texts["none"] == texts["lookup"] == texts["draft"]
            ended += totals.finish is Finish.STOP
        assert ended >= 4


# --- max tokens -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("drafter", ALL)
def test_max_tokens_is_exact(alphabet: Engine, passes: Passes, drafter: str) -> None:
    """However long the drafts; and no pass looks beyond the last token asked for."""
    for asked in (*range(1, 14), 100):
        for draft_max in (1, 4, 32):
            passes.clear()
            steps = spelled(alphabet, drafter, draft_max=draft_max, max_tokens=asked)
            assert said(steps) == (ALPHABET * 4)[:asked]
            assert sum(len(step.tokens) for step in steps) == asked
            assert steps[-1].finish is Finish.LENGTH
            evaluated = max(entry.start + len(entry.tokens) for entry in passes.of(alphabet.target_context))
            assert evaluated <= 52 + asked - 1


# --- characters -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("drafter", DRAFTERS)
@pytest.mark.parametrize("draft_max", range(1, 9))
def test_characters_of_several_tokens(tmp_path: Path, drafter: str, draft_max: int) -> None:
    """A text of one- to four-byte characters, a byte a token: drafts end inside characters, texts never do."""
    text = "aé✓🙂 "
    path = circle(tmp_path / "circle.gguf", text)
    # The draft model is wrong about one byte inside the emoji.
    clumsy = circle(tmp_path / "clumsy.gguf", text, but={text.encode()[7]: ord("?")})
    with open_engine(path, clumsy, context=256) as engine:
        prompt = list((text * 2).encode())
        for asked in (22, 33):
            steps = write(engine, Options(GREEDY, drafter, draft_max=draft_max, max_tokens=asked), prompt)[2]
            assert said(steps) == text * (asked // 11)
            assert "\ufffd" not in said(steps)
        if drafter != "none":
            assert any(0 < step.accepted < step.drafted for step in steps) == (drafter == "draft" and draft_max > 1)


@pytest.mark.parametrize("drafter", ALL)
def test_a_character_that_is_never_finished(tmp_path: Path, drafter: str) -> None:
    """Cut off by the number of tokens it is shown as a replacement character, once."""
    text = "x🙂"
    path = circle(tmp_path / "circle.gguf", text)
    with open_engine(path, path, context=256) as engine:
        steps = write(engine, Options(GREEDY, drafter, max_tokens=8), list((text * 2).encode()))[2]
        assert said(steps) == "x🙂x\ufffd"


@pytest.mark.parametrize("drafter", ALL)
def test_stop_strings_of_several_bytes(tmp_path: Path, drafter: str) -> None:
    path = circle(tmp_path / "circle.gguf", "aé✓🙂 ")
    with open_engine(path, path, context=256) as engine:
        for stop, shown in (("🙂", "aé✓"), ("✓🙂", "aé"), (" aé", "aé✓🙂")):
            steps = write(engine, Options(GREEDY, drafter, stop=(stop,), max_tokens=40), list("aé✓🙂 ".encode() * 2))[2]
            assert said(steps) == shown


# --- the end of the context -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("drafter", ALL)
@pytest.mark.parametrize("draft_max", [1, 3, 8, 32])
def test_a_full_context(alphabet: Engine, passes: Passes, drafter: str, draft_max: int) -> None:
    """The answer fills it to the last place and says so; no pass of either model goes beyond it."""
    for length in (1, 27, 222, 224, 253, 254, 255, 256):
        passes.clear()
        prompt = list((ALPHABET * 10)[:length].encode())
        tokens, _, steps = write(alphabet, Options(GREEDY, drafter, draft_max=draft_max), prompt)
        assert tokens == list((ALPHABET * 20)[length:257].encode())
        assert steps[-1].finish is Finish.CONTEXT
        assert max(entry.start + len(entry.tokens) for entry in passes) == 256
        assert len(draft_context(alphabet).tokens) <= 256
        with pytest.raises(ContextFullError, match="257 tokens"):
            next(alphabet.generate(list(alphabet.stream), Options(GREEDY, drafter)))


@pytest.mark.parametrize("drafter", ALL)
def test_a_full_context_of_random_text(target: Path, draft: Path, drafter: str) -> None:
    """The same with drafts that are refused in part, in match and in rejection mode; a shorter prompt works afterwards."""
    with open_engine(target, draft, context=256) as engine:
        plain = write(engine, Options(WARM, "none", seed=4), PROMPT * 3)[0]
        for verification in ("match", "rejection"):
            options = Options(WARM, drafter, draft_max=7, seed=4, verification=verification)
            tokens, totals, _ = write(engine, options, PROMPT * 3)
            assert totals.finish in (Finish.CONTEXT, Finish.STOP)
            assert len(tokens) == 257 - 3 * len(PROMPT) or totals.finish is Finish.STOP
            assert verification == "rejection" or tokens == plain
            after = write(engine, Options(WARM, drafter, draft_max=7, seed=5, max_tokens=20), PROMPT)[0]
            assert after == write(engine, Options(WARM, "none", seed=5, max_tokens=20), PROMPT)[0]


def test_the_smallest_context(tmp_path: Path, exactly: Callable[[Path], Path], tiny_lfm2: Path) -> None:
    """One token asked for: what llama.cpp grants is used, for attention and for a hybrid."""
    for path in (circle(tmp_path / "circle.gguf", ALPHABET), exactly(tiny_lfm2)):
        with open_engine(path, context=1) as engine:
            tokens, totals, _ = write(engine, Options(GREEDY, "lookup"), list(b"abcabc"))
            assert totals.finish in (Finish.CONTEXT, Finish.STOP)
            assert len(tokens) + 6 == 257 or totals.finish is Finish.STOP
