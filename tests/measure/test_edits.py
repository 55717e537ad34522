"""The pairs of texts and their edited forms: enough of them, of many kinds, in two halves that share no text."""

from __future__ import annotations

from importlib.resources import files

import pytest

from edit_words import WordVocabulary
from localspec.measure.edits import HALVES, EditPair, Half, edit_pairs

_MOST_BYTES = 600_000


@pytest.fixture(scope="module")
def halves() -> dict[Half, list[EditPair]]:
    """All pairs."""
    return {half: edit_pairs(half) for half in HALVES}


def lines_of(pairs: list[EditPair]) -> set[str]:
    """Every line of their texts that says something."""
    texts = [text for pair in pairs for text in (pair.source, pair.target)]
    return {line.strip() for text in texts for line in text.splitlines() if len(line.strip()) > 40}


def test_there_are_enough_pairs_of_every_class_in_each_half(halves: dict[Half, list[EditPair]]) -> None:
    """At least 40 a half, and 12 classes with at least two pairs in both."""
    classes = {half: [pair.edit_class for pair in pairs] for half, pairs in halves.items()}
    for names in classes.values():
        assert len(names) >= 40
        assert min(names.count(name) for name in names) >= 2
        assert len(set(names)) >= 12
    assert set(classes["design"]) == set(classes["held-out"])


def test_no_text_is_in_both_halves(halves: dict[Half, list[EditPair]]) -> None:
    """Not by its name, not by one line of it."""
    documents = {half: {pair.document for pair in pairs} for half, pairs in halves.items()}
    assert not documents["design"] & documents["held-out"]
    assert len(lines_of(halves["design"]) & lines_of(halves["held-out"])) == 0


@pytest.mark.parametrize("half", HALVES)
def test_every_pair_is_an_edit(half: Half, halves: dict[Half, list[EditPair]]) -> None:
    """It has a name of its own and an instruction, and changes something unless a copy is asked for."""
    pairs = halves[half]
    assert len({pair.name for pair in pairs}) == len(pairs)
    for pair in pairs:
        assert pair.instruction.endswith((".", "!", "?")), pair.name
        assert (pair.source == pair.target) is (pair.edit_class == "verbatim"), pair.name
        assert pair.source.strip() == pair.source, pair.name
        assert pair.target.strip() == pair.target, pair.name


@pytest.mark.parametrize("half", HALVES)
def test_texts_are_as_long_as_what_people_paste(half: Half, halves: dict[Half, list[EditPair]]) -> None:
    """From a short mail to several pages, most of them a page."""
    words = WordVocabulary()
    lengths = sorted(len(words.tokenize(pair.source, special=False)) for pair in halves[half])
    assert lengths[0] >= 80
    assert lengths[-1] <= 2000
    assert 200 <= lengths[len(lengths) // 2] <= 700


def test_the_files_are_small() -> None:
    """They come with the program."""
    folder = files("localspec.measure.edits")
    sizes = [len(entry.read_bytes()) for entry in folder.iterdir() if entry.name.endswith(".jsonl")]
    assert len(sizes) == len(HALVES)
    assert sum(sizes) < _MOST_BYTES
