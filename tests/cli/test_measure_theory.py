"""`localspec measure theory` as a person uses it."""

from __future__ import annotations

import errno
import json
import os
import pty
import re
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from command import PATIENCE, Outcome, call, command, execute, read_json, surroundings
from localspec.cli import cli
from localspec.measure.theory import best_length, speedup, tokens_per_step

FEW = ("--samples", 5000)
PAGE = Path(__file__).parent.parent.parent / "docs" / "measure.md"


def theory(*options: object) -> Outcome:
    """Call the command with few samples."""
    return call("measure", "theory", *FEW, *options)


@pytest.fixture(scope="module")
def standard() -> dict[str, object]:
    """What the command says when nothing is asked for: a million samples."""
    return call("measure", "theory", "--json").document


def test_the_standard_figures(standard: dict) -> None:
    """The article's rule check, its tokens per step within .01, and its best cases."""
    rule = standard["rule"]
    assert (rule["samples"], standard["seed"], standard["simulated_steps"]) == (1_000_000, 0, 200_000)
    assert [round(share, 3) for share in rule["frequencies"]] == pytest.approx(rule["p"], abs=0.0011)
    assert round(rule["acceptance"], 3) == pytest.approx(0.55, abs=0.0011)
    assert rule["residual"] == pytest.approx([2 / 3, 1 / 3, 0, 0, 0, 0], abs=1e-6)
    assert rule["probability_by_chance"] > 0.01
    assert rule["decided_one_by_one"] == rule["decided_alike"] == 1000
    for cell in standard["tokens_per_step"]:
        assert cell["formula"] == pytest.approx(tokens_per_step(cell["alpha"], cell["k"]), abs=1e-6)
        if cell["k"] in (2, 4, 8) and cell["alpha"] in (0.6, 0.8, 0.9):
            assert cell["simulated"] == pytest.approx(cell["formula"], abs=0.01)
    cases = {case["c"]: round(case["speedup"], 2) for case in standard["best_case"]}
    assert cases == {0.32: 1.41, 0.1: 2.19, 0.05: 2.67, 0.03: 2.98}


def test_every_table_is_printed() -> None:
    """The published figures are there to be read, inside 80 columns, with both charts."""
    outcome = theory()
    assert (outcome.code, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    assert max(map(len, lines)) <= 80
    rows = [line.split() for line in lines]
    for row in (
        ["residual", "0.667", "0.333", "0.000", "0.000", "0.000", "0.000"],
        ["k=1", "1.80x", "1.71x", "1.64x", "1.38x"],
        ["k=2", "2.44x", "2.22x", "2.03x", "1.52x"],
        ["k=4", "3.36x", "2.80x", "2.40x", "1.53x"],
        ["k=8", "4.33x", "3.09x", "2.40x", "1.27x"],
        ["k=16", "4.89x", "2.72x", "1.88x", "0.84x"],
        ["best", "draft", "2:", "1.41x", "5:", "2.19x", "7:", "2.67x", "8:", "2.98x"],
        ["rewrite", "a", "paragraph", "0.787", "3.28", "4.15"],
        ["open", "question", "0.718", "2.87", "3.37"],
        ["reading", "them", "4.8", "ms"],
        ["a", "token", "16", "us"],
        ["flat", "up", "to", "295", "tokens"],
    ):
        assert row in rows
    for alpha, figures in {"0.6": "1.96 2.31 2.47", "0.8": "2.44 3.36 4.33", "0.9": "2.71 4.10 6.13"}.items():
        row = next(row for row in rows if row[:1] == [alpha] and len(row) == 11)
        assert [row[3], row[5], row[7]] == figures.split()
    assert "Tokens per step, by acceptance of one drafted token" in lines
    assert "Speedup with flat verification, a draft step costing 0.1" in lines
    assert "\x1b" not in outcome.out


def test_the_same_bytes_for_the_same_seed() -> None:
    """In every form, and others for another seed."""
    for form in ([], ["--json"], ["--markdown"]):
        once, again = theory("--seed", 5, *form), theory("--seed", 5, *form)
        assert once.out == again.out != theory("--seed", 6, *form).out


def test_on_a_device() -> None:
    """Speedup and best length with its curve beside flat verification, at its draft cost too."""
    values = theory("--profile", "metal", "--json").document
    flat, metal = values["curves"]
    assert (flat["name"], metal["name"], values["draft_cost"]) == ("flat verification", "metal", 0.08)
    costs = {point["width"]: point["cost"] for point in metal["cost_curve"]}
    assert costs[2] == 1.81
    assert {cell["c"] for cell in metal["best"]} == {0.0, 0.05, 0.08, 0.1, 0.3}
    for cell in metal["speedup"]:
        assert cell["speedup"] == pytest.approx(speedup(0.8, cell["k"], cell["c"], costs.__getitem__), abs=1e-6)
    assert {cell["k"] for cell in metal["best"] if cell["alpha"] <= 0.8} == {0}
    assert {least["c"]: least["acceptance"] for least in metal["break_even"]}[0.1] == pytest.approx(0.91)
    printed = theory("--profile", "METAL").out
    assert "best draft length by acceptance and draft step, metal" in printed
    assert "no draft" in printed


def test_another_draft_cost() -> None:
    """A column of its own, and the charts' cost."""
    values = theory("--draft-cost", 0.2, "--json").document
    cells = {(cell["alpha"], cell["c"]): cell for cell in values["curves"][0]["best"]}
    best = best_length(0.9, 0.2)
    assert cells[0.9, 0.2]["k"] == best.length
    assert cells[0.9, 0.2]["speedup"] == pytest.approx(best.speedup, abs=1e-6)
    assert "a draft step costing 0.2" in theory("--draft-cost", 0.2).out


def test_with_the_measured_curve_of_a_model(tiny_llama: Path) -> None:
    """Not before a model has run here; after that with what its passes took, width by width."""
    outcome = theory("--profile", tiny_llama)
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.sentence == (
        f'What passes of {tiny_llama.stem} cost here has not been measured yet; localspec run -m {tiny_llama} "Hello." '
        "does it."
    )
    assert call("run", "-m", tiny_llama, "--temp", 0, "--max-tokens", 2, "Hi").code == 0
    file = Path(os.environ["LOCALSPEC_CACHE_DIR"]) / "costs.json"
    # Under the name that the run has given it, but with times that do not depend on how busy this machine is.
    (name,) = read_json(file.read_text())
    file.write_text(json.dumps({name: {"1": 2.0, "2": 3.0, "5": 4.0, "33": 60.0}}))
    curve = theory("--profile", tiny_llama, "--json").document["curves"][1]
    assert curve["name"] == tiny_llama.stem
    assert curve["source"].startswith("measured on this machine at widths 1, 2, 5, 33; CPU, ")
    costs = {point["width"]: point["cost"] for point in curve["cost_curve"]}
    assert costs == pytest.approx({1: 1.0, 2: 1.5, 3: 10 / 6, 5: 2.0, 9: 6.0, 17: 14.0}, rel=1e-3)


def test_the_fullest_curve_of_a_model_counts(own_folders: Path, tiny_llama: Path) -> None:
    """As a target it was timed at more widths than as a draft, and of two times as a target the later one is meant. What a
    busy machine cut short is no curve."""
    name = tiny_llama.name
    curves = {
        f"{name}/1/old": {"1": 2.0, "2": 3.0, "5": 4.0},
        f"{name}/1/CPU/threads2": {"1": 2.0, "2": 2.4, "5": 4.0},
        f"{name}/1/draft": {"1": 1.0, "2": 5.0},
        f"other-{name}/1/CPU": {"1": 1.0, "2": 7.0, "3": 7.0, "5": 8.0},
    }
    (own_folders / "cache").mkdir()
    file = own_folders / "cache" / "costs.json"
    file.write_text(json.dumps(curves))
    curve = theory("--profile", tiny_llama, "--json").document["curves"][1]
    assert curve["cost_curve"][1] == {"width": 2, "cost": 1.2}
    assert curve["source"] == "measured on this machine at widths 1, 2, 5; CPU, threads2"
    file.write_text(json.dumps({f"{name}/1/CPU": {"1": 2.0}}))
    outcome = theory("--profile", tiny_llama)
    assert (outcome.code, outcome.out) == (1, "")
    assert "has not been measured yet; localspec run -m" in outcome.sentence


@pytest.mark.parametrize("content", ["", "[]", "{", "null", "7"])
def test_a_broken_file_of_costs_is_no_measurement(content: str, own_folders: Path, tiny_llama: Path) -> None:
    """It can be made again."""
    (own_folders / "cache").mkdir()
    (own_folders / "cache" / "costs.json").write_text(content)
    outcome = theory("--profile", tiny_llama)
    assert outcome.code == 1
    assert "has not been measured yet" in outcome.sentence


def test_the_help_fits_a_terminal() -> None:
    """Every option on a line of its own."""
    lines = call("measure", "theory", "-h").out.splitlines()
    assert max(map(len, lines)) <= 80
    options = lines[lines.index("Options:") + 1 :]
    assert all(re.match(r"  (-\w, )?--[\w-]+( [A-Z]+)?  +\S.*[.\]]$", line) for line in options)
    assert len(options) == 10


def test_markdown_has_every_table() -> None:
    """With a cell for every heading."""
    lines = theory("--markdown", "--profile", "cuda").out.splitlines()
    titles = [line for line in lines if line.startswith("### ")]
    assert len(titles) == 10
    width = 0
    for line in lines:
        if line.startswith("|"):
            width = width or line.count("|")
            assert line.count("|") == width
        else:
            width = 0


def test_a_picture(tmp_path: Path) -> None:
    """Beside the report."""
    file = tmp_path / "theory.svg"
    outcome = theory("--plot", file, "--json")
    assert outcome.document["seed"] == 0
    assert file.read_text().startswith("<?xml")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--json", "--markdown"], "A report has one form; choose one of --json and --markdown."),
        (["--samples", 10], "give a number from 1000 to 100000000"),
        (["--seed", -1], "give a number from 0 to 4294967295"),
        (["--draft-cost", "nan"], "give a number from 0 to 10"),
        (["--profile", "abacus"], "abacus is neither a profile (cuda, mlx, cpu, metal) nor a model that is here ("),
        (["--plot", "theory.gif"], "theory.gif has to end in .svg or .png"),
    ],
)
def test_wrong_usage_is_one_sentence(options: list[object], sentence: str) -> None:
    """Before anything is drawn."""
    outcome = call("measure", "theory", *options)
    assert (outcome.code, outcome.out) == (2, "")
    assert sentence in outcome.sentence


def test_an_unknown_measurement() -> None:
    """A near name is proposed."""
    outcome = call("measure", "theorie")
    assert (outcome.code, outcome.sentence) == (2, "There is no command measure theorie; perhaps theory is meant.")


def test_without_matplotlib_only_pictures_are_missing(tmp_path: Path) -> None:
    """In a Python that has none, where nothing else asks for it either."""
    program = (
        "import sys\nsys.modules['matplotlib'] = None\nimport importlib.util\nfound = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *more: None if name == 'matplotlib' else found(name, *more)\n"
        "from localspec.cli import cli\ncli.main(sys.argv[1:])"
    )
    words = ["measure", "theory", *map(str, FEW)]
    for more, code, sentence in (
        ([], 0, ""),
        (["--plot", str(tmp_path / "it.png")], 2, "pip install 'localspec[plots]' gets it."),
    ):
        done = subprocess.run(
            [sys.executable, "-c", program, *words, *more],
            capture_output=True, text=True, env=surroundings(), timeout=PATIENCE, check=False,
        )  # fmt: skip
        assert (done.returncode, sentence in done.stderr) == (code, True)
    assert list(tmp_path.iterdir()) == []


def in_terminal(**environment: str) -> str:
    """What the command writes on a terminal."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    surrounding = surroundings(**{"TERM": "xterm-256color", "PYTHONUTF8": "1"} | environment)
    written = b""
    with subprocess.Popen(
        command("measure", "theory", *FEW, "--quiet"), stdin=theirs, stdout=theirs, stderr=theirs, env=surrounding
    ) as process:
        os.close(theirs)
        try:
            while more := os.read(ours, 1 << 16):
                written += more
        except OSError as error:
            assert error.errno == errno.EIO
        os.close(ours)
        assert process.wait(PATIENCE) == 0
    return written.decode()


@pytest.mark.terminal
def test_colors_on_a_terminal_unless_unwanted(monkeypatch: pytest.MonkeyPatch) -> None:
    """NO_COLOR takes them away and changes nothing else; a dumb terminal gets ASCII too."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    colored, plain, dumb = in_terminal(), in_terminal(NO_COLOR="1"), in_terminal(TERM="dumb")
    assert "\x1b[34m" in colored
    assert re.sub(r"\x1b\[\d+m", "", colored) == plain
    assert "\x1b" not in plain + dumb
    assert "└" in plain
    assert dumb.isascii()


def test_ascii_where_the_locale_has_nothing_else() -> None:
    """Characters a reader's terminal cannot show would be noise."""
    narrow = execute("measure", "theory", *FEW, PYTHONIOENCODING="ascii")
    assert (narrow.code, narrow.err) == (0, "")
    assert narrow.out.isascii()
    assert "└" in execute("measure", "theory", *FEW, PYTHONIOENCODING="utf-8").out


def test_profiles_and_models_are_completed(own_folders: Path) -> None:
    """Devices, and models that are here."""
    folder = own_folders / "data" / "models"
    folder.mkdir(parents=True)
    (folder / "metallic.gguf").touch()
    complete = ShellComplete(cli, {}, "localspec", "_LOCALSPEC_COMPLETE")
    items = complete.get_completions(["measure", "theory", "--profile"], "met")
    assert [item.value for item in items if item.type == "plain"] == ["metal", "metallic"]


def test_every_row_is_defined_on_the_page() -> None:
    """docs/measure.md names every table and every field of the document."""
    page = PAGE.read_text(encoding="utf-8")
    document = theory("--json", "--profile", "cuda").document
    del document["localspec"]

    def names(value: object) -> set[str]:
        if isinstance(value, dict):
            return set(value) | {name for inner in value.values() for name in names(inner)}
        return {name for inner in value for name in names(inner)} if isinstance(value, list) else set()

    assert {name for name in names(document) if f"`{name}`" not in page} == set()
