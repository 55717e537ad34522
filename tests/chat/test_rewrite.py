"""A text rewritten part by part: nothing is lost, whatever the model and the person do meanwhile."""

from __future__ import annotations

import itertools
import json
import tracemalloc
from dataclasses import asdict, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localspec.chat.copy_place import CopyPlace
from localspec.chat.rewrite import Finished, PartDone, PartFailed, Reading, Rewriting, Started, State, Wrote
from localspec.engine.errors import ContextFullError, UserError
from localspec.engine.step import Finish
from localspec.engine.stop import Stop
from rewriting import Answers, estimate, result, rewritten, steps_of

PIECES = st.sampled_from(
    [
        "\n",
        "\n\n",
        "    ",
        "\t",
        "word and word. ",
        "# Heading\n",
        "```\n",
        '"',
        "Here is the text:\n",
        "🎉",
        "שלום",
        "\u3000",
        "def f():\n",
    ]
)
TEXTS = st.lists(PIECES, min_size=1, max_size=120).map("".join)
LONG = "".join(f"# Chapter {number}\n\n" + f"It rained on day {number}. " * 30 + "\n\n" for number in range(12))
"""About 2,500 tokens by the estimate."""
CONTEXT = 1500


@settings(deadline=None)
@given(TEXTS, st.sampled_from([400, 2000]), st.integers(1, 50))
def test_an_instruction_that_changes_nothing_changes_nothing(text, context, size):
    """Blanks, fences, headings and whatever looks like a wrapper are as they were, in one part or in many."""
    assert rewritten(text, Answers(size=size), context) == text


def test_the_events_tell_the_whole_story():
    """Parts, how far it is, and the end: enough for a progress bar and for the text as it grows."""
    answers, readings = Answers(str.upper), []
    events = list(Rewriting(LONG, "Shout.", answers, estimate, CONTEXT, on_reading=readings.append))
    assert result(events) == LONG.upper()
    started, *_, finished = events
    count = len(answers.requests)
    assert count > 3
    assert started == Started(count, 0, len(LONG))
    assert finished == Finished(Finish.STOP, (), len(LONG))
    assert [event.index for event in events if isinstance(event, PartDone)] == list(range(count))
    assert readings == [Reading(part, done, 10) for part in range(count) for done in (0, 10)]


def test_progress_is_the_place_in_the_source():
    """It never falls, follows a copy closely, and ends at the end."""
    source = "".join(f"Line {number} of the text is here.\n" for number in range(60))
    copied = [event for event in Rewriting(source, "x", Answers(), estimate, 8000) if isinstance(event, Wrote)]
    written = list(itertools.accumulate(len(event.text) for event in copied))
    assert all(abs(event.source_position - length) <= 5 for event, length in zip(copied, written, strict=True))
    halved = Answers(lambda text: "".join(line for line in text.splitlines(True) if int(line.split()[1]) % 4 != 1))
    places = [e.source_position for e in Rewriting(source, "x", halved, estimate, 8000) if isinstance(e, Wrote)]
    assert places == sorted(places)
    assert places[-1] == pytest.approx(len(source), abs=80)


def test_a_step_back_in_the_source_is_no_step_back_of_the_progress():
    """A passage that is written twice is found where it stands, and the bar waits."""
    source = "".join(f"line {number}, " for number in range(40))
    place = CopyPlace(source)
    places = []
    for written in (source[:200], source[50:120], source[120:260]):
        place.follow(written)
        places.append(place.reached)
    assert places == [200, 200, 260]


def test_a_part_sees_its_neighbors_but_is_asked_alone():
    """The end of the part before, as it was and as it has become, shows how to go on."""
    answers = Answers(lambda text: text.replace("rained", "snowed"))
    text = rewritten(LONG, answers, CONTEXT)
    assert text == LONG.replace("rained", "snowed")
    first, second, *_, last = answers.requests
    assert len(first.messages) == 1
    assert first.document in first.messages[0].content
    asked, answered, text = (message.content for message in second.messages)
    assert answered.startswith("It snowed on day")
    assert first.document.endswith(answered.replace("snowed", "rained"))
    assert answered.replace("snowed", "rained") in asked
    assert second.document in text
    assert len(last.messages) == 3


def test_a_torn_paragraph_shows_how_it_goes_on():
    """The model knows that the sentence is not at its end; where nothing is torn, that would only confuse small ones."""
    answers = Answers()
    rewritten("It rains " * 600, answers, CONTEXT)
    assert "Behind the text stands, and is not to be written:\nIt rains" in answers.requests[0].messages[-1].content
    assert "Behind" not in answers.requests[-1].messages[-1].content
    whole = Answers()
    rewritten(LONG, whole, CONTEXT)
    assert not any("Behind" in message.content for request in whole.requests for message in request.messages)


def test_a_part_that_failed_is_no_example_for_the_next():
    """The source text, given as an answer, would teach the model to change nothing."""
    answers = Answers(lambda text: "" if "day 0." in text else text.upper())
    list(Rewriting(LONG, "x", answers, estimate, CONTEXT))
    assert [len(request.messages) for request in answers.requests[:3]] == [1, 1, 3]


def fails(write: object, context: int = CONTEXT, **options: object) -> tuple[str, list[PartFailed], Finished]:
    """LONG rewritten by answers of which the third is `write`'s."""
    asked = itertools.count()
    answers = Answers(lambda text: write(text) if next(asked) == 2 else text.upper())
    events = list(Rewriting(LONG, "Shout.", answers, estimate, context, **options))
    return result(events), [event for event in events if isinstance(event, PartFailed)], events[-1]


@pytest.mark.parametrize(
    ("write", "reason"),
    [
        (lambda text: "", "came back empty"),
        (lambda text: "\n\n", "came back empty"),
        (lambda text: "It rained and rained and never stopped, " * 400, "repeats itself"),
    ],
)
def test_a_part_that_fails_keeps_its_text(write, reason):
    """The others are rewritten all the same, and the failure is told."""
    text, (failed,), finished = fails(write)
    assert (failed.index, failed.reason, finished.failed) == (2, reason, (2,))
    assert text == LONG.upper().replace(failed.text.upper(), failed.text)
    assert failed.text in LONG
    assert (finished.finish, finished.source_position) == (Finish.STOP, len(LONG))


def test_a_part_whose_text_cannot_be_used_keeps_its_own():
    """For example one with characters that the file's encoding does not have."""
    _, (failed,), _ = fails(lambda text: "→", objection=lambda text: "has an arrow" if "→" in text else None)
    assert (failed.index, failed.reason) == (2, "has an arrow")


def test_a_runaway_is_stopped_at_once():
    """Nobody waits for an answer that will never be of use, and the engine is told."""
    answers, held = Answers(lambda text: "and so on and " * 5000), []

    def ask(request, on_prompt):
        # An iterator that nobody holds would be closed by itself.
        held.append(answers(request, on_prompt))
        return held[-1]

    events = list(Rewriting("A short text.", "x", ask, estimate, 100_000))
    assert result(events) == "A short text."
    assert sum(len(event.text) for event in events if isinstance(event, Wrote)) < 2000
    assert answers.closed == 1


def test_a_source_that_repeats_itself_may_be_copied():
    """A table with a hundred equal lines is no runaway."""
    table = "| nothing | nothing | nothing | nothing |\n" * 100
    assert rewritten(table, Answers(), 20_000) == table


@pytest.mark.parametrize("finish", [Finish.LENGTH, Finish.CONTEXT])
def test_an_answer_that_was_cut_off_is_of_no_use(finish):
    """Half a text would be a loss."""
    events = list(Rewriting("One. Two.", "x", lambda request, _: steps_of("One.", finish), estimate, 2000))
    assert [event.reason for event in events if isinstance(event, PartFailed)] == ["did not come to an end"]
    assert result(events) == "One. Two."


def test_a_part_that_does_not_fit_is_a_failed_one():
    """An estimate of tokens may be wrong; the other parts need not suffer for it."""

    def ask(request, on_prompt):
        if "day 5" in request.document:
            raise ContextFullError("too long")
        return steps_of(request.document.upper())

    events = list(Rewriting(LONG, "x", ask, estimate, CONTEXT))
    (failed,) = (event for event in events if isinstance(event, PartFailed))
    assert failed.reason == "does not fit into the context"
    assert result(events) == LONG.upper().replace(failed.text.upper(), failed.text)


@pytest.mark.parametrize("part", [0, 2])
def test_what_was_made_before_a_stop_is_kept_and_gone_on_with(part):
    """Not one word is written twice: even the part that was under way goes on behind its last word."""
    answers = Answers(str.upper)
    answers.interrupt_at = part
    rewriting = Rewriting(LONG, "Shout.", answers, estimate, CONTEXT)
    events = list(rewriting)
    assert events[-1] == Finished(Finish.INTERRUPTED, (), rewriting.state.source_position)
    done = result(events)
    assert done == LONG[: rewriting.state.source_position].upper()
    state = State(**{**(values := json.loads(json.dumps(asdict(rewriting.state)))), "failed": tuple(values["failed"])})
    assert state.part == part
    assert state.begun
    more = Answers(str.upper)
    rest = list(Rewriting(LONG, "Shout.", more, estimate, CONTEXT, state=state))
    assert rest[0].first == part
    assert more.requests[0].begun == state.begun
    assert done + result(rest) == LONG.upper()
    assert len(more.requests) == len(Answers(str.upper).requests) + rest[0].parts - part


def test_failed_parts_are_remembered_over_a_stop():
    """The report at the end is about the whole text."""
    answers = Answers(lambda text: "" if "day 0." in text else text)
    answers.interrupt_at = 2
    first = Rewriting(LONG, "x", answers, estimate, CONTEXT)
    list(first)
    *_, finished = Rewriting(LONG, "x", Answers(), estimate, CONTEXT, state=first.state)
    assert finished.failed == (0,)


def test_a_stop_between_two_parts_begins_no_further_one():
    """Another thread may ask for it at any time."""
    answers = Answers()
    stop = Stop()
    for event in Rewriting(LONG, "x", answers, estimate, CONTEXT, stop=stop):
        if isinstance(event, PartDone):
            stop.ask()
    assert isinstance(event, Finished)
    assert event.finish is Finish.INTERRUPTED
    assert len(answers.requests) == 1


def test_a_state_is_of_one_text_and_one_instruction():
    """Two halves that do not belong together are never joined."""
    state = Rewriting("a", "x", Answers(), estimate, 2000).state
    for source, instruction in [("b", "x"), ("a", "y")]:
        with pytest.raises(ValueError, match="another text"):
            Rewriting(source, instruction, Answers(), estimate, 2000, state=replace(state, part=1))


def test_blanks_are_not_sent_to_a_model():
    """An empty file is left as it is."""
    for text in ("", "\n", " \n\t\n"):
        answers = Answers()
        assert rewritten(text, answers) == text
        assert answers.requests == []


@pytest.mark.parametrize(("instruction", "context"), [(" ", 2000), ("x", 200)])
def test_what_cannot_work_is_refused(instruction, context):
    """Before anything is asked."""
    with pytest.raises(UserError, match=r"^(The instruction is empty; say|A context of 200 tokens is too short)"):
        list(Rewriting("a", instruction, Answers(), estimate, context))


def test_an_answer_is_no_longer_than_makes_sense():
    """Three times the part, what the context has room for, or what a person allows."""
    answers = Answers()
    rewritten("word " * 100, answers, 2000)
    assert answers.requests[0].max_tokens < 2000 - 126
    list(Rewriting("word " * 100, "x", answers, estimate, 2000, max_tokens=7))
    assert answers.requests[1].max_tokens == 7


def test_sixty_thousand_words_take_constant_memory():
    """However long the text: its parts are asked for one by one, and nothing is kept of those that are done."""

    def peak(words: int) -> int:
        source = "".join(f"Day {number} it rained and the river rose a little.\n\n" for number in range(words // 10))

        def ask(request, on_prompt):
            # Long steps: the memory, not the time of a hundred thousand small ones, is looked at.
            return steps_of(request.document, size=2000)

        tracemalloc.start()
        failed = [event for event in Rewriting(source, "x", ask, estimate, 8000) if isinstance(event, PartFailed)]
        size = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert failed == []
        return size

    assert peak(60_000) < peak(10_000) + 100_000


def test_what_was_good_of_a_part_that_failed_is_told():
    """Up to where it began to repeat itself, with the blanks before it; nothing of a text that cannot be used."""
    source = "  The roof leaked. The roof is new now.\n"
    looped = Answers(lambda text: "The roof leaks. " + "It is said so in the book. " * 90)
    (failed,) = (e for e in Rewriting(source, "x", looped, estimate, 2000) if isinstance(e, PartFailed))
    assert (failed.text, failed.begun) == (source, "  The roof leaks.")
    assert 0 < failed.reached <= len(source)
    (cut,) = (
        e
        for e in Rewriting(source, "x", lambda r, _: steps_of("The roof", Finish.LENGTH), estimate, 2000)
        if isinstance(e, PartFailed)
    )
    assert cut.begun == "  The roof"
    _, (refused,), _ = fails(lambda text: "→", objection=lambda text: "has an arrow" if "→" in text else None)
    assert refused.begun == ""
