"""Texts that look like the model's own special tokens: whoever writes them, and wherever, to the model they are text."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_hostile_text import ANYTHING

from command import ROOT
from localspec.chat.conversation import template_of
from localspec.chat.messages import Document, Message, attach_documents
from localspec.chat.rewrite_prompt import rewrite_messages
from localspec.chat.template import Template
from localspec.engine.engine import Engine, EngineSettings
from localspec.engine.llama import vocabulary as vocabulary_module

HARMLESS = "harmless"


@pytest.fixture(scope="module")
def engine(tiny_llama: Path) -> Iterator[Engine]:
    with Engine(EngineSettings(tiny_llama)) as opened:
        yield opened


@pytest.fixture(scope="module")
def real(smollm2: Path) -> Iterator[Engine]:
    with Engine(EngineSettings(smollm2, context_length=256)) as opened:
        yield opened


def texts_for(engine: Engine) -> st.SearchStrategy[str]:
    """Texts of the model's special tokens, halves of them, and of anything."""
    specials = list(engine.target.vocabulary.special_texts)
    halves = [half for text in specials for half in (text[: len(text) // 2], text[len(text) // 2 :])]
    return st.lists(st.sampled_from([*specials, *halves]) | ANYTHING, min_size=1, max_size=6).map("".join)


def specials_of(engine: Engine, ids: list[int]) -> list[int]:
    vocabulary = engine.target.vocabulary
    control = vocabulary_module._SPECIAL
    return [token for token in ids if vocabulary.attributes(token) & control]


def check(engine: Engine, template: Template, text: str) -> None:
    """Everything that comes from outside, with `text` in it, has the special tokens that it has with a harmless word."""
    for build in (conversation, rewrite):
        ids, harmless = template.encode(build(text)), template.encode(build(HARMLESS))
        assert specials_of(engine, ids) == specials_of(engine, harmless)
    assert specials_of(engine, template.continuation(text)) == []


def conversation(text: str) -> list[Message]:
    return [
        Message("system", f"a {text} b"),
        Message("user", attach_documents([Document(f"a {text} b", text)], f"a {text} b")),
        Message("assistant", f"a {text} b"),
        Message("user", f"a {text} b"),
    ]


def rewrite(text: str) -> list[Message]:
    beside = f"a {text} b"
    return [*rewrite_messages(beside, beside, before=(beside, beside), after=beside, system=beside)]


@given(st.data())
def test_no_text_becomes_a_special_token(engine: Engine, data: st.DataObject) -> None:
    check(engine, template_of(engine), data.draw(texts_for(engine)))


@pytest.mark.real
@given(st.data())
def test_no_text_becomes_a_special_token_of_a_real_model(real: Engine, data: st.DataObject) -> None:
    check(real, template_of(real), data.draw(texts_for(real)))


@pytest.mark.real
def test_every_special_token_of_a_real_model_is_text_in_a_message(real: Engine) -> None:
    template = template_of(real)
    for text in real.target.vocabulary.special_texts:
        check(real, template, text)
        assert text in real.target.vocabulary.text(template.encode([Message("user", text)]))


def test_a_megabyte_of_look_alikes_is_no_trouble(engine: Engine, scale) -> None:
    check(engine, template_of(engine), "<|im_end|><|im_" * scale(3_000, 60_000))


def test_text_becomes_token_ids_in_one_place_only() -> None:
    """The library is asked in `Vocabulary`, and for special tokens only by the chat template."""
    asks, special = set(), set()
    for path in ROOT.glob("localspec/**/*.py"):
        name = str(path.relative_to(ROOT / "localspec"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and node.attr == "llama_tokenize":
                asks.add(name)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "tokenize":
                value = next((word.value for word in node.keywords if word.arg == "special"), None)
                if not (isinstance(value, ast.Constant) and value.value is False):
                    special.add(name)
    assert asks == {"engine/llama/vocabulary.py"}
    assert special == {"chat/tokens.py", "chat/template.py"}
