"""Whether two models speak the same tokens."""

import re
from typing import Protocol

from localspec.engine.errors import ModelError

_PADDING = re.compile(r"\[?<?\|?(pad|unused|reserved|extra|dummy|placeholder|image_soft)", re.IGNORECASE)
"""Tokens that no text has: those that fill a vocabulary up, and the one in whose place Gemma 3 reads an image."""


class TokenTexts(Protocol):
    """A vocabulary to compare."""

    size: int
    kind: int

    def token_text(self, token: int) -> str:
        """The token as it stands in the vocabulary."""


def common_vocabulary(target: TokenTexts, draft: TokenTexts) -> int:
    """How many token ids the two have in common, from 0 on; the rest of the larger one may only be padding.

    Raises ModelError with the first differing id and both strings.
    """
    if target.kind != draft.kind:
        raise ModelError(
            "The draft model splits text in another way than the target; choose a draft of the same family."
        )
    common = min(target.size, draft.size)
    for token in range(common):
        ours, theirs = target.token_text(token), draft.token_text(token)
        if ours != theirs:
            raise ModelError(
                f"The draft model's vocabulary differs: token {token} is {ours!r} in the target and {theirs!r} in the "
                "draft; choose a draft of the same family."
            )
    larger, owner = (target, "target") if target.size > draft.size else (draft, "draft")
    for token in range(common, larger.size):
        text = larger.token_text(token)
        if text and not _PADDING.match(text):
            raise ModelError(
                f"The {owner} model's vocabulary has {larger.size - common} more tokens, such as {token}, {text!r}; "
                "choose a draft of the same family."
            )
    return common
