"""From settings to what is loaded: names of the catalog, and a pair by its one name."""

from __future__ import annotations

from pathlib import Path

import pytest

from localspec.engine.errors import UserError
from localspec.launch import engine_settings
from localspec.settings import Settings, find_folders


@pytest.fixture
def shelf(own_folders: Path) -> Path:
    """Both models of a pair."""
    folder = own_folders / "data" / "models"
    folder.mkdir(parents=True)
    for name in ("Qwen3-8B-Q4_K_M.gguf", "Qwen3-0.6B-Q8_0.gguf", "other.gguf"):
        (folder / name).write_bytes(b"x")
    return folder


def chosen(**settings: str) -> tuple[str, str | None]:
    found = engine_settings(Settings(**settings), find_folders())  # type: ignore[arg-type]
    return found.target.name, found.draft.name if found.draft else None


def test_the_name_of_a_pair_loads_both(shelf: Path) -> None:
    assert chosen(model="qwen3-8b") == ("Qwen3-8B-Q4_K_M.gguf", "Qwen3-0.6B-Q8_0.gguf")
    assert chosen(model="Qwen3-8B", drafter="draft") == ("Qwen3-8B-Q4_K_M.gguf", "Qwen3-0.6B-Q8_0.gguf")


def test_who_says_otherwise_is_obeyed(shelf: Path) -> None:
    """Another draft model, none, or a drafter that needs none; and a file's own name is just that file."""
    assert chosen(model="qwen3-8b", draft="other") == ("Qwen3-8B-Q4_K_M.gguf", "other.gguf")
    for settings in ({"draft": "none"}, {"drafter": "lookup"}, {"drafter": "none"}):
        assert chosen(model="qwen3-8b", **settings) == ("Qwen3-8B-Q4_K_M.gguf", None)
    assert chosen(model="Qwen3-8B-Q4_K_M") == ("Qwen3-8B-Q4_K_M.gguf", None)
    assert chosen(model=str(shelf / "Qwen3-8B-Q4_K_M.gguf")) == ("Qwen3-8B-Q4_K_M.gguf", None)


def test_without_its_draft_model_a_pair_is_its_target(shelf: Path) -> None:
    """Unless drafting with it was asked for."""
    (shelf / "Qwen3-0.6B-Q8_0.gguf").unlink()
    assert chosen(model="qwen3-8b") == ("Qwen3-8B-Q4_K_M.gguf", None)
    with pytest.raises(
        UserError, match=r"no draft model to draft with; qwen3-0\.6b, .* localspec pull qwen3-8b gets it\.$"
    ):
        chosen(model="qwen3-8b", drafter="draft")


def test_what_the_pair_lacks_is_told(shelf: Path) -> None:
    """In one sentence, and only to who could want it."""
    (shelf / "Qwen3-0.6B-Q8_0.gguf").unlink()
    told = "qwen3-0.6b, which drafts for qwen3-8b, is not installed; localspec pull qwen3-8b gets it."

    def note(**given: str) -> str:
        return engine_settings(Settings(**given), find_folders()).note  # type: ignore[arg-type]

    assert note(model="qwen3-8b") == told
    for settings in ({"draft": "none"}, {"drafter": "lookup"}, {"drafter": "none"}, {"draft": "other"}):
        assert note(model="qwen3-8b", **settings) == ""
    assert note(model="Qwen3-8B-Q4_K_M") == note(model=str(shelf / "other.gguf")) == ""


def test_names_of_a_catalog_of_ones_own(shelf: Path, own_folders: Path) -> None:
    """And one that is broken is told, but only to who needs it: ours stays in force."""
    (own_folders / "config").mkdir()
    catalog = own_folders / "config" / "catalog.toml"
    catalog.write_text('[pairs."qwen3-8b"]\ntarget = "qwen3-8b"\ndraft = "qwen2.5-0.5b"\n', "utf-8")
    assert chosen(model="qwen3-8b") == ("Qwen3-8B-Q4_K_M.gguf", "Qwen3-0.6B-Q8_0.gguf")
    notes = [
        engine_settings(Settings(model=model, draft=draft), find_folders()).note
        for model, draft in (("qwen3-8b", None), ("other.gguf", "none"))
    ]
    assert "target and draft of the pair qwen3-8b have different vocabularies" in notes[0]
    assert notes[1] == ""
