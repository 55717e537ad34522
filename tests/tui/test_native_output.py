"""Native output goes to a file while the chat is on the screen."""

import os
import sys
from pathlib import Path

import pytest

from localspec.tui.native_output import native_output_to


def test_native_text_goes_to_the_file_and_pythons_own_to_the_terminal(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "logs" / "chat.log"
    before = sys.__stdout__, sys.__stderr__
    with native_output_to(log):
        os.write(1, b"native 1\n")
        os.write(2, b"native 2\n")
        assert sys.__stdout__ and sys.__stderr__
        print("screen 1", file=sys.__stdout__)
        print("screen 2", file=sys.__stderr__)
    assert (sys.__stdout__, sys.__stderr__) == before
    os.write(1, b"after 1\n")
    os.write(2, b"after 2\n")
    assert capfd.readouterr() == ("screen 1\nafter 1\n", "screen 2\nafter 2\n")
    assert log.read_text() == "native 1\nnative 2\n"


def test_everything_is_put_back_after_an_error(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    open_before = len(list(Path("/dev/fd").iterdir()))
    with pytest.raises(ZeroDivisionError), native_output_to(tmp_path / "log"):
        raise ZeroDivisionError
    os.write(2, b"here\n")
    assert capfd.readouterr().err == "here\n"
    assert len(list(Path("/dev/fd").iterdir())) == open_before


def test_a_log_that_cannot_be_written_does_not_matter(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    with native_output_to(tmp_path / "file" / "log"):
        os.write(2, b"lost\n")
    assert capfd.readouterr().err == ""
