from __future__ import annotations

import hashlib
import json
import shutil
import threading
from collections import namedtuple
from pathlib import Path

import pytest

from hub_server import Content, Fault, HubServer, long_content
from localspec.engine.errors import UserError
from localspec.hub import plan as planning
from localspec.hub.catalog import Catalog, CatalogFile, CatalogModel, Pair
from localspec.hub.machine import laptop
from localspec.hub.origins import ORIGINS_FILE, names_from, read_origins
from localspec.hub.plan import Plan, plan
from localspec.hub.pull import fetch
from localspec.hub.reference import parse_reference
from localspec.hub.removal import delete, removal
from localspec.hub.resolve import installed, resolve
from localspec.hub.shape import ModelShape
from localspec.hub.starter import FetchCancelledError

NOTHING = Catalog((), ())
SHAPE = ModelShape(4, 64, 128, 4, 2, 16, 16, 300, 512)
Usage = namedtuple("Usage", "total used free")


def planned(folder: Path, *names: str, catalog: Catalog = NOTHING) -> Plan:
    return plan(names, folder, catalog=catalog, machine=lambda: laptop(16))


def pulled(folder: Path, *names: str, catalog: Catalog = NOTHING) -> list[Path]:
    return fetch(planned(folder, *names, catalog=catalog))


def refusal(folder: Path, *names: str, catalog: Catalog = NOTHING) -> str:
    with pytest.raises(UserError) as caught:
        pulled(folder, *names, catalog=catalog)
    sentence = str(caught.value)
    assert sentence.endswith(".")
    return sentence


def models_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith(".origins"))


def is_content(path: Path, content: Content) -> bool:
    return hashlib.sha256(path.read_bytes()).hexdigest() == content.sha256


@pytest.fixture
def three(hub: HubServer) -> dict[str, Content]:
    """A repository with three quantizations."""
    files = {
        f"m-{name}.gguf": long_content(size, size) for name, size in (("Q2_K", 2000), ("Q4_K_M", 4000), ("Q8_0", 8000))
    }
    hub.add("user/repo", files)
    return files


def catalog_of(*models: tuple[str, str, str, int]) -> Catalog:
    """Models by name, repository, file and size; the first two are a pair as well."""
    known = tuple(
        CatalogModel(
            name, repository, None, "MIT", 1, 512, "", "", "", False, SHAPE, (CatalogFile(file, "Q4_0", size),)
        )
        for name, repository, file, size in models
    )
    return Catalog((Pair(known[0].name, known[0], known[1], "small"),), known)


def test_a_quantization_is_what_is_asked_for(hub, three, folder):
    """In any case of letters; and -m finds it by the words it was pulled with."""
    assert pulled(folder, "user/repo:q8_0") == [folder / "m-Q8_0.gguf"]
    assert is_content(folder / "m-Q8_0.gguf", three["m-Q8_0.gguf"])
    assert models_in(folder) == ["m-Q8_0.gguf"]
    assert resolve("user/repo:Q8_0", folder, lambda: NOTHING) == folder / "m-Q8_0.gguf"
    assert resolve("user/repo", folder, lambda: NOTHING) == folder / "m-Q8_0.gguf"
    with pytest.raises(
        UserError, match=r"^user/repo:Q2_K is not installed: localspec pull user/repo:Q2_K downloads it\.$"
    ):
        resolve("user/repo:Q2_K", folder, lambda: NOTHING)


def test_a_file_is_what_is_asked_for(hub, three, folder):
    """By its path in the repository."""
    assert pulled(folder, "user/repo/m-Q2_K.gguf") == [folder / "m-Q2_K.gguf"]
    assert resolve("user/repo/m-Q2_K.gguf", folder, lambda: NOTHING) == folder / "m-Q2_K.gguf"


def test_the_memory_chooses_where_nothing_is_said(hub, three, folder, monkeypatch):
    """What fits best of what the repository has; and once it is here, it stays the choice."""
    asked = []

    def best_file(model, machine, draft=None):
        asked.append((model.shape, [file.quantization for file in model.files], machine))
        return model.files[0]

    monkeypatch.setattr(planning, "best_file", best_file)
    assert pulled(folder, "user/repo") == [folder / "m-Q2_K.gguf"]
    assert asked == [(None, ["Q2_K", "Q4_K_M", "Q8_0"], laptop(16))]
    assert planned(folder, "user/repo").bytes_to_download == 0
    assert len(asked) == 1


def test_a_choice_that_has_begun_to_come_stays_the_choice(hub, three, folder):
    """Although the memory may look different now."""
    hub.faults["body"].extend([Fault(), Fault(cut=5000), Fault(status=404)])
    with pytest.raises(UserError):
        pulled(folder, "user/repo/m-Q8_0.gguf")
    for machine in (laptop(1), laptop(64)):
        what = plan(["user/repo"], folder, catalog=NOTHING, machine=lambda machine=machine: machine)
        assert [(model.name, model.missing) for model in what.models] == [("m-Q8_0", 3000)]


def test_a_model_is_looked_into_before_it_is_downloaded(hub, folder, tiny_llama):
    """The verdict on the memory comes from its header, read over the network."""
    hub.add("user/repo", {"tiny-Q4_0.gguf": Content(tiny_llama.read_bytes())})
    what = planned(folder, "user/repo")
    assert what.models[0].shape.layers > 0
    [(name, verdict)] = what.verdicts
    assert (name, verdict.text) == ("user/repo", "fits")
    assert what.bytes_to_download == tiny_llama.stat().st_size
    assert not folder.exists()


def test_all_parts_of_a_split_model_come(hub, folder):
    """Several files at once, and progress for each."""
    parts = {f"q/m-Q4_0-{i:05}-of-00004.gguf": long_content(100_000 * i, i) for i in range(1, 5)}
    hub.add("user/repo", parts)
    seen: dict[str, list[tuple[int, int]]] = {}
    me = threading.get_ident()

    def progress(file: str, done: int, total: int) -> None:
        assert threading.get_ident() == me
        seen.setdefault(file, []).append((done, total))

    what = planned(folder, "user/repo:Q4_0")
    assert what.bytes_to_download == 1_000_000
    assert fetch(what, progress) == [folder / "m-Q4_0-00001-of-00004.gguf"]
    names = [Path(path).name for path in parts]
    assert models_in(folder) == names
    assert {file: steps[-1] for file, steps in seen.items()} == {
        Path(path).name: (content.size, content.size) for path, content in parts.items()
    }
    assert resolve("user/repo:Q4_0", folder, lambda: NOTHING).name == names[0]


def test_a_split_model_with_a_part_missing_is_refused(hub, folder):
    """Before anything is downloaded."""
    hub.add("user/repo", {"m-Q4_0-00001-of-00003.gguf": long_content(10)})
    assert refusal(folder, "user/repo") == "user/repo lacks 2 parts of m-Q4_0: choose another file."


def test_what_a_repository_does_not_have_is_told_with_what_it_has(hub, three, folder):
    """So that the person can choose."""
    hub.add("user/empty", {"model.safetensors": long_content(10)})
    hub.add("user/two", {"a-Q4_0.gguf": long_content(10), "b-Q4_0.gguf": long_content(11)})
    assert refusal(folder, "user/repo:Q6_K") == "user/repo has no Q6_K: it has Q2_K, Q4_K_M and Q8_0."
    assert refusal(folder, "user/repo/x.gguf") == (
        "user/repo has no file x.gguf: it has m-Q2_K.gguf, m-Q4_K_M.gguf and m-Q8_0.gguf."
    )
    assert refusal(folder, "user/empty") == (
        "user/empty holds no .gguf files: look for a repository with GGUF in its name."
    )
    assert refusal(folder, "user/two") == (
        "user/two holds several models (a-Q4_0 and b-Q4_0): give the file, as in user/two/a-Q4_0.gguf."
    )
    assert (
        refusal(folder, "a/b/c")
        == "a/b/c is no hub reference: write user/repo, user/repo:QUANT or user/repo/file.gguf."
    )
    assert refusal(folder, " ") == "The name of a model is empty: localspec models lists what there is."
    assert refusal(folder, "gemma") == "There is no model or pair 'gemma' in the catalog; localspec models lists them."


def test_a_pair_is_two_models(hub, folder):
    """The name of the target stands for both; what both need comes once."""
    large, small = long_content(9000), long_content(900)
    hub.add("a/large", {"large-Q4_0.gguf": large})
    hub.add("a/small", {"small-Q4_0.gguf": small})
    catalog = catalog_of(("large", "a/large", "large-Q4_0.gguf", 9000), ("small", "a/small", "small-Q4_0.gguf", 900))
    what = planned(folder, "large", "small", catalog=catalog)
    assert [model.name for model in what.models] == ["large-Q4_0", "small-Q4_0"]
    assert [(name, verdict.text) for name, verdict in what.verdicts] == [("large", "fits"), ("small", "fits")]
    assert fetch(what) == [folder / "large-Q4_0.gguf", folder / "small-Q4_0.gguf"]
    assert is_content(folder / "large-Q4_0.gguf", large)
    hub.requests.clear()
    assert planned(folder, "LARGE:q4_0", catalog=catalog).bytes_to_download == 0
    assert hub.requests == []
    assert refusal(folder, "large:Q8_0", catalog=catalog) == (
        "The catalog has large as Q4_0: choose one of these, not Q8_0."
    )


def test_a_file_that_the_catalog_knows_by_an_older_name_is_found(hub, folder):
    """By its quantization."""
    hub.add("a/large", {"Large-v2-Q4_0.gguf": long_content(900), "Large-v2-Q8_0.gguf": long_content(1800)})
    catalog = catalog_of(("large", "a/large", "large-Q4_0.gguf", 900), ("small", "a/small", "small-Q4_0.gguf", 90))
    models = planned(folder, "large:Q4_0", catalog=Catalog((), catalog.models)).models
    assert [model.name for model in models] == ["Large-v2-Q4_0"]


def test_a_file_put_in_the_place_of_a_downloaded_one_is_left_alone(hub, three, folder):
    """It has the name, but is the person's own now."""
    pulled(folder, "user/repo:Q8_0")
    (folder / "m-Q8_0.gguf").write_bytes(b"mine")
    assert pulled(folder, "user/repo:Q8_0") == [folder / "user--m-Q8_0.gguf"]
    assert (folder / "m-Q8_0.gguf").read_bytes() == b"mine"


def test_two_repositories_with_one_file_name_do_not_mix(hub, folder):
    """The second gets its owner's name in front, and each reference finds its own."""
    ours, theirs = long_content(1000, 1), long_content(1000, 2)
    hub.add("us/repo", {"m-Q4_0.gguf": ours})
    hub.add("them/repo", {"m-Q4_0.gguf": theirs})
    pulled(folder, "us/repo")
    assert pulled(folder, "them/repo") == [folder / "them--m-Q4_0.gguf"]
    assert is_content(folder / "m-Q4_0.gguf", ours)
    assert is_content(folder / "them--m-Q4_0.gguf", theirs)
    assert resolve("them/repo/m-Q4_0.gguf", folder, lambda: NOTHING).name == "them--m-Q4_0.gguf"
    assert resolve("us/repo", folder, lambda: NOTHING).name == "m-Q4_0.gguf"
    assert planned(folder, "them/repo").bytes_to_download == 0


def test_a_new_version_takes_the_place_of_the_old_one(hub, folder):
    """The old file stays usable until the new one is whole."""
    hub.add("us/repo", {"m-Q4_0.gguf": long_content(1000, 1)})
    pulled(folder, "us/repo")
    new = long_content(1200, 2)
    hub.add("us/repo", {"m-Q4_0.gguf": new}, commit="d" * 40)
    pulled(folder, "us/repo")
    assert models_in(folder) == ["m-Q4_0.gguf"]
    assert is_content(folder / "m-Q4_0.gguf", new)
    assert read_origins(folder)["m-Q4_0.gguf"].commit == "d" * 40


def test_a_new_version_of_the_same_size_is_another_file(hub, folder):
    """What the file is known by counts, not its size."""
    hub.add("us/repo", {"m-Q4_0.gguf": long_content(1000, 1)})
    pulled(folder, "us/repo")
    new = long_content(1000, 2)
    hub.add("us/repo", {"m-Q4_0.gguf": new})
    assert planned(folder, "us/repo").bytes_to_download == 1000
    pulled(folder, "us/repo")
    assert is_content(folder / "m-Q4_0.gguf", new)


def test_a_file_that_a_person_put_there_is_left_alone(hub, three, folder):
    """Another file of that name is not overwritten; the same file is not downloaded again."""
    folder.mkdir(parents=True)
    (folder / "m-Q8_0.gguf").write_bytes(b"mine")
    assert pulled(folder, "user/repo:Q8_0") == [folder / "user--m-Q8_0.gguf"]
    assert (folder / "m-Q8_0.gguf").read_bytes() == b"mine"
    content = three["m-Q2_K.gguf"]
    (folder / "m-Q2_K.gguf").write_bytes(content.read(0, content.size))
    assert planned(folder, "user/repo:Q2_K").bytes_to_download == 0


def test_what_another_program_has_is_used_where_it_is(hub, three, folder, monkeypatch, tmp_path):
    """Nothing is downloaded or copied, and deleting the model leaves the other program's file alone."""
    content = three["m-Q8_0.gguf"]
    blob = tmp_path / "ollama" / "blobs" / f"sha256-{content.sha256}"
    blob.parent.mkdir(parents=True)
    blob.write_bytes(content.read(0, content.size))
    monkeypatch.setenv("OLLAMA_MODELS", str(tmp_path / "ollama"))
    what = planned(folder, "user/repo:Q8_0")
    assert what.bytes_to_download == 0
    [path] = fetch(what)
    assert path.is_symlink()
    assert path.resolve() == blob
    assert hub.asked("store") == []
    assert [(model.name, model.bytes) for model in installed(folder)] == [("m-Q8_0", content.size)]
    assert resolve("user/repo:Q8_0", folder, lambda: NOTHING) == path
    delete(removal("m-Q8_0", folder, NOTHING))
    assert blob.read_bytes() == content.read(0, content.size)
    assert not path.is_symlink()


def test_a_link_into_nothing_is_replaced(hub, three, folder, tmp_path):
    """The other program has deleted its file: the model is downloaded."""
    folder.mkdir(parents=True)
    (folder / "m-Q8_0.gguf").symlink_to(tmp_path / "gone")
    [path] = pulled(folder, "user/repo:Q8_0")
    assert not path.is_symlink()
    assert is_content(path, three["m-Q8_0.gguf"])


def test_a_model_that_is_here_needs_no_hub(hub, three, folder, monkeypatch):
    """Offline, or while the hub is out of order."""
    pulled(folder, "user/repo:Q8_0")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert pulled(folder, "user/repo:Q8_0") == [folder / "m-Q8_0.gguf"]
    assert refusal(folder, "user/repo:Q2_K").startswith("HF_HUB_OFFLINE is set")


@pytest.mark.parametrize("program", ["huggingface-hub", "ollama"])
def test_what_another_program_has_needs_no_hub(hub, three, folder, monkeypatch, tmp_path, program):
    """Offline, a reference means what the other program has downloaded by it."""
    content = three["m-Q8_0.gguf"]
    cache = tmp_path / "hub" / "models--user--repo"
    blob = cache / "blobs" / content.sha256
    if program == "ollama":
        blob = tmp_path / "blobs" / f"sha256-{content.sha256}"
        manifest = tmp_path / "manifests" / "hf.co" / "user" / "repo" / "Q8_0"
        layer = {"mediaType": "application/vnd.ollama.image.model", "digest": f"sha256:{content.sha256}", "size": 8000}
        manifest.parent.mkdir(parents=True)
        manifest.write_text(json.dumps({"layers": [{"mediaType": "template", "digest": "", "size": 1}, layer]}))
        monkeypatch.setenv("OLLAMA_MODELS", str(tmp_path))
    blob.parent.mkdir(parents=True)
    blob.write_bytes(content.read(0, content.size))
    if program == "huggingface-hub":
        link = cache / "snapshots" / ("c" * 40) / "m-Q8_0.gguf"
        link.parent.mkdir(parents=True)
        link.symlink_to(blob)
        (cache / "refs").mkdir()
        (cache / "refs" / "main").write_text("c" * 40)
        monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    [path] = pulled(folder, "user/repo:Q8_0")
    assert path.resolve() == blob
    assert resolve("user/repo:Q8_0", folder, lambda: NOTHING) == path
    assert refusal(folder, "user/other").startswith("HF_HUB_OFFLINE is set")
    assert hub.requests == []


def test_too_little_space_is_found_out_before_downloading(hub, three, folder, monkeypatch):
    """All files together, with a margin; what is here already does not count."""
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: Usage(10**9, 0, 256_000_000 + 11_999))
    sentence = refusal(folder, "user/repo:Q8_0", "user/repo:Q4_K_M")
    assert sentence == (
        f"256 MB of free space are needed in {folder} and there are 256 MB: free some space, or choose another folder "
        "with LOCALSPEC_DATA_DIR."
    )
    assert hub.asked("store") == [request for request in hub.asked("store") if "range" in request.headers]
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: Usage(10**9, 0, 256_000_000 + 12_000))
    assert len(pulled(folder, "user/repo:Q8_0", "user/repo:Q4_K_M")) == 2


def test_a_pull_can_be_stopped_and_gone_on_with(hub, folder):
    """By a callable, as the app does; what has come is kept."""
    content = long_content(3_000_000)
    hub.add("user/repo", {"m-Q4_0.gguf": content})
    what = planned(folder, "user/repo")
    reached, gate = threading.Event(), threading.Event()
    begun = hub.served

    def sent() -> None:
        if hub.served - begun > 1_000_000:
            reached.set()
            gate.wait(60)

    hub.sent = sent
    with pytest.raises(FetchCancelledError, match=r"was stopped: run it again to go on\.$"):
        fetch(what, cancelled=reached.is_set)
    gate.set()
    hub.sent = lambda: None
    again = planned(folder, "user/repo")
    assert 0 < again.bytes_to_download < 3_000_000
    fetch(again)
    assert is_content(folder / "m-Q4_0.gguf", content)


def test_one_failure_stops_the_others_and_nothing_is_lost(hub, folder):
    """The sentence is that of the failure."""
    hub.add("user/repo", {"a-Q4_0.gguf": long_content(1000), "b-Q8_0.gguf": long_content(2000)})
    what = planned(folder, "user/repo:Q4_0", "user/repo:Q8_0")
    hub.faults["resolve"].append(Fault(status=404, headers={"X-Error-Code": "EntryNotFound"}))
    with pytest.raises(UserError, match=r"^user/repo has no file [ab]-Q"):
        fetch(what)
    assert len(pulled(folder, "user/repo:Q4_0", "user/repo:Q8_0")) == 2


def test_why_something_waits_is_told(hub, three, folder):
    """To whoever shows progress."""
    what = planned(folder, "user/repo:Q8_0")
    hub.faults["body"].append(Fault(status=503, headers={"Retry-After": "0"}))
    notes: list[str] = []
    fetch(what, note=notes.append)
    assert notes == ["The hub is out of order (status 503): try again later."]


def test_a_damaged_list_of_origins_is_written_anew(hub, three, folder):
    """Nothing depends on it but finding models by their reference."""
    pulled(folder, "user/repo:Q8_0")
    (folder / ORIGINS_FILE).write_text("{")
    assert read_origins(folder) == {}
    pulled(folder, "user/repo:Q8_0")
    reference = parse_reference("user/repo:Q8_0")
    assert reference is not None
    assert names_from(folder, reference) == ["m-Q8_0.gguf"]
