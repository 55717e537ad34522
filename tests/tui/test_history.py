"""What was sent before comes back."""

import subprocess
import sys
from pathlib import Path

from localspec.tui.history import MOST_ENTRIES, History


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


def texts(history: History) -> list[str]:
    """All entries, oldest first."""
    found: list[str] = []
    while (text := history.older("")) is not None:
        found.insert(0, text)
    return found


def test_a_file_keeps_it_for_the_next_start_and_for_nobody_else(tmp_path: Path) -> None:
    file = tmp_path / "data" / "history.jsonl"
    history = History(file)
    history.add("one")
    history.add("two\nlines \ud800 ü")
    history.add("two\nlines \ud800 ü")
    assert texts(History(file)) == ["one", "two\nlines \ud800 ü"]
    assert file.stat().st_mode & 0o777 == 0o600


def test_what_two_apps_add_is_all_kept(tmp_path: Path) -> None:
    file = tmp_path / "history.jsonl"
    script = "import sys, pathlib; from localspec.tui.history import History; h = History(pathlib.Path(sys.argv[1]))\n"
    script += "for number in range(100): h.add(f'{sys.argv[2]} {number} ' + 'x' * 9000)"
    apps = [subprocess.Popen([sys.executable, "-c", script, str(file), name]) for name in ("a", "b")]
    assert [app.wait(60) for app in apps] == [0, 0]
    kept = texts(History(file))
    for name in ("a", "b"):
        assert [int(text.split()[1]) for text in kept if text.startswith(name)] == list(range(100))


def test_a_file_that_has_grown_too_long_is_cut_to_the_newest(tmp_path: Path) -> None:
    file = tmp_path / "history.jsonl"
    file.write_text("".join(f'"{number}"\n' for number in range(2 * MOST_ENTRIES)))
    file.chmod(0o600)
    kept = texts(History(file))
    assert kept == [str(number) for number in range(MOST_ENTRIES, 2 * MOST_ENTRIES)]
    assert len(file.read_text().splitlines()) == MOST_ENTRIES
    assert file.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [file]


def test_an_app_that_was_there_before_the_cut_goes_on_in_the_new_file(tmp_path: Path) -> None:
    file = tmp_path / "history.jsonl"
    before = History(file)
    before.add("x")
    file.write_text("".join(f'"{number}"\n' for number in range(2 * MOST_ENTRIES)))
    texts(History(file))
    before.add("after the cut")
    assert texts(History(file))[-2:] == [str(2 * MOST_ENTRIES - 1), "after the cut"]


def test_damaged_lines_are_skipped_and_a_torn_one_costs_only_itself(tmp_path: Path) -> None:
    file = tmp_path / "history.jsonl"
    file.write_bytes(b'"good"\n\xff\xfe\n{"not": "text"}\n' + b"[" * 5000 + b'\n""\n\n"torn')
    History(file).add("new")
    assert texts(History(file)) == ["good", "new"]


def test_without_a_usable_file_it_lasts_until_the_end(tmp_path: Path) -> None:
    (tmp_path / "history.jsonl").mkdir()
    history = History(tmp_path / "history.jsonl")
    history.add("one")
    assert history.older("") == "one"
