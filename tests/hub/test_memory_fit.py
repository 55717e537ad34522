"""Whether a pair fits, and which quantization to take."""

from dataclasses import dataclass, replace

import pytest

from localspec.hub.fit import (
    SHORTEST,
    Sized,
    best_file,
    best_pair,
    bits,
    pair_bytes,
    verdict,
)
from localspec.hub.machine import GIB, Machine, apple_silicon, cuda, laptop
from localspec.hub.shape import ModelShape

LLAMA_8B = ModelShape(32, 4096, 14336, 32, 8, 128, 128, 128256, 131072)
LLAMA_1B = ModelShape(16, 2048, 8192, 32, 8, 64, 64, 128256, 131072)
TARGET, DRAFT = Sized(LLAMA_8B, 4_920_000_000), Sized(LLAMA_1B, 808_000_000)


@dataclass(frozen=True)
class File:
    """One quantization."""

    quantization: str
    bytes: int


@dataclass(frozen=True)
class Model:
    """A model as a catalog has it."""

    files: tuple[File, ...]
    shape: ModelShape | None = LLAMA_8B


EIGHT = Model(
    (
        File("Q2_K", 3_180_000_000),
        File("Q3_K_M", 4_020_000_000),
        File("Q4_0", 4_660_000_000),
        File("Q4_K_M", 4_920_000_000),
        File("Q6_K", 6_600_000_000),
        File("Q8_0", 8_540_000_000),
        File("F16", 16_070_000_000),
    )
)
ONE = Model((File("Q4_K_M", 808_000_000), File("Q8_0", 1_320_000_000), File("F16", 2_480_000_000)), LLAMA_1B)


def memory(size: float, gpu: float = 0, unified: bool = False) -> Machine:
    """A machine with so much for models, in bytes."""
    return Machine("made up", int(size), int(gpu), unified)


def test_a_pair_that_fits_has_the_whole_context_and_all_layers() -> None:
    """The usual case needs no words."""
    found = verdict(TARGET, DRAFT, laptop(16))
    assert (found.text, found.fits, found.context, found.gpu_layers) == ("fits", True, 8192, -1)
    assert found.bytes == pair_bytes(TARGET, DRAFT, 8192)


def test_target_and_draft_are_counted_together() -> None:
    """Each of them alone would fit."""
    room = memory(pair_bytes(TARGET, DRAFT, 8192) - 1)
    assert verdict(TARGET, None, room).text == verdict(DRAFT, None, room).text == "fits"
    assert verdict(TARGET, DRAFT, room).text == "fits with context 7168"


def test_the_context_is_the_longest_round_one_that_fits() -> None:
    """One byte less is a shorter context."""
    need = pair_bytes(TARGET, DRAFT, 4096)
    assert verdict(TARGET, DRAFT, memory(need)).context == 4096
    assert verdict(TARGET, DRAFT, memory(need - 1)).context == 3072


def test_nobody_is_given_a_context_too_short_to_chat_in() -> None:
    """It does not fit then."""
    found = verdict(TARGET, DRAFT, memory(pair_bytes(TARGET, DRAFT, SHORTEST) - 1))
    assert (found.text, found.fits, found.context) == ("does not fit", False, 8192)


def test_a_context_that_was_asked_for_is_never_shortened() -> None:
    """Too little memory for it is said."""
    room = memory(pair_bytes(TARGET, DRAFT, 4096))
    assert verdict(TARGET, DRAFT, room, context=4096).text == "fits"
    assert verdict(TARGET, DRAFT, room, context=4097).text == "does not fit"
    assert verdict(TARGET, DRAFT, room, context=1000).context == 1024


def test_the_default_is_no_longer_than_the_model_was_trained_for() -> None:
    """A model for 1000 tokens gets the next multiple of 256."""
    short = replace(TARGET, shape=replace(LLAMA_8B, trained_context=1000))
    assert verdict(short, None, laptop(16)).context == 1024


def test_a_quantized_cache_takes_less_of_the_target_and_leaves_the_draft_alone() -> None:
    """Its cache stays at f16."""
    saved = pair_bytes(TARGET, None, 8192) - pair_bytes(TARGET, None, 8192, "q8_0")
    assert saved > 0
    assert pair_bytes(TARGET, DRAFT, 8192) - pair_bytes(TARGET, DRAFT, 8192, "q8_0") == saved


def test_on_a_card_the_context_is_shortened_before_layers_are_left_out() -> None:
    """A layer outside costs more speed than it is worth."""
    assert verdict(TARGET, DRAFT, memory(64 * GIB, 8 * GIB)).text == "fits"
    found = verdict(TARGET, DRAFT, memory(64 * GIB, pair_bytes(TARGET, DRAFT, 3072)))
    assert (found.text, found.gpu_layers) == ("fits with context 3072", -1)


def test_what_does_not_fit_on_a_card_is_split() -> None:
    """With the whole context, and as many layers as fit."""
    small, large = (verdict(TARGET, DRAFT, memory(64 * GIB, gpu * GIB)) for gpu in (3, 5))
    assert small.text == f"partly on the GPU: {small.gpu_layers} layers"
    assert 0 < small.gpu_layers < large.gpu_layers < LLAMA_8B.layers
    assert small.context == large.context == 8192


def test_a_card_too_small_for_one_layer_is_not_used() -> None:
    """The model runs as if there were none."""
    found = verdict(TARGET, DRAFT, memory(64 * GIB, GIB // 8))
    assert (found.text, found.gpu_layers) == ("fits", 0)


def test_layers_that_were_asked_for_stay() -> None:
    """And the context is what fits beside them."""
    card = memory(64 * GIB, 5 * GIB)
    most = verdict(TARGET, DRAFT, card).gpu_layers
    assert verdict(TARGET, DRAFT, card, gpu_layers=4).gpu_layers == 4
    assert verdict(TARGET, DRAFT, card, gpu_layers=0).text == "fits"
    assert verdict(TARGET, DRAFT, card, gpu_layers=-1).text == "does not fit"
    pressed = verdict(TARGET, DRAFT, card, gpu_layers=most + 1)
    assert pressed.gpu_layers == most + 1
    assert pressed.context < 8192


def test_unified_memory_is_one_memory() -> None:
    """Layers left to the CPU still take of it: splitting helps only where Metal allows less than there is."""
    need = pair_bytes(TARGET, DRAFT, 8192)
    assert verdict(TARGET, DRAFT, memory(need, need, unified=True)).text == "fits"
    assert verdict(TARGET, DRAFT, memory(need * 1.2, need * 0.7, unified=True)).text.startswith("partly on the GPU: ")
    assert verdict(TARGET, DRAFT, memory(need * 0.7, need * 0.6, unified=True)).text == "does not fit"
    assert verdict(TARGET, DRAFT, memory(need * 0.7, need * 0.6)).fits


@pytest.mark.parametrize("kind", [laptop, apple_silicon, cuda])
def test_more_memory_is_never_worse(kind: object) -> None:
    """Verdicts go one way as machines grow."""
    order = ("does not fit", "partly", "fits with", "fits")
    found = [verdict(TARGET, DRAFT, kind(size)) for size in (2, 4, 6, 7, 8, 9, 10, 12, 16, 64)]  # type: ignore[operator]
    ranks = [max(rank for rank, text in enumerate(order) if each.text.startswith(text)) for each in found]
    ranks = [3 if each.text == "fits" else rank for each, rank in zip(found, ranks, strict=True)]
    assert ranks == sorted(ranks)
    assert ranks[-1] == 3


@pytest.mark.parametrize(
    ("machine", "quantization"),
    [
        (laptop(8), "Q3_K_M"),
        (laptop(16), "Q4_K_M"),
        (apple_silicon(16), "Q4_K_M"),
        (laptop(24), "Q6_K"),
        (apple_silicon(64), "Q8_0"),
        (cuda(8), "Q4_K_M"),
        (laptop(4), "Q2_K"),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_the_quantization_is_chosen_by_memory(machine: Machine, quantization: str) -> None:
    """Q4_K_M where it fits, more bits where memory is plenty, fewer where it is scarce, the smallest where nothing fits."""
    assert best_file(EIGHT, machine, DRAFT).quantization == quantization


def test_more_than_eight_bits_are_never_chosen() -> None:
    """They only cost time, unless there is nothing else."""
    assert best_file(EIGHT, laptop(512)).quantization == "Q8_0"
    assert best_file(Model(EIGHT.files[-1:]), laptop(512)).quantization == "F16"


def test_a_mixed_quantization_is_preferred_where_memory_is_scarce() -> None:
    """Q4_K_M over Q4_0, though that is smaller."""
    scarce = memory(pair_bytes(Sized(LLAMA_8B, 4_920_000_000), None, 8192) + 1)
    assert best_file(EIGHT, scarce).quantization == "Q4_K_M"


def test_without_a_shape_the_sizes_decide() -> None:
    """As for a repository whose header cannot be read."""
    unknown = replace(EIGHT, shape=None)
    assert best_file(unknown, laptop(16)).quantization == "Q4_K_M"
    assert best_file(unknown, laptop(64)).quantization == "Q8_0"


def test_a_model_without_files_is_a_mistake() -> None:
    """Of whoever asks."""
    with pytest.raises(ValueError, match="no file"):
        best_file(Model(()), laptop(16))


def test_a_draft_is_small_and_a_target_good() -> None:
    """A draft model has to be fast; its mistakes cost only speed."""
    chosen = best_pair(EIGHT, ONE, apple_silicon(64))
    assert [file.quantization for file in chosen] == ["Q8_0", "Q4_K_M"]
    only_large = Model((File("Q8_0", 1_320_000_000), File("F16", 2_480_000_000)), LLAMA_1B)
    assert best_pair(EIGHT, only_large, laptop(16))[1].quantization == "Q8_0"


@pytest.mark.parametrize(
    ("name", "width"),
    [
        ("Q4_K_M", 4),
        ("UD-Q4_K_XL", 4),
        ("IQ2_XXS", 2),
        ("Q8_0", 8),
        ("MXFP4_MOE", 4),
        ("BF16", 16),
        ("f16", 16),
        ("F32", 32),
        ("model", 16),
    ],
)
def test_bits_are_read_from_the_name(name: str, width: int) -> None:
    """Names are all that a hub tells."""
    assert bits(name) == width
