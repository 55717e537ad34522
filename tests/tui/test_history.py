"""What was sent before comes back."""

from localspec.tui.history import History


def test_goes_back_and_forth_and_keeps_what_was_being_written() -> None:
    history = History()
    history.add("one")
    history.add("two")
    assert history.older("unsent") == "two"
    assert history.older("two") == "one"
    assert history.older("one") is None
    assert history.newer() == "two"
    assert history.newer() == "unsent"
    assert history.newer() is None


def test_the_same_text_twice_is_one_entry() -> None:
    history = History()
    history.add("one")
    history.add("one")
    assert history.older("") == "one"
    assert history.older("one") is None


def test_sending_goes_back_to_the_end() -> None:
    history = History()
    history.add("one")
    assert history.older("") == "one"
    history.add("two")
    assert history.newer() is None
    assert history.older("") == "two"
