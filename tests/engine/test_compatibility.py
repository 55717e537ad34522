"""Pairs that speak the same tokens, and pairs that do not: the first difference is named."""

from __future__ import annotations

from pathlib import Path

import pytest
from recorded import open_engine

import tiny
import tiny_bad
from localspec.engine.compatibility import common_vocabulary
from localspec.engine.errors import ModelError
from localspec.engine.llama import Model


class Words:
    """A vocabulary that is a list."""

    def __init__(self, *texts: str, kind: int = 2) -> None:
        self.texts, self.kind, self.size = texts, kind, len(texts)

    def token_text(self, token: int) -> str:
        return self.texts[token]


def refused(target: Words, draft: Words) -> str:
    """The one sentence."""
    with pytest.raises(ModelError) as error:
        common_vocabulary(target, draft)
    message = str(error.value)
    assert message.count(". ") == 0 and message.endswith("; choose a draft of the same family.")
    return message


def test_twins() -> None:
    assert common_vocabulary(Words("a", "b", "c"), Words("a", "b", "c")) == 3


@pytest.mark.parametrize(
    "padding",
    [
        "[PAD151936]",
        "<pad>",
        "<|pad|>",
        "<unused12>",
        "<|reserved_special_token_5|>",
        "<|extra_id_0|>",
        "<dummy00001>",
        "<image_soft_token>",
        "",
    ],
)
def test_padding_is_no_difference(padding: str) -> None:
    """At the end of either, as model makers write it."""
    short, long = Words("a", "b"), Words("a", "b", padding, padding)
    assert common_vocabulary(short, long) == common_vocabulary(long, short) == 2


def test_the_first_difference_is_named() -> None:
    """Its id and both texts, whichever comes first."""
    message = refused(Words("a", "b", "c", "d"), Words("a", "x", "c", "y"))
    assert "token 1 is 'b' in the target and 'x' in the draft" in message


def test_a_difference_of_the_last_common_token() -> None:
    assert "token 2 is 'c' in the target and 'd' in the draft" in refused(
        Words("a", "b", "c", "[PAD]"), Words("a", "b", "d")
    )


def test_more_real_tokens_are_a_difference() -> None:
    """Which of the two has them, how many more, and the first of them."""
    short, long = Words("a"), Words("a", "[PAD1]", "new", "more")
    assert "The draft model's vocabulary has 3 more tokens, such as 2, 'new'" in refused(short, long)
    assert "The target model's vocabulary has 3 more tokens, such as 2, 'new'" in refused(long, short)


def test_another_kind_of_tokenizer() -> None:
    assert "splits text in another way" in refused(Words("a", kind=1), Words("a", kind=2))


def test_real_files(tiny_llama: Path, tiny_gemma: Path, tmp_path: Path) -> None:
    """Of different architectures with one vocabulary; with two tokens exchanged; with padding."""
    with Model(tiny_llama) as target, Model(tiny_gemma) as other:
        assert common_vocabulary(target.vocabulary, other.vocabulary) == tiny.VOCABULARY_SIZE
    swapped = tiny_bad.other_vocabulary(tmp_path / "swapped.gguf", swap=(97, 98))
    with pytest.raises(ModelError, match="token 97 is 'a' in the target and 'b' in the draft"):
        open_engine(tiny_llama, swapped)
    longer = tiny_bad.other_vocabulary(tmp_path / "longer.gguf", swap=None, padding=3)
    with Model(tiny_llama) as target, Model(longer) as padded:
        assert common_vocabulary(target.vocabulary, padded.vocabulary) == tiny.VOCABULARY_SIZE
        assert common_vocabulary(padded.vocabulary, target.vocabulary) == tiny.VOCABULARY_SIZE
