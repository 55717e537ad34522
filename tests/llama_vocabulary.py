"""A model's vocabulary straight from llama.cpp, and one of the SentencePiece kind made from nothing."""

from __future__ import annotations

from pathlib import Path

import gguf

from localspec.engine.llama.library import lib

_SPECIAL = lib.LLAMA_TOKEN_ATTR_CONTROL | lib.LLAMA_TOKEN_ATTR_UNKNOWN

PIECES = ["<", "s", ">", "/", "<s", "▁", "▁<", "a", "b", "\n", "<|", "u", "|>"]
"""What the SentencePiece vocabulary has beside single bytes; "<s" is what lets it spell the control token <s>."""


class LlamaVocabulary:
    """The vocabulary of a GGUF file, loaded without its weights."""

    def __init__(self, path: Path) -> None:
        params = lib.llama_model_default_params()
        params.vocab_only = True
        self._model = lib.llama_model_load_from_file(str(path).encode(), params)
        assert self._model, f"{path} does not load"
        self._vocab = lib.llama_model_get_vocab(self._model)
        source = lib.llama_model_chat_template(self._model, None)
        self.chat_template = source.decode() if source else None
        self.add_bos = bool(lib.llama_vocab_get_add_bos(self._vocab))
        self.bos = int(lib.llama_vocab_bos(self._vocab))
        ids = range(lib.llama_vocab_n_tokens(self._vocab))
        self.special_ids = [token for token in ids if lib.llama_vocab_get_attr(self._vocab, token) & _SPECIAL]
        self.special_texts = tuple(map(self.text_of, self.special_ids))

    def text_of(self, token: int) -> str:
        return str(lib.llama_vocab_get_text(self._vocab, token).decode())

    def tokenize(self, text: str, *, special: bool) -> list[int]:
        raw = text.encode()
        ids = (lib.llama_token * (2 * len(raw) + 8))()
        count = lib.llama_tokenize(self._vocab, raw, len(raw), ids, len(ids), False, special)
        assert count >= 0
        return list(ids[:count])

    def detokenize(self, ids: list[int]) -> str:
        """The text of the ids, special tokens written out."""
        buffer = bytearray()
        for token in ids:
            piece = lib.ctypes.create_string_buffer(256)
            count = lib.llama_token_to_piece(self._vocab, token, piece, 256, 0, True)
            assert count >= 0
            buffer += piece.raw[:count]
        return buffer.decode()


def write_sentencepiece(path: Path, *, name: str = "tiny", space_prefix: bool = True) -> Path:
    """A vocabulary with <unk> 0, <s> 1, </s> 2, the 256 bytes, `PIECES`, and <|u|>; llama.cpp knows Phi-3 by `name`."""
    texts = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *PIECES, "<|endoftext|>", "<|u|>"]
    unknown, control, byte, normal = (
        int(kind)
        for kind in (gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.BYTE, gguf.TokenType.NORMAL)
    )
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name(name)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(texts)
    writer.add_token_types([unknown, control, control, *[byte] * 256, *[normal] * len(PIECES), control, control])
    writer.add_token_scores([-float(index) for index in range(len(texts))])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_add_bos_token(True)
    writer.add_add_space_prefix(space_prefix)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
