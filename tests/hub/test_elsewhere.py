from __future__ import annotations

from pathlib import Path

import pytest

from localspec.hub.elsewhere import find_elsewhere, hugging_face_cache
from localspec.hub.remote import RemoteFile

COMMIT, OTHER_COMMIT = "c" * 40, "d" * 40
SHA = "a" * 64
BYTES = b"GGUF some model"


def file(path: str = "q4/m-Q4_0.gguf", sha256: str = SHA) -> RemoteFile:
    return RemoteFile("user/repo", COMMIT, path, len(BYTES), sha256, sha256)


def put(path: Path, data: bytes = BYTES) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def found(home: Path, *files: RemoteFile, **environ: str) -> list[Path] | None:
    return find_elsewhere(files or (file(),), {"HOME": str(home), **environ})


def cached(cache: Path, commit: str = COMMIT, sha256: str = SHA, path: str = "q4/m-Q4_0.gguf") -> Path:
    """A file as huggingface-hub keeps it: a link to its blob."""
    repository = cache / "models--user--repo"
    blob = put(repository / "blobs" / sha256)
    link = repository / "snapshots" / commit / path
    link.parent.mkdir(parents=True)
    link.symlink_to(blob)
    return link


def test_nowhere_is_none(tmp_path):
    """Without other programs there is nothing to find."""
    assert found(tmp_path) is None


@pytest.mark.parametrize(
    ("variables", "place"),
    [
        ({}, ".cache/huggingface/hub"),
        ({"XDG_CACHE_HOME": "{home}/x"}, "x/huggingface/hub"),
        ({"HF_HOME": "{home}/hf"}, "hf/hub"),
        ({"HUGGINGFACE_HUB_CACHE": "{home}/old", "HF_HOME": "{home}/hf"}, "old"),
        ({"HF_HUB_CACHE": "{home}/cache", "HF_HOME": "{home}/hf"}, "cache"),
    ],
)
def test_the_hugging_face_cache_is_where_its_variables_say(tmp_path, variables, place):
    """As huggingface-hub reads them."""
    environ = {name: value.format(home=tmp_path) for name, value in variables.items()}
    assert hugging_face_cache({"HOME": str(tmp_path), **environ}) == tmp_path / place
    link = cached(tmp_path / place)
    assert found(tmp_path, **environ) == [link]


def test_a_blob_of_an_older_commit_is_the_same_file(tmp_path):
    """The blob's name is the hash of its content, whatever commit it was downloaded with."""
    link = cached(tmp_path / ".cache/huggingface/hub", OTHER_COMMIT)
    assert found(tmp_path) == [link]
    assert found(tmp_path, file(sha256="b" * 64)) is None


def test_a_file_instead_of_a_link_counts_for_its_commit_only(tmp_path):
    """Where links are not possible, only the commit tells the content."""
    cache = tmp_path / ".cache/huggingface/hub/models--user--repo/snapshots"
    put(cache / OTHER_COMMIT / "q4/m-Q4_0.gguf")
    assert found(tmp_path) is None
    path = put(cache / COMMIT / "q4/m-Q4_0.gguf")
    assert found(tmp_path) == [path]


def test_an_unfinished_file_is_not_used(tmp_path):
    """Another size, another file; a link into nothing is none."""
    link = cached(tmp_path / ".cache/huggingface/hub")
    link.resolve().write_bytes(BYTES[:-1])
    assert found(tmp_path) is None
    link.resolve().unlink()
    assert found(tmp_path) is None


@pytest.mark.parametrize("place", [".lmstudio/models", ".cache/lm-studio/models", "elsewhere/models"])
def test_lm_studio_keeps_files_by_repository(tmp_path, place):
    """In its folder of today or of yesterday, or where its pointer says."""
    (tmp_path / ".lmstudio-home-pointer").write_text(f"{tmp_path / 'elsewhere'}\n")
    path = put(tmp_path / place / "user" / "repo" / "m-Q4_0.gguf")
    assert found(tmp_path) == [path]


@pytest.mark.parametrize(("variable", "place"), [(None, ".ollama/models"), ("OLLAMA_MODELS", "big disk")])
def test_ollama_keeps_files_by_their_hash(tmp_path, variable, place):
    """Its blob is the file."""
    path = put(tmp_path / place / "blobs" / f"sha256-{SHA}")
    environ = {variable: str(tmp_path / place)} if variable else {}
    assert found(tmp_path, **environ) == [path]


def test_all_parts_of_a_split_model_or_none(tmp_path):
    """Half a model is no model."""
    first, second = file("m-00001-of-00002.gguf"), file("m-00002-of-00002.gguf")
    folder = tmp_path / ".lmstudio/models/user/repo"
    put(folder / first.name)
    assert found(tmp_path, first, second) is None
    put(folder / second.name)
    assert found(tmp_path, first, second) == [folder / first.name, folder / second.name]
