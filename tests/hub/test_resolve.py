from pathlib import Path

import pytest

from localspec.engine.errors import ModelError
from localspec.hub.catalog import Catalog
from localspec.hub.origins import record_origins
from localspec.hub.remote import RemoteFile
from localspec.hub.resolve import InstalledModel, default_model, installed, paired_draft, resolve
from localspec.hub.starter import STARTER


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A models folder, with the current folder an empty one beside it."""
    folder = tmp_path / "shelf"
    folder.mkdir()
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return folder


def put(folder: Path, *names: str, size: int = 3) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_bytes(bytes(size))


def installed_files(shelf: Path) -> list[Path]:
    return [model.path for model in installed(shelf)]


def refusal(ref: str, shelf: Path) -> str:
    with pytest.raises(ModelError) as caught:
        resolve(ref, shelf)
    assert str(caught.value).endswith(".")
    return str(caught.value)


def test_installed_lists_models_by_name_with_their_size(shelf):
    put(shelf, "beta.gguf", size=5)
    put(shelf, "Alpha.GGUF", size=7)
    put(shelf, "notes.txt", ".gguf")
    (shelf / "folder.gguf").mkdir()
    (shelf / "broken.gguf").symlink_to(shelf / "nothing")
    assert installed(shelf) == [
        InstalledModel("Alpha", shelf / "Alpha.GGUF", 7),
        InstalledModel("beta", shelf / "beta.gguf", 5),
    ]


def test_a_split_model_is_one_model_with_all_its_bytes(shelf):
    put(shelf, "big-00001-of-00003.gguf", "big-00002-of-00003.gguf", "big-00003-of-00003.gguf", size=10)
    put(shelf, "orphan-00002-of-00002.gguf")
    assert installed(shelf) == [InstalledModel("big", shelf / "big-00001-of-00003.gguf", 30)]
    for ref in ("big", "BIG", "big-00001-of-00003", "big-00001-of-00003.gguf"):
        assert resolve(ref, shelf) == shelf / "big-00001-of-00003.gguf"


def test_a_models_folder_that_is_not_there_is_empty(tmp_path):
    assert installed(tmp_path / "none") == []
    assert default_model(tmp_path / "none") is None


def test_the_default_is_the_starter_else_the_first_by_name(shelf):
    put(shelf, "zeta.gguf", "Alpha.gguf")
    assert default_model(shelf) == shelf / "Alpha.gguf"
    put(shelf, STARTER.file)
    assert default_model(shelf) == shelf / STARTER.file


def test_a_path_is_taken_as_it_is(shelf, tmp_path, monkeypatch):
    put(tmp_path / "elsewhere", "m.gguf", "blob")
    put(Path(), "here.gguf")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert resolve(str(tmp_path / "elsewhere/m.gguf"), shelf) == tmp_path / "elsewhere/m.gguf"
    assert resolve("~/elsewhere/m.gguf", shelf) == tmp_path / "elsewhere/m.gguf"
    assert resolve("../elsewhere/blob", shelf) == Path("../elsewhere/blob")
    assert resolve("here.gguf", shelf) == Path("here.gguf")


def test_a_name_is_matched_without_case_and_by_a_beginning_of_its_own(shelf):
    put(shelf, "Qwen-7B-Q4.gguf", "Qwen-7B-Q8.gguf", "SmolLM2.gguf", "SmolLM2-big.gguf")
    assert resolve("qwen-7b-q8", shelf) == shelf / "Qwen-7B-Q8.gguf"
    assert resolve("qwen-7b-q8.gguf", shelf) == shelf / "Qwen-7B-Q8.gguf"
    assert resolve("smollm2", shelf) == shelf / "SmolLM2.gguf"
    assert resolve("smollm2-", shelf) == shelf / "SmolLM2-big.gguf"
    assert refusal("qwen", shelf) == "qwen could be Qwen-7B-Q4 or Qwen-7B-Q8: give more of the name."


def test_names_that_differ_in_case_only_are_told_apart(shelf):
    put(shelf, "model.gguf")
    if (shelf / "MODEL.gguf").exists():
        pytest.skip("this file system does not tell upper from lower case")
    put(shelf, "Model.gguf")
    assert resolve("Model", shelf) == shelf / "Model.gguf"
    assert resolve("model", shelf) == shelf / "model.gguf"
    assert "could be Model or model" in refusal("MODEL", shelf)


def test_a_file_or_folder_in_the_way_does_not_hide_an_installed_name(shelf):
    put(shelf, "model.gguf")
    put(Path(), "model")
    assert resolve("model", shelf) == shelf / "model.gguf"


def test_an_unknown_name_offers_the_nearest(shelf):
    put(shelf, "SmolLM2-135M.gguf", "Qwen-7B.gguf")
    assert refusal("smolm2-135m", shelf) == (
        "No model called smolm2-135m is installed: give the path of a .gguf file or the name of an installed model "
        "(the nearest: SmolLM2-135M)."
    )
    assert refusal("xyz", shelf).endswith("(Qwen-7B and SmolLM2-135M).")


def test_with_nothing_installed_the_folder_is_named(shelf):
    assert refusal("xyz", shelf).endswith(f"(there is none in {shelf}).")


def test_long_lists_are_cut(shelf):
    put(shelf, *(f"m{i:02}.gguf" for i in range(20)))
    assert refusal("m", shelf) == "m could be m00, m01, m02, m03, m04, m05, m06, m07 or 12 more: give more of the name."


@pytest.mark.parametrize(
    "ref", ["user/Some-Model-GGUF", "user/repo:Q4_K_M", "user/repo/file.gguf", "user/repo/q4/f.gguf"]
)
def test_hub_references_are_recognized(ref, shelf):
    assert refusal(ref, shelf) == f"{ref} is not installed: localspec pull {ref} downloads it."


def test_a_hub_reference_is_the_installed_file_it_means(shelf):
    put(shelf, "file.gguf", "Qwen3-8B-Q4_K_M.gguf", "Qwen3-8B-Q8_0.gguf")
    assert resolve("user/repo/q4/FILE.gguf", shelf) == shelf / "file.gguf"
    assert resolve("Qwen/Qwen3-8B-GGUF:q4_k_m", shelf) == shelf / "Qwen3-8B-Q4_K_M.gguf"
    assert resolve("Qwen/Qwen3-8B-GGUF", shelf) in installed_files(shelf)
    assert refusal("Qwen/Qwen3-8B-GGUF:Q6_K", shelf).endswith("localspec pull Qwen/Qwen3-8B-GGUF:Q6_K downloads it.")
    assert refusal("Qwen/Qwen3-14B-GGUF", shelf).startswith("Qwen/Qwen3-14B-GGUF is not installed")


def test_a_hub_reference_is_what_was_pulled_under_it(shelf):
    put(shelf, "someone--model-Q4.gguf", "model-Q4.gguf")
    files = [RemoteFile("someone/repo", "c0ffee", f"sub/model-Q{bits}.gguf", 3, "etag", None) for bits in (4, 8)]
    record_origins(shelf, {"someone--model-Q4.gguf": files[0]})
    for ref in ("someone/repo", "Someone/Repo:q4", "someone/repo@main:Q4"):
        assert resolve(ref, shelf) == shelf / "someone--model-Q4.gguf"
    assert refusal("someone/repo:Q8", shelf).startswith("someone/repo:Q8 is not installed")


def test_a_name_of_the_catalog_is_its_best_installed_file(shelf):
    put(shelf, "Qwen3-8B-Q4_K_M.gguf", size=4)
    put(shelf, "qwen3-8b-q8_0.gguf", size=8)
    put(shelf, "Qwen3-8B-Instruct-Q4_K_M.gguf", size=9)
    assert resolve("qwen3-8B", shelf) == shelf / "qwen3-8b-q8_0.gguf"
    put(shelf, "qwen3-8b.gguf")
    assert resolve("qwen3-8B", shelf) == shelf / "qwen3-8b.gguf"


def test_a_name_of_the_catalog_that_is_not_installed_says_how_to_have_it(shelf):
    assert refusal("QWEN3-8b", shelf) == "qwen3-8b is not installed: localspec pull qwen3-8b downloads it."
    assert refusal("llama-3.3", shelf) == "llama-3.3-70b is not installed: localspec pull llama-3.3-70b downloads it."
    assert refusal("qwen3-0.6b.gguf", shelf).endswith("localspec pull qwen3-0.6b downloads it.")
    put(shelf, "Llama-3.3-mine.gguf")
    assert resolve("llama-3.3", shelf) == shelf / "Llama-3.3-mine.gguf"


def test_a_catalog_of_ones_own_is_asked(shelf):
    empty = Catalog((), ())
    with pytest.raises(ModelError, match="No model called qwen3-8b is installed"):
        resolve("qwen3-8b", shelf, lambda: empty)


def test_the_name_of_a_pair_brings_its_draft_model_along(shelf):
    put(shelf, "Qwen3-8B-Q4_K_M.gguf")
    assert paired_draft("qwen3-8b", shelf) is None
    put(shelf, "Qwen3-0.6B-Q8_0.gguf", size=8)
    assert paired_draft("Qwen3-8B", shelf) == shelf / "Qwen3-0.6B-Q8_0.gguf"
    put(shelf, "Qwen3-0.6B-Q4_K_M.gguf", size=4)
    put(shelf, "Qwen3-0.6B-Q2_K.gguf", size=2)
    assert paired_draft("Qwen3-8B", shelf) == shelf / "Qwen3-0.6B-Q4_K_M.gguf"
    for other in ("qwen3-0.6b", "Qwen3-8B-Q4_K_M", "qwen3-8", "qwen3-8b.gguf", "./qwen3-8b", "nothing"):
        assert paired_draft(other, shelf) is None


@pytest.mark.parametrize("ref", ["/none/m.gguf", "./m.gguf", "../m", "folder/m.gguf", "here/x/m.gguf", "bad\0/m"])
def test_a_path_that_is_not_there_is_not_taken_for_a_hub_reference(ref, shelf):
    Path("here").mkdir()
    assert refusal(ref, shelf).startswith(f"There is no file {ref}")


def test_an_endless_path_is_refused_and_shown_short(shelf):
    sentence = refusal("a/" * 5000, shelf)
    assert sentence.startswith("There is no file a/a/a/")
    assert len(sentence) < 500
    assert len(refusal("a" * 5000, shelf)) < 500


def test_a_folder_is_not_a_model(shelf, tmp_path):
    assert refusal(str(tmp_path), shelf).startswith(f"{tmp_path} is a folder")


@pytest.mark.parametrize("ref", ["", "  "])
def test_an_empty_name_means_nothing(ref, shelf):
    put(shelf, "only.gguf")
    assert refusal(ref, shelf).startswith("The model's name is empty")


def test_a_later_part_points_to_the_first(shelf, tmp_path):
    put(tmp_path / "x", "big-00001-of-00002.gguf", "big-00002-of-00002.gguf")
    assert resolve(str(tmp_path / "x/big-00001-of-00002.gguf"), shelf) == tmp_path / "x/big-00001-of-00002.gguf"
    sentence = refusal(str(tmp_path / "x/big-00002-of-00002.gguf"), shelf)
    assert sentence.endswith("is part 2 of a split model: give its first part, big-00001-of-00002.gguf.")


def test_a_missing_part_is_named(shelf, tmp_path):
    put(shelf, "big-00001-of-00003.gguf", "big-00003-of-00003.gguf")
    for ref in ("big", str(shelf / "big-00001-of-00003.gguf")):
        assert refusal(ref, shelf).startswith(f"{shelf / 'big-00002-of-00003.gguf'} is missing: put all 3 parts")
