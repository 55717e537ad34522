"""The house rules, checked by the tools that know them."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = sorted([*ROOT.glob("localspec/**/*.py"), *ROOT.glob("tests/**/*.py")])
MOST_LINES, MOST_FUNCTION_LINES = 400, 50

TOOLS = {
    "ruff check": ["ruff", "check", "."],
    "ruff format": ["ruff", "format", "--check", "--diff", "."],
    "mypy": ["mypy", "-p", "localspec"],
    "import-linter": ["importlinter.cli", "lint"],
}


@pytest.mark.parametrize("tool", TOOLS)
def test_tool_is_content(tool: str) -> None:
    """Style, types and import contracts hold."""
    module, *arguments = TOOLS[tool]
    command = [sys.executable, "-m", module, *arguments]
    if module == "importlinter.cli":
        command = [str(Path(sys.executable).with_name("lint-imports"))]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


def test_files_are_small() -> None:
    """A reader can hold a file in the head."""
    long = {str(path.relative_to(ROOT)): lines for path in SOURCES if (lines := _lines(path)) > MOST_LINES}
    assert long == {}


def test_functions_are_small() -> None:
    """A function does one thing."""
    long = {}
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > MOST_FUNCTION_LINES:
                    long[f"{path.relative_to(ROOT)}:{node.name}"] = lines
    assert long == {}


def _lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())
