"""With what context and how many layers a run is opened where nothing was asked for."""

from pathlib import Path

import pytest

from localspec.console import Progress
from localspec.hub import opening
from localspec.hub.fit import pair_bytes
from localspec.hub.machine import GIB, Machine
from localspec.hub.opening import Chosen, choose, sized_file
from localspec.interruption import Interruption
from localspec.launch import engine_settings, load_engine
from localspec.settings import Folders, Settings, find_folders

PLENTY = Machine("plenty", 16 * GIB)


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """A target and a draft that were trained for 8192 tokens."""
    import tiny

    target = tiny.llama(tmp_path / "target.gguf", context=8192, chat_template=tiny.CHAT_TEMPLATE)
    return target, tiny.llama(tmp_path / "draft.gguf", context=8192, noise=0.08)


def room_for(pair: tuple[Path, Path], context: int) -> int:
    """What the pair takes with so many tokens."""
    target, draft = (sized_file(path) for path in pair)
    return pair_bytes(target, draft, context)


def test_with_enough_memory_nothing_is_chosen_otherwise_than_before(pair: tuple[Path, Path]) -> None:
    """The engine's own default, and no word about it."""
    assert choose(*pair, None, None, "f16", PLENTY) == Chosen(None, -1)


def test_a_shorter_context_is_chosen_and_said(pair: tuple[Path, Path]) -> None:
    """In one sentence."""
    scarce = Machine("scarce", room_for(pair, 4096))
    found = choose(*pair, None, None, "f16", scarce)
    assert (found.context, found.gpu_layers) == (4096, -1)
    assert found.note == (
        "To fit target into the memory that is free, the context has 4096 tokens instead of 8192; "
        "--ctx and --gpu-layers overrule this."
    )


def test_layers_that_do_not_fit_on_the_gpu_are_said(pair: tuple[Path, Path]) -> None:
    """With how many there are."""
    card = Machine("small card", 16 * GIB, room_for(pair, 2048) // 2)
    found = choose(*pair, None, None, "f16", card)
    assert 0 <= found.gpu_layers < 2
    assert f"{found.gpu_layers} of its 2 layers are on the GPU" in found.note


@pytest.mark.parametrize("machine", [PLENTY, Machine("nothing", 1), Machine("nothing", 1, 1)], ids=lambda it: it.name)
def test_what_was_asked_for_stays(machine: Machine, pair: tuple[Path, Path]) -> None:
    """Whatever fits."""
    assert choose(*pair, 8192, 3, "f16", machine) == Chosen(8192, 3)
    assert choose(*pair, 8192, None, "f16", machine).context == 8192
    assert choose(*pair, 1 << 30, None, "f16", machine).note == ""
    assert choose(*pair, None, 1, "f16", machine).gpu_layers == 1
    assert choose(*pair, None, -1, "f16", machine).gpu_layers == -1


def test_a_model_that_does_not_fit_is_tried_with_the_shortest_context(pair: tuple[Path, Path]) -> None:
    """The figures may be too careful; what is to come is said."""
    found = choose(*pair, None, None, "f16", Machine("nothing", 1000, 10))
    assert (found.context, found.gpu_layers) == (2048, 0)
    assert "may be very slow or fail; close other programs, or choose a smaller model." in found.note


def test_a_file_that_is_no_model_is_left_to_the_engine(tmp_path: Path) -> None:
    """It says what is wrong."""
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"nothing")
    assert choose(broken, None, None, None, "f16", PLENTY) == Chosen(None, -1)


@pytest.fixture
def scarce_machine(pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine, if it had room for 4096 tokens."""
    monkeypatch.setattr(opening, "this_machine", lambda: Machine("scarce", room_for(pair, 4096)))


def settings_of(pair: tuple[Path, Path], **more: object) -> tuple[Settings, Folders]:
    """A run with the pair."""
    return Settings(model=str(pair[0]), draft=str(pair[1]), **more), find_folders()  # type: ignore[arg-type]


@pytest.mark.usefixtures("scarce_machine")
def test_the_engine_is_opened_with_what_fits_and_the_person_is_told(
    pair: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """On stderr, once."""
    settings, folders = settings_of(pair, drafter="draft")
    with load_engine(settings, folders, Progress(), Interruption()) as engine:
        assert engine.context_length == 4096
    assert capsys.readouterr().err == (
        "localspec: To fit target into the memory that is free, the context has 4096 tokens instead of 8192; "
        "--ctx and --gpu-layers overrule this.\n"
    )


@pytest.mark.usefixtures("scarce_machine")
def test_quiet_says_nothing_and_a_given_context_is_kept(
    pair: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """Explicit values are the person's own business."""
    settings, folders = settings_of(pair, drafter="draft")
    load_engine(settings, folders, Progress(quiet=True), Interruption()).close()
    assert capsys.readouterr().err == ""
    settings, folders = settings_of(pair, ctx=6000, gpu_layers="all")
    chosen = engine_settings(settings, folders)
    assert (chosen.context_length, chosen.gpu_layers, chosen.note) == (6000, -1, "")
