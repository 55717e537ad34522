"""The bench pair: a costlier target of the same function, and a draft that agrees in part."""

import sys
from pathlib import Path

import gguf
import numpy as np
import pytest
from numpy.typing import NDArray

import tiny
from localspec.engine.errors import ModelError, UserError
from localspec.engine.llama import Context, ContextSettings, Model
from localspec.measure.pair import make_draft, make_pair, make_target

TEXT = list(
    b"What the text says is not important; there only has to be enough of it to look at. 0123456789 (and so on)"
)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small model, with a quantization in its name."""
    folder = tmp_path_factory.mktemp("source")
    return tiny.llama(folder / "small-v1.5.Q4_1.gguf", chat_template=tiny.CHAT_TEMPLATE)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the pair goes: it is not there yet."""
    return tmp_path / "pair"


def test_names_hold_every_parameter(source: Path, folder: Path) -> None:
    """And nothing else stays in the folder."""
    pair = make_pair(source, folder, extra_blocks=3, noise=0.25, seed=7)
    names = ["small-v1.5-target-q8_0-extra3.gguf", "small-v1.5-draft-q4_0-noise0.25-seed7.gguf"]
    assert [path.name for path in pair] == names
    assert sorted(path.name for path in folder.iterdir()) == sorted(names)


def test_extra_blocks_change_the_cost_and_not_one_logit(source: Path, folder: Path) -> None:
    """More blocks than the model has, so that each is copied, some twice."""
    plain, larger = make_target(source, folder), make_target(source, folder, 5)
    assert _blocks(larger) == _blocks(plain) + 5
    assert larger.stat().st_size > 2 * plain.stat().st_size
    assert np.array_equal(_logits(plain), _logits(larger))


def test_extra_blocks_are_real_blocks_but_for_what_they_write(source: Path, folder: Path) -> None:
    """They cost what real ones cost: the same shapes, the same types, and weights that are not all zero."""
    tensors = _tensors(make_target(source, folder, 3))
    zero = {name for name, tensor in tensors.items() if not tensor.data.any()}
    assert zero == {f"blk.{n}.{part}.weight" for n in (2, 3, 4) for part in ("attn_output", "ffn_down")}
    for name, tensor in tensors.items():
        number = int(name.split(".")[1]) if name.startswith("blk.") else 0
        if number >= 2:
            original = tensors[name.replace(f"blk.{number}.", f"blk.{number % 2}.")]
            assert (tensor.tensor_type, tuple(tensor.shape)) == (original.tensor_type, tuple(original.shape))
            assert name in zero or np.array_equal(tensor.data, original.data)


def test_metadata_stays(source: Path, folder: Path) -> None:
    """Vocabulary, chat template and all, except the number of blocks."""
    before, after = (_metadata(make_target(source, folder, extra)) for extra in (0, 3))
    assert after.pop("llama.block_count") == before.pop("llama.block_count") + 3
    assert after == before
    assert before["tokenizer.chat_template"] == tiny.CHAT_TEMPLATE


def test_agreement_falls_with_noise(source: Path, folder: Path) -> None:
    """From nearly everything to little."""
    target = _logits(make_target(source, folder)).argmax(axis=1)
    drafts = [_logits(make_draft(source, folder, noise=noise)).argmax(axis=1) for noise in (0.0, 0.1, 1.0)]
    agreement = [(draft == target).mean() for draft in drafts]
    assert agreement[0] > agreement[1] > agreement[2]
    assert agreement[0] > 0.6
    assert agreement[2] < 0.3


def test_noise_has_the_size_asked_for(source: Path, folder: Path) -> None:
    """In standard deviations of each matrix; a quantized zero-noise draft is what it is measured against."""
    exact, noisy = (_tensors(make_draft(source, folder, noise=noise)) for noise in (0.0, 2.0))
    for name, tensor in exact.items():
        before, after = (_values(one) for one in (tensor, noisy[name]))
        if name.startswith("blk.") and before.ndim == 2:
            assert (after - before).std() == pytest.approx(2.0 * before.std(), rel=0.1)
        else:
            assert np.array_equal(before, after)


def test_the_seed_decides_the_noise(source: Path, folder: Path, tmp_path: Path) -> None:
    """The same seed gives the same file anywhere, another one another."""
    one, again = make_draft(source, folder, seed=1), make_draft(source, tmp_path / "elsewhere", seed=1)
    assert one.read_bytes() == again.read_bytes()
    assert one.read_bytes() != make_draft(source, folder, seed=2).read_bytes()


def test_whole_files_are_kept_and_cut_ones_made_again(source: Path, folder: Path) -> None:
    """Making a pair twice takes no time the second time."""
    target, draft = make_pair(source, folder, extra_blocks=1)
    stamps = (target.stat().st_mtime_ns, draft.stat().st_mtime_ns)
    whole = target.read_bytes()
    assert make_pair(source, folder, extra_blocks=1) == (target, draft)
    assert (target.stat().st_mtime_ns, draft.stat().st_mtime_ns) == stamps
    target.write_bytes(whole[:-1000])
    make_pair(source, folder, extra_blocks=1)
    assert target.read_bytes() == whole
    assert draft.stat().st_mtime_ns == stamps[1]


def test_progress_ends_at_the_end(source: Path, folder: Path) -> None:
    """For both files, rising."""
    seen: list[tuple[str, float]] = []
    make_pair(source, folder, extra_blocks=2, progress=lambda what, share: seen.append((what, share)))
    for what in ("target", "draft"):
        shares = [share for name, share in seen if name == what]
        assert shares == sorted(shares)
        assert shares[-1] == 1.0


def test_a_failure_leaves_nothing_behind(source: Path, folder: Path) -> None:
    """Neither a half file nor what was needed on the way."""

    def fail(what: str, share: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_pair(source, folder, extra_blocks=2, progress=fail)
    assert list(folder.iterdir()) == []


def test_models_of_another_kind_are_refused(tiny_lfm2: Path, folder: Path) -> None:
    """A convolution block cannot be silenced in this way."""
    with pytest.raises(ModelError, match="choose a plain model"):
        make_target(tiny_lfm2, folder, 1)
    assert list(folder.iterdir()) == []


def test_without_the_gguf_package_one_sentence_says_so(
    source: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the remedy; and a pair that is there needs no package."""
    made = make_pair(source, folder, extra_blocks=1)
    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(UserError, match=r"localspec\[bench\]"):
        make_pair(source, folder, extra_blocks=2)
    assert make_pair(source, folder, extra_blocks=1) == made


def _logits(path: Path) -> NDArray[np.float32]:
    """Shape (n, V), each row from a pass of one token."""
    rows = []
    with Model(path) as model, Context(model, ContextSettings(length=256, rows=1, threads=1)) as context:
        for token in TEXT:
            context.decode((token,), rows=1)
            rows.append(context.row(0).copy())
    return np.array(rows)


def _tensors(path: Path) -> dict[str, gguf.ReaderTensor]:
    return {tensor.name: tensor for tensor in gguf.GGUFReader(path).tensors}


def _values(tensor: gguf.ReaderTensor) -> NDArray[np.float32]:
    return gguf.dequantize(tensor.data, tensor.tensor_type)


def _metadata(path: Path) -> dict[str, object]:
    fields = gguf.GGUFReader(path).fields
    return {name: field.contents() for name, field in fields.items() if not name.startswith("GGUF.")}


def _blocks(path: Path) -> object:
    return _metadata(path)["llama.block_count"]
