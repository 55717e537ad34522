"""What has been written of a rewriting, by its events."""

from __future__ import annotations

from localspec.chat.rewrite_events import Finished, PartDone, PartFailed, Reading, Started, State, Wrote
from localspec.engine.step import Finish
from localspec.tui.rewriting import Reached, Refused, Written, joined
from scripted import step

SOURCE = "One sentense here. Two sentenses there. Three more of them at the end."


def reached(event: Started | PartDone | PartFailed | Finished, **state: object) -> Reached:
    """An event, and the state after it."""
    position = getattr(event, "source_position", 0)
    values = {"part": 0, "source_position": 0 if isinstance(event, Started | Finished) else position, **state}
    return Reached(event, State("digest", **values))


def test_the_text_grows_and_ends() -> None:
    """Each event says what it adds."""
    written = Written(SOURCE)
    assert written.take(reached(Started(1, 0, len(SOURCE)))) == ""
    assert written.take(Wrote("One sentence ", step("One sentence "), 13)) == "One sentence "
    assert written.take(reached(PartDone(0, "One sentence here.", len(SOURCE)))) == "here."
    assert written.take(reached(Finished(Finish.STOP, (), len(SOURCE)))) == ""
    assert (written.text, written.whole, written.over) == ("One sentence here.", "One sentence here.", True)


def test_a_part_that_failed_takes_back_what_was_written_of_it() -> None:
    """It keeps its source text, and a sentence says why."""
    written = Written(SOURCE)
    written.take(reached(Started(2, 0, len(SOURCE))))
    written.take(Wrote("nonsense ", step("nonsense "), 5))
    assert written.take(reached(PartFailed(0, "One sentense here. ", 19, "repeats itself"))) is None
    assert written.text == "One sentense here. "
    assert written.failures == ["Part 1 of 2 repeats itself, so it keeps its text."]


def test_a_stopped_text_goes_on_with_its_source() -> None:
    """From the place that was reached, so that nothing of the source is missing."""
    written = Written(SOURCE)
    written.take(Wrote("One sentence here. Two sentences ", step(""), 33))
    written.take(reached(Finished(Finish.INTERRUPTED, (), 0)))
    assert written.whole == "One sentence here. Two sentences there. Three more of them at the end."
    assert Written(SOURCE).whole == SOURCE


def test_reading_and_refusing_are_remembered() -> None:
    """To be shown."""
    written = Written(SOURCE)
    written.take(Reading(0, 5, 10))
    assert written.reading == Reading(0, 5, 10)
    written.take(Reading(0, 10, 10))
    assert written.reading is None
    written.take(Refused("No model."))
    assert written.over
    assert written.refused == "No model."


def test_a_stopped_text_and_its_source_are_joined_where_both_have_come_to() -> None:
    """Also when the guess is off, when words were left out, and in the middle of a word."""
    source = "alpha beta gamma delta epsilon zeta eta theta iota kappa"
    assert joined(source, "ALPHA beta gamma delta", 40) == f"ALPHA{source[5:]}"
    assert joined(source, "alpha gamma delta", 5) == "alpha gamma delta epsilon zeta eta theta iota kappa"
    assert joined(source, "alpha beta gam", 9) == source
    assert joined(source, "alpha beta games", 9) == source.replace("gamma", "games")
    assert joined(source, "!!!", 6) == "!!!beta gamma delta epsilon zeta eta theta iota kappa"
