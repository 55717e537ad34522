"""Instructions by name: ours, and a person's own."""

from __future__ import annotations

import pytest

from localspec.chat.presets import find_preset, own_presets, presets
from localspec.engine.errors import UserError


def test_all_that_are_promised_are_there():
    """Under names that can be read aloud."""
    shown = [preset.shown for preset in presets()]
    assert shown == [
        "fix grammar",
        "shorten",
        "simplify",
        "formal",
        "translate:LANG",
        "comment code",
        "plain language",
    ]


@pytest.mark.parametrize("name", ["fix grammar", "Fix-Grammar", "fixgrammar", " fix_grammar "])
def test_a_name_can_be_written_as_it_comes(name):
    """Blanks, hyphens and capitals are no reason to fail."""
    assert find_preset(name, presets()).startswith("Fix the spelling")


def test_what_is_behind_the_colon_goes_into_the_instruction():
    """Any language will do."""
    assert (
        find_preset("translate: Low German ", presets())
        == "Translate it into Low German. Keep the formatting as it is."
    )


def test_a_persons_own_come_last_and_win():
    """A preset can be added, or put in the place of one of ours, with {} for what is behind the colon."""
    own = own_presets({"presets": {"boss": "Make it fit for my boss.", "Shorten": "Cut it.", "tone": "Make it {}."}})
    known = presets(own)
    assert [preset.shown for preset in known][-2:] == ["boss", "tone:TEXT"]
    assert find_preset("shorten", known) == "Cut it."
    assert find_preset("tone:cheerful", known) == "Make it cheerful."


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("translate", "The preset translate needs more; write translate:LANG, as in translate:French."),
        ("shorten:more", "The preset shorten takes nothing behind a colon; leave out :more."),
        ("shorter", "There is no preset 'shorter'; perhaps shorten is meant."),
        ("xyz", "There is no preset 'xyz'; there are fix-grammar, shorten,"),
    ],
)
def test_what_is_wrong_with_a_name_is_said(name, sentence):
    """In one sentence with the remedy."""
    with pytest.raises(UserError) as error:
        find_preset(name, presets())
    assert str(error.value).startswith(sentence)
