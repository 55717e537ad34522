"""`localspec rewrite` with real weights: a text of 400 words and an instruction that leaves most of it as it is."""

from __future__ import annotations

from difflib import SequenceMatcher
from pathlib import Path

import pytest
from test_run_answer import check_counts

from command import call, read_json
from localspec.chat.rewrite_prompt import rewrite_messages

pytestmark = pytest.mark.real

TEXT = """\
The harbuor at Kelby was built in the year of the great storm, when the fishermen desided that they had lost enough \
boats. Every family in the village gave a month of work, and the stones were brougt down from the quarry on sledges \
because the road was too steep for carts. My grandfather, who was eleven at the time, rememberd the noise of the \
hammers and the smell of the tar that was boiled in open kettles along the beach.

When the wall was finished it did not look like much. It was barly longer than the church, and at high tide the waves \
still came over the top of it. But in the first wintir it saved nine boats, and after that nobody complaned about the \
work. The council put up a small lighthuose with a lamp that burned oil, and the widow Marsden was paid two shillings \
a week to keep it burning through the night.

The trouble began when the railwey came. Suddenley the herring could be sold in the city on the same day, and boats \
from other places wanted to land their catch at Kelby as well. There was not enough room for them. Some of the older \
men wanted to close the harbour to strangers, while the younger ones beleived that the strangers would bring money. \
They argueed about it through the whole summer, in the tavern and on the quay and even in church.

In the end it was the schoolteecher who found an answer that everybody could acept. She suggested that the strangers \
should pay for every basket they landed, and that the money should be used to build a second wall. It took four years, \
and it was twice as long as the first one. On the day it was opened a brass band played, the children were given \
lemonade, and the oldest fishermen in the village, who had carried stones for the first wall, laid the last stone of \
the second.

Today there are only three boats left, and most of the people who walk along the walls in the evening are visitors. \
They take photografs of the lighthouse, which was painted red again last spring, and they read the names that are \
carvd into the stone beside the door. My grandfather's name is among them, quite far down and a little crooked, \
becuase he carved it himself when nobody was looking.
"""
OPTIONS = ("--drafter", "lookup", "--ctx", 4096)
INSTRUCTION = "Fix the spelling."


def likeness(text: str) -> float:
    """The share of the words that the text has in common with its source."""
    return SequenceMatcher(None, TEXT.split(), text.split(), autojunk=False).ratio()


@pytest.fixture(scope="module")
def values(smollm2: Path, tmp_path_factory: pytest.TempPathFactory) -> dict:
    """The file form, with its figures."""
    path = tmp_path_factory.mktemp("kelby") / "kelby.txt"
    path.write_text(TEXT)
    outcome = call("rewrite", "-m", smollm2, path, "-i", INSTRUCTION, "--json", *OPTIONS)
    assert (outcome.code, outcome.err) == (0, "")
    (values,) = read_json(outcome.out)["files"]
    return values


def test_a_near_copy_is_written_several_tokens_at_a_time(values):
    """The answer copies its input, which is what lookup is for."""
    assert len(TEXT.split()) > 390
    assert (values["finish_reason"], values["parts"], values["failed"], values["changed"]) == ("stop", 1, [], True)
    assert likeness(values["text"]) > 0.8
    assert values["tokens_per_step"] >= 5


def test_only_the_text_comes_back(values):
    """No opening words, no frame, no second newline at the end."""
    assert values["text"].startswith("The harb")
    assert values["text"].endswith("looking.\n")
    assert "---" not in values["text"]
    assert INSTRUCTION not in values["text"]


def test_a_pipe_gives_the_same_text(values, smollm2):
    """On stdout and with nothing on stderr."""
    outcome = call("rewrite", "-m", smollm2, "-i", INSTRUCTION, *OPTIONS, stdin=TEXT.encode())
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out == values["text"]


def test_the_figures_are_those_of_run(values, smollm2):
    """The same words asked with `localspec run` give the same answer. Its steps are other ones: there the drafter does not
    know from the beginning that the answer is the document again."""
    (message,) = rewrite_messages(INSTRUCTION, TEXT.rstrip())
    run = call("run", "-m", smollm2, "--json", "--temp", 0, *OPTIONS, "--", message.content).document
    for name in ("prompt_tokens", "tokens", "finish_reason", "model", "draft", "verification"):
        assert values[name] == run[name], name
    check_counts(values)
    assert f"{run['text'].strip()}\n" == values["text"]
