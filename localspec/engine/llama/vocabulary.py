"""The vocabulary of a loaded model: text to token ids and back."""

import ctypes
from functools import cached_property
from typing import Protocol

from localspec.engine.errors import ModelError
from localspec.engine.llama.library import LlamaError, lib

_SPECIAL = lib.LLAMA_TOKEN_ATTR_CONTROL | lib.LLAMA_TOKEN_ATTR_UNKNOWN


class Owner(Protocol):
    """The model that a vocabulary belongs to."""

    @property
    def handle(self) -> object:
        """The C pointer of the model. Raises ValueError when it is closed."""


class Vocabulary:
    """Token ids of one model. Holds the model, so that it outlives its vocabulary; once it is closed, only what has been
    asked before is still known, and the rest raises ValueError."""

    def __init__(self, model: Owner, handle: object) -> None:
        self._model = model
        self._pointer = handle
        self.size: int = lib.llama_vocab_n_tokens(handle)
        """Number of token ids, V."""
        self.kind: int = lib.llama_vocab_type(handle)
        """llama.cpp's tokenizer type."""
        self._pieces: list[bytes | None] = [None] * self.size
        self._ends: dict[int, bool] = {}

    @property
    def bos(self) -> int:
        """The beginning-of-sequence token, -1 when there is none."""
        return int(lib.llama_vocab_bos(self._vocab))

    @property
    def eos(self) -> int:
        """The end-of-sequence token, -1 when there is none."""
        return int(lib.llama_vocab_eos(self._vocab))

    @property
    def add_bos(self) -> bool:
        """Whether the model wants a beginning-of-sequence token before every text."""
        return bool(lib.llama_vocab_get_add_bos(self._vocab))

    def is_end(self, token: int) -> bool:
        """Whether the token ends a generation (end of sequence, end of turn, ...)."""
        known = self._ends.get(token)
        if known is None:
            known = self._ends[token] = bool(lib.llama_vocab_is_eog(self._vocab, self._checked(token)))
        return known

    def token_text(self, token: int) -> str:
        """The token as it stands in the vocabulary ("Ġthe"), for messages and comparisons."""
        return str(lib.llama_vocab_get_text(self._vocab, self._checked(token)).decode("utf-8", "replace"))

    def attributes(self, token: int) -> int:
        """llama.cpp's attribute bits of the token."""
        return int(lib.llama_vocab_get_attr(self._vocab, self._checked(token)))

    @cached_property
    def special_texts(self) -> tuple[str, ...]:
        """The texts of the control and unknown tokens: what a person's words must never turn into."""
        texts = (self.token_text(token) for token in range(self.size) if self.attributes(token) & _SPECIAL)
        return tuple(text for text in texts if text)

    def tokenize(self, text: str, *, special: bool) -> list[int]:
        """The token ids of a text, without any BOS or EOS added. With `special`, texts of control tokens become them.

        Raises ModelError where a vocabulary that is damaged has no token for something.
        """
        raw = text.encode("utf-8", "replace")
        room = len(raw) + 8
        for _attempt in range(2):
            ids = (lib.llama_token * room)()
            count = lib.llama_tokenize(self._vocab, raw, len(raw), ids, room, False, special)
            if count >= 0:
                return self._known(ids[:count])
            room = -count
        raise LlamaError(f"a text of {len(raw)} bytes could not be tokenized")

    def _known(self, tokens: list[int]) -> list[int]:
        if tokens and not 0 <= min(tokens) <= max(tokens) < self.size:
            raise ModelError(
                "The model's vocabulary has no token for a part of this text; download its file again, or choose another one."
            )
        return tokens

    def piece(self, token: int) -> bytes:
        """The bytes that the token adds to the text; nothing for control tokens. May end inside a character."""
        known = self._pieces[self._checked(token)]
        if known is None:
            known = self._pieces[token] = self._piece(token)
        return known

    def text(self, tokens: list[int]) -> str:
        """The text of the tokens, control tokens left out."""
        return b"".join(self.piece(token) for token in tokens).decode("utf-8", "replace")

    def _piece(self, token: int) -> bytes:
        room = 64
        for _attempt in range(2):
            buffer = ctypes.create_string_buffer(room)
            count = lib.llama_token_to_piece(self._vocab, token, buffer, room, 0, False)
            if count >= 0:
                return buffer.raw[:count]
            room = -count
        raise LlamaError(f"token {token} has no text")

    @property
    def _vocab(self) -> object:
        """The C pointer, which is freed with the model."""
        _ = self._model.handle
        return self._pointer

    def _checked(self, token: int) -> int:
        if not 0 <= token < self.size:
            raise ValueError(f"token id {token} is outside the vocabulary of {self.size}")
        return token
