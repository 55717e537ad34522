from __future__ import annotations

import pytest

from localspec.hub.reference import HubReference, parse_reference
from localspec.hub.remote import RemoteFile, models_of, quantization_of, usual

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("user/repo", HubReference("user/repo")),
        ("user/repo:Q4_K_M", HubReference("user/repo", quantization="Q4_K_M")),
        ("user/repo/file.gguf", HubReference("user/repo", file="file.gguf")),
        ("user/repo/q4/file.GGUF", HubReference("user/repo", file="q4/file.GGUF")),
        ("user/repo@v1.0", HubReference("user/repo", "v1.0")),
        (f"user/repo@{COMMIT}:Q8_0", HubReference("user/repo", COMMIT, quantization="Q8_0")),
        (f"user/repo:Q8_0@{COMMIT}", HubReference("user/repo", COMMIT, quantization="Q8_0")),
        ("user/repo/file.gguf@refs/pr/1", HubReference("user/repo", "refs/pr/1", "file.gguf")),
        ("hf.co/user/repo:Q4_0", HubReference("user/repo", quantization="Q4_0")),
        ("https://huggingface.co/user/repo/", HubReference("user/repo")),
        ("https://huggingface.co/user/repo/tree/main", HubReference("user/repo", "main")),
        (
            "https://huggingface.co/user/repo/resolve/main/q4/file.gguf?download=true",
            HubReference("user/repo", "main", "q4/file.gguf"),
        ),
    ],
)
def test_what_people_write_or_paste_is_understood(text, expected):
    """A reference, with or without a revision, or the address of a page."""
    assert parse_reference(text) == expected


NO_REFERENCES = [
    *("model", "", "./user/repo", "/user/repo", "user/repo/", "user/repo:", "user/repo/a", "user/repo/../../x.gguf"),
    *("user/repo@a@b", "user/repo@v1:Q4@v2", "user//x.gguf", "user/repo Q4", "-u/repo", "user/repo/a\\b.gguf"),
]


@pytest.mark.parametrize("text", NO_REFERENCES)
def test_what_is_no_reference_is_none(text):
    """Paths and typing errors are not sent to the hub."""
    assert parse_reference(text) is None


def test_a_reference_is_written_as_it_is_read():
    """What is shown can be given again."""
    for reference in (
        HubReference("user/repo"),
        HubReference("user/repo", "v1", quantization="Q4_0"),
        HubReference("user/repo", "v1", "a/b.gguf"),
    ):
        assert parse_reference(str(reference)) == reference


@pytest.mark.parametrize(
    ("path", "quantization"),
    [
        ("Qwen3-8B-Q4_K_M.gguf", "Q4_K_M"),
        ("SmolLM2-135M-Instruct.Q4_1.gguf", "Q4_1"),
        ("qwen2.5-7b-instruct-q4_k_m-00001-of-00002.gguf", "Q4_K_M"),
        ("Llama-3.3-70B-Instruct-UD-Q4_K_XL.gguf", "UD-Q4_K_XL"),
        ("gemma-3-1b-it-IQ3_XXS.gguf", "IQ3_XXS"),
        ("Qwen3-0.6B-f16.gguf", "F16"),
        ("gpt-oss-20b-mxfp4.gguf", "MXFP4"),
        ("BF16/model-00001-of-00003.gguf", "BF16"),
        ("Q8_0.gguf", "Q8_0"),
        ("some-model.gguf", ""),
    ],
)
def test_the_quantization_is_read_off_the_name(path, quantization):
    """As the usual publishers write it."""
    assert quantization_of(path) == quantization


def file(path: str, size: int = 10) -> RemoteFile:
    return RemoteFile("user/repo", COMMIT, path, size, "e", None)


def test_the_parts_of_a_split_model_belong_together():
    """Two folders, two models; what is no model is left out."""
    files = [
        file("Q8_0/m-Q8_0-00002-of-00002.gguf", 7),
        file("Q8_0/m-Q8_0-00001-of-00002.gguf", 8),
        file("m-Q4_K_M.gguf", 5),
        file("m-Q2_K-00001-of-00003.gguf", 1),
        file("mmproj-m-f16.gguf"),
        file("imatrix.gguf"),
        file("README.md"),
    ]
    found = models_of(files)
    assert [(model.name, model.quantization, model.bytes, model.missing) for model in found] == [
        ("m-Q2_K", "Q2_K", 1, 2),
        ("m-Q4_K_M", "Q4_K_M", 5, 0),
        ("m-Q8_0", "Q8_0", 15, 0),
    ]
    assert [part.name for part in found[2].files] == ["m-Q8_0-00001-of-00002.gguf", "m-Q8_0-00002-of-00002.gguf"]


def test_four_bits_are_usual():
    """Where nothing is known of the memory, Q4_K_M; where that is missing, the next best; else the smallest."""
    assert (
        usual(models_of([file("m-Q2_K.gguf", 1), file("m-Q8_0.gguf", 9), file("m-Q4_K_M.gguf", 4)])).name == "m-Q4_K_M"
    )
    assert usual(models_of([file("m-Q2_K.gguf", 1), file("m-Q8_0.gguf", 9)])).name == "m-Q8_0"
    assert usual(models_of([file("m-Q2_K.gguf", 1), file("m-f16.gguf", 9)])).name == "m-Q2_K"
