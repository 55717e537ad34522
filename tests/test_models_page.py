"""docs/models.md says what the code does."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from command import ROOT, call
from localspec.hub.catalog import load_catalog

PAGE = ROOT / "docs" / "models.md"


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_models_table", ROOT / "docs" / "make_models_table.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_table_is_what_the_code_gives(maker: ModuleType) -> None:
    """After a change of the catalog or of the fit: python docs/make_models_table.py."""
    text = PAGE.read_text("utf-8")
    assert maker.page(text) == text
    assert text.count("| llama-3.3-70b |") == 2


def test_the_catalog_on_the_page_is_one(tmp_path: Path) -> None:
    """What a person copies from it works, also without what may be left out."""
    (example,) = re.findall(r"```toml\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    file = tmp_path / "catalog.toml"
    file.write_text(example, "utf-8")
    assert load_catalog(file).pair("my-9b").draft.name == "qwen3-0.6b"
    start, end = example.index("license"), example.index("files")
    file.write_text(example[:start] + example[end:], "utf-8")
    assert load_catalog(file).model("my-9b").license == "unknown"


def test_the_commands_on_the_page_are_commands() -> None:
    """Each has a help of its own."""
    for name in set(re.findall(r"^    localspec ([a-z]+)", PAGE.read_text("utf-8"), re.MULTILINE)):
        assert call(name, "--help").code == 0
