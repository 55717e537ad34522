from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from localspec.hub.ranges import UnusableAnswerError, first_byte, new_bytes, range_header

DATA = bytes(range(256)) * 4
SIZE = len(DATA)

calmly = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def test_ranges_are_written_as_http_has_them():
    """From a byte on, or between two; the last is counted in."""
    assert range_header(7) == "bytes=7-"
    assert range_header(7, 10) == "bytes=7-9"


@calmly
@given(offset=st.integers(0, SIZE - 1), earlier=st.integers(0, SIZE), told=st.booleans())
def test_an_answer_that_begins_early_enough_can_be_used(offset, earlier, told):
    """From where it was asked for, or before."""
    first = max(0, offset - earlier)
    total = SIZE if told else "*"
    assert first_byte(206, f"bytes {first}-{SIZE - 1}/{total}", offset, SIZE) == first
    assert first_byte(200, None, offset, SIZE) == 0


@calmly
@given(offset=st.integers(0, SIZE - 2), gap=st.integers(1, SIZE))
def test_an_answer_that_would_leave_a_gap_is_refused(offset, gap):
    """Bytes are never put behind a hole."""
    with pytest.raises(UnusableAnswerError):
        first_byte(206, f"bytes {offset + gap}-{SIZE + gap}/{SIZE}", offset, SIZE)


@pytest.mark.parametrize("header", [None, "", "bytes */1024", "bytes 5-/1024", "chunks 0-1/1024", "bytes 0-9/1025"])
def test_an_answer_that_does_not_say_what_it_is_is_refused(header):
    """Also one for a file of another size."""
    with pytest.raises(UnusableAnswerError):
        first_byte(206, header, 5, SIZE)


_ANSWERS = st.lists(st.tuples(st.floats(0, 1), st.lists(st.integers(1, 300), max_size=4)), max_size=6)


@calmly
@given(answers=_ANSWERS)
def test_whatever_pieces_come_from_wherever_they_begin_the_file_is_the_file(answers):
    """Answers that begin anywhere before the end of what is here, cut into any pieces and broken off anywhere."""
    here = b""
    for share, sizes in [*answers, (0.5, [SIZE])]:
        position = int(share * len(here))
        for size in sizes:
            chunk = DATA[position : position + size]
            here += new_bytes(chunk, position, len(here), SIZE)
            position += len(chunk)
            assert here == DATA[: len(here)]
    assert here == DATA


@calmly
@given(offset=st.integers(0, SIZE), position=st.integers(0, SIZE), length=st.integers(0, 2 * SIZE))
def test_a_piece_is_put_in_its_place_or_refused(offset, position, length):
    """Nothing behind the end, nothing behind a hole."""
    chunk = (DATA * 3)[position : position + length]
    if position > offset or position + length > SIZE:
        with pytest.raises(UnusableAnswerError):
            new_bytes(chunk, position, offset, SIZE)
    else:
        assert new_bytes(chunk, position, offset, SIZE) == DATA[offset : position + length]
