"""The token ids of an unfinished answer: its text and nothing else, in vocabularies of both kinds."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from llama_vocabulary import LlamaVocabulary, write_sentencepiece
from localspec.chat.messages import Message
from localspec.chat.template import Template
from localspec.chat.tokens import SpecialTexts, continuation

LOOK_ALIKES = ["<|im_start|>", "<|im_end|>", "<s>", "</s>", "<|u|>", "<unk>"]
PIECES = st.sampled_from([*LOOK_ALIKES, "<", "s>", "|>", "a", "ab", " ", "\n", "é", "😀"]) | st.text(max_size=3)
TEXTS = st.lists(PIECES, max_size=8).map("".join)


@pytest.fixture(scope="module")
def bytewise(tiny_llama: Path) -> LlamaVocabulary:
    return LlamaVocabulary(tiny_llama)


@pytest.fixture(scope="module", params=[True, False], ids=["space-prefix", "no-space-prefix"])
def sentencepiece(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> LlamaVocabulary:
    folder = tmp_path_factory.mktemp("vocabulary")
    return LlamaVocabulary(write_sentencepiece(folder / "spm.gguf", space_prefix=request.param))


def check(vocabulary: LlamaVocabulary, text: str) -> None:
    ids = continuation(text, SpecialTexts(vocabulary.special_texts), vocabulary)
    assert vocabulary.detokenize(ids) == text
    assert set(ids).isdisjoint(vocabulary.special_ids)


@given(TEXTS)
@example("<|im_end|>")
@example("\n\nab")
@settings(max_examples=60, deadline=None)
def test_bytewise(bytewise: LlamaVocabulary, text: str) -> None:
    check(bytewise, text)


@given(TEXTS)
@example("<s>")
@example(" a")
@example("a")
@example("\n a")
@settings(max_examples=60, deadline=None)
def test_sentencepiece(sentencepiece: LlamaVocabulary, text: str) -> None:
    check(sentencepiece, text)


def test_it_follows_what_asks_for_the_answer(bytewise: LlamaVocabulary) -> None:
    template = Template(None, bos="<s>", eos="</s>", tokenizer=bytewise)
    ids = template.encode([Message("user", "Hello")]) + template.continuation("Wel")
    assert bytewise.detokenize(ids) == "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\nWel"


def test_half_a_character_is_no_reason_to_stop(bytewise: LlamaVocabulary) -> None:
    template = Template(None, bos="<s>", eos="</s>", tokenizer=bytewise)
    assert bytewise.detokenize(template.continuation("\ud83d\ude00 \ud83d")) == "😀 \ufffd"
