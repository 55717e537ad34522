"""GGUF files that are wrong in one or two places, each the same for the same seed.

A file is taken apart, changed, and put together again: nearly all of it stays right, so that what is wrong reaches the code
behind the first check.
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

from gguf_parts import ARRAY, BOOL, CODES, F32, I32, I64, STRING, U32, U64, Pair, Parts, Row, array, taken_apart

from gguf_bytes import text_value

INTEGERS = [0, 1, 2, 3, 5, 7, 16, 63, 64, 65, 127, 255, 513, 4097, 1 << 16, (1 << 24) + 1, (1 << 31) - 1, 1 << 31]
INTEGERS += [(1 << 32) - 1, (1 << 62) + 1, (1 << 64) - 1]
FLOATS = [0.0, -1.0, 1e-30, 1e30, 3.4e38, float("inf"), float("-inf"), float("nan")]
ARCHITECTURES = (
    "llama mllama deci falcon grok gpt2 gptneox mpt bloom stablelm qwen2 qwen2moe qwen3 qwen3moe qwen3next phi2 phi3 "
    "phimoe plamo plamo2 codeshell orion internlm2 minicpm minicpm3 gemma gemma2 gemma3 gemma3n gemma4 starcoder2 "
    "mamba mamba2 jamba falcon-h1 xverse command-r cohere2 dbrx olmo olmo2 olmoe openelm arctic deepseek deepseek2 "
    "chatglm glm4 glm4moe bitnet t5 jais nemotron nemotron_h exaone exaone4 rwkv6 rwkv6qwen2 rwkv7 arwkv7 granite "
    "granitemoe granitehybrid chameleon plm bailingmoe dots1 arcee ernie4_5 hunyuan-moe smollm3 gpt-oss lfm2 lfm2moe "
    "smallthinker llada dream apertus seed_oss grovemoe"
)
MORE_KEYS = (
    "rope.dimension_count rope.scaling.factor rope.scaling.original_context_length rope.scaling.attn_factor "
    "rope.freq_base_swa rope.scaling.yarn_log_multiplier attention.key_length attention.value_length "
    "attention.sliding_window expert_count expert_used_count expert_shared_count expert_group_count "
    "expert_group_used_count attention.clamp_kqv logit_scale attention.max_alibi_bias attention.layer_norm_epsilon "
    "attention.group_norm_groups leading_dense_block_count nextn_predict_layers attention.shared_kv_layers "
    "final_logit_softcapping attn_logit_softcapping attention.scale residual_scale embedding_scale ssm.group_count "
    "wkv.head_size token_shift_count full_attention_interval attention.key_length_mla attention.value_length_mla "
    "tensor_data_layout pooling_type interleave_moe_layer_step embedding_length_out features_length dense_2_feat_in "
    "attention.sliding_window_pattern rope.dimension_sections vocab_size"
)
TOKEN_NAMES = "bos eos eot eom unknown seperator padding fim_pre mask cls"
TOKENIZERS = "llama gpt2 bert t5 rwkv plamo2 none no_vocab gemma4 bogus default llama-bpe tekken deepseek-llm"
TEMPLATES = [
    "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
    "{{ 'a' * 10**12 }}",
    "{{ 9**(9**9) }}",
    "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "{% import 'os' as os %}{{ os.system('x') }}",
    "{% for %}",
    "{{ messages[0].content.x.y }}",
    "{{ raise_exception('no\x1b[2J') }}",
    "",
    "\ud800".encode("utf-8", "surrogatepass").decode("latin-1") * 50,
    "<|im_start|>" * 8000,
    "{" * 90000,
]


def _number(random: Random, *, real: bool = False) -> tuple[int, bytes]:
    """A type and a value of it that may well be wrong."""
    if real or random.random() < 0.15:
        return F32, struct.pack("<f", random.choice(FLOATS))
    kind = random.choice([U32, U32, U32, I32, U64, I64])
    bits = 8 * struct.calcsize(CODES[kind])
    chosen = random.choice(INTEGERS) % (1 << bits)
    return kind, struct.pack("<Q", chosen)[: bits // 8]


def hyperparameter(parts: Parts, random: Random) -> str:
    """A number of the architecture is another one, or a list of numbers."""
    start = parts.architecture.encode() + b"."
    pair = random.choice([pair for pair in parts.pairs if pair.key.startswith(start) and pair.kind != STRING])
    pair.kind, pair.value = _number(random, real=pair.kind == F32)
    if random.random() < 0.1:
        pair.value = array(pair.kind, [0] * random.choice([0, 1, 2, 600]))
        pair.kind = ARRAY
    return f"{pair.key.decode()} = {pair.kind}:{pair.value[:12].hex()}"


def added(parts: Parts, random: Random) -> str:
    """A number that the architecture may have and this model had not."""
    key = random.choice(MORE_KEYS.split())
    kind, value = _number(random)
    parts.put(f"{parts.architecture}.{key}", kind, value)
    return f"added {key} = {kind}:{value.hex()}"


def wrong_type(parts: Parts, random: Random) -> str:
    """A metadata value of another type than it has to have."""
    pair = random.choice(parts.pairs)
    values = {
        STRING: text_value("two"),
        BOOL: b"\1",
        F32: struct.pack("<f", 2.5),
        0: b"\2",
        I64: struct.pack("<q", -1),
        ARRAY: random.choice([array(U32, [1, 2]), array(STRING, ["a"]), array(F32, []), struct.pack("<IQ", ARRAY, 1)]),
        99: b"",
    }
    pair.kind = random.choice([kind for kind in values if kind != pair.kind or kind == ARRAY])
    pair.value = values[pair.kind]
    return f"{pair.key.decode()} is of type {pair.kind}"


def missing(parts: Parts, random: Random) -> str:
    """A metadata value is not there."""
    return f"no {parts.pairs.pop(random.randrange(len(parts.pairs))).key.decode()}"


def twice(parts: Parts, random: Random) -> str:
    """A metadata value, or a tensor, is there twice."""
    many: list[Pair] | list[Row] = random.choice([parts.pairs, parts.rows])
    many.append(random.choice(many))  # type: ignore[arg-type]
    return "something twice"


def counts(parts: Parts, random: Random) -> str:
    """The header claims other counts, a string or an array another length."""
    huge = random.choice([0, 1, 1000, 1 << 20, 1 << 31, 1 << 40, (1 << 63) - 1, 1 << 63, (1 << 64) - 1])
    what = random.randrange(4)
    if what == 0:
        parts.claimed_pairs = huge
    elif what == 1:
        parts.claimed_rows = huge
    else:
        kinds = [STRING] if what == 2 else [ARRAY]
        pair = random.choice([pair for pair in parts.pairs if pair.kind in kinds])
        at = 4 if pair.kind == ARRAY else 0
        pair.value = pair.value[:at] + struct.pack("<Q", huge) + pair.value[at + 8 :]
    return f"count {what} is {huge}"


def special_token(parts: Parts, random: Random) -> str:
    """A special token of the tokenizer that is outside the vocabulary, or odd."""
    name = random.choice(TOKEN_NAMES.split())
    kind, value = _number(random)
    parts.put(f"tokenizer.ggml.{name}_token_id", kind, value)
    return f"{name} = {kind}:{value.hex()}"


def tokenizer(parts: Parts, random: Random) -> str:
    """Another kind of tokenizer than its tables are for."""
    key = random.choice(["model", "pre"])
    parts.put(f"tokenizer.ggml.{key}", STRING, text_value(name := random.choice(TOKENIZERS.split())))
    for flag in ("add_space_prefix", "add_bos_token", "remove_extra_whitespaces"):
        if random.random() < 0.3:
            parts.put(f"tokenizer.ggml.{flag}", BOOL, b"\1")
    if random.random() < 0.3:
        parts.put("tokenizer.ggml.precompiled_charsmap", ARRAY, array(1, [127] * random.choice([0, 1, 3, 40])))
    return f"tokenizer {key} = {name}"


def token_tables(parts: Parts, random: Random) -> str:
    """The tables of the tokenizer: too short, too long, empty, equal, huge, no text, of another type."""
    found = parts.pair("tokenizer.ggml.tokens")
    count = struct.unpack_from("<Q", found.value, 4)[0] if found else 10
    wild = random.choice(["", "a", "\x00", "a" * 70000, " ", "<0x", "<0xZZ>"])
    size = random.choice([0, 1, count - 1, count + 1, count * 3, count])
    what = random.choice(["tokens", "token_type", "merges", "scores"])
    values: dict[str, tuple[int, Sequence[object]]] = {
        "tokens": (STRING, [wild] + ([f"t{number}" for number in range(size - 1)] if size != count else [wild] * 4)),
        "token_type": (I32, [random.choice([0, 1, 2, 6, 7, -1, 1 << 30])] * size),
        "merges": (STRING, [random.choice(["", " ", "a", "a b c", "no such", wild])] * size),
        "scores": (F32, [random.choice(FLOATS)] * size),
    }
    kind, chosen = values[what]
    if random.random() < 0.15:
        kind, chosen = U32, [1] * size
    parts.put(f"tokenizer.ggml.{what}", ARRAY, array(kind, chosen))
    return f"{what} of {len(chosen)}"


def large_vocabulary(parts: Parts, random: Random) -> str:
    """A vocabulary far larger than the tensors are for."""
    size = random.choice([300, 5000, 300_000])
    parts.put("tokenizer.ggml.tokens", ARRAY, array(STRING, [f"t{number}" for number in range(size)]))
    if random.random() < 0.5:
        parts.put(f"{parts.architecture}.vocab_size", U32, struct.pack("<I", size))
    return f"vocabulary of {size}"


def bad_template(parts: Parts, random: Random) -> str:
    """A chat template that fails, or does harm."""
    text = random.choice(TEMPLATES).encode("latin-1")
    parts.put("tokenizer.chat_template", STRING, struct.pack("<Q", len(text)) + text)
    return f"template {text[:20]!r}"


def shape(parts: Parts, random: Random) -> str:
    """A tensor has another shape."""
    row = random.choice(parts.rows)
    what = random.randrange(4)
    if what == 0:
        row.shape.reverse()
    elif what == 1:
        row.shape = [random.choice([1, 2, 64]) for _ in range(random.choice([0, 1, 2, 3, 4, 5]))]
    else:
        place = random.randrange(len(row.shape))
        row.shape[place] = random.choice([0, 1, row.shape[place] // 2, row.shape[place] + 1, 1 << 31, 1 << 62, -1])
    if random.random() < 0.7:
        parts.lay_out()
    return f"{row.name.decode()} is {row.shape}"


def tensor_type(parts: Parts, random: Random) -> str:
    """A tensor has another type, one that llama.cpp does not know, or one in which it does not come."""
    row = random.choice(parts.rows)
    row.kind = random.choice([*range(45), 1 << 31, (1 << 32) - 1])
    if random.random() < 0.7:
        parts.lay_out()
    return f"{row.name.decode()} of type {row.kind}"


def place(parts: Parts, random: Random) -> str:
    """A tensor lies elsewhere: outside the file, upon another one, unaligned."""
    row = random.choice(parts.rows)
    row.offset = random.choice(
        [0, 1, 32, row.offset + 4, len(parts.data), 1 << 40, (1 << 63) - 32, 1 << 63, (1 << 64) - 32]
    )
    return f"{row.name.decode()} at {row.offset}"


def renamed(parts: Parts, random: Random) -> str:
    """A tensor has another name, or is not there."""
    row = random.choice(parts.rows)
    old = row.name.decode()
    odd = [b"", b"x" * 63, b"x" * 64, b"x" * 5000, b"\xff\xfe"]
    row.name = random.choice([*odd, b"rope_freqs.weight", b"blk.9.ffn_up.weight"])
    if random.random() < 0.4:
        parts.rows.remove(row)
    return f"{old} is {row.name[:12]!r} or missing"


def other_architecture(parts: Parts, random: Random) -> str:
    """Another architecture, with the numbers and tensors of this one."""
    old, new = parts.architecture, random.choice(ARCHITECTURES.split())
    parts.put("general.architecture", STRING, text_value(new))
    for pair in parts.pairs:
        if pair.key.startswith(old.encode() + b"."):
            pair.key = new.encode() + pair.key[len(old) :]
    return f"architecture {new}"


def odd_number(parts: Parts, random: Random) -> str:
    """The alignment, the number of parts, the version or the kind of file."""
    key = random.choice(["general.alignment", "split.count", "split.no", "split.tensors.count", "general.file_type"])
    kind, value = _number(random)
    parts.put(key, kind, value)
    parts.version = random.choice([3, 3, 3, 2, 1, 4])
    return f"{key} = {kind}:{value.hex()}, version {parts.version}"


def weights(parts: Parts, random: Random) -> str:
    """The weights are no numbers, or noise."""
    size = len(parts.data)
    piece = random.choice([b"\xff", b"\0\0\x80\x7f", b"\0", random.randbytes(4096)])
    start = random.choice([0, size // 2])
    parts.data = parts.data[:start] + (piece * (size // len(piece) + 1))[: size - start]
    return f"weights of {piece[:4].hex()}"


CHANGES: list[Callable[[Parts, Random], str]] = [
    hyperparameter,
    hyperparameter,
    added,
    wrong_type,
    missing,
    twice,
    counts,
    special_token,
    tokenizer,
    token_tables,
    large_vocabulary,
    bad_template,
    shape,
    tensor_type,
    place,
    renamed,
    other_architecture,
    odd_number,
    weights,
]
"""What can be wrong; bytes that are lost or changed come on top."""


def mutated(source: Path, path: Path, seed: int) -> str:
    """Write the mutant of that seed of a sound file. Returns what is wrong with it."""
    random, parts = Random(seed), taken_apart(source)
    kind = seed % (len(CHANGES) + 2)
    said = []
    if kind < len(CHANGES):
        said.append(CHANGES[kind](parts, random))
        if random.random() < 0.15:
            # Where nothing is left there to change, that is enough.
            with contextlib.suppress(IndexError, struct.error):
                said.append(random.choice(CHANGES)(parts, random))
    content = parts.written()
    if kind > len(CHANGES):
        content = _flipped(content, len(parts.data), random)
        said.append("flipped bits")
    if kind == len(CHANGES) or random.random() < 0.05:
        content = content[: random.randrange(len(content))]
        said.append(f"cut at {len(content)}")
    path.write_bytes(content)
    return "; ".join(said)


def _flipped(content: bytes, data: int, random: Random) -> bytes:
    """`content` with a few bits changed, most of them before the last `data` bytes."""
    changed = bytearray(content)
    for _ in range(random.choice([1, 4, 40])):
        end = len(changed) - (data if random.random() < 0.8 else 0)
        changed[random.randrange(end)] ^= 1 << random.randrange(8)
    return bytes(changed)
