"""Rendered text to token ids, where only the template's own special tokens are special.

A person may write `<|im_end|>` in a message and mean just that. To tell such look-alikes from the template's own, the
template is rendered a second time from messages with a guard in them: a character that occurs nowhere else. A special
token that is still whole in the guarded text has no character of a message in it.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, partial
from itertools import pairwise
from typing import Protocol

from localspec.chat.sandbox import TemplateError
from localspec.engine.errors import UserError

Span = tuple[int, int]
"""Start and end, in characters."""

_NONCHARACTERS = range(0xFDD0, 0xFDF0)
_PRIVATE = range(0xF0000, 0x110000)
_STRIPPED = " \t\n\v\f\r"
"""What llama.cpp takes for white space beside a token that strips it."""


class Tokenizer(Protocol):
    """What a chat template needs to know about a vocabulary."""

    def tokenize(self, text: str, *, special: bool) -> list[int]:
        """The token ids of a text, never with BOS or EOS added. With `special`, texts of control tokens become them."""
        ...

    @property
    def special_texts(self) -> tuple[str, ...]:
        """The texts of the control and unknown tokens."""
        ...

    @property
    def add_bos(self) -> bool:
        """Whether the model wants a BOS token before every text."""
        ...

    @property
    def bos(self) -> int:
        """The BOS token, -1 when there is none."""
        ...


class SpecialTexts:
    """The texts of a vocabulary's special tokens, and where they occur."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = frozenset(filter(None, texts))
        self._longest = max(map(len, self._texts), default=0)
        self._sizes: dict[str, list[int]] = {}
        for text in self._texts:
            sizes = self._sizes.setdefault(text[0], [])
            if len(text) not in sizes:
                sizes.append(len(text))
        firsts = "".join(map(re.escape, self._sizes))
        self._first = re.compile(f"[{firsts}]" if firsts else "(?!)")

    def found(self, text: str) -> list[Span]:
        """Every occurrence of every special text, overlapping ones included, in order of their start."""
        starts = ((match.start(), match[0]) for match in self._first.finditer(text))
        spans = ((start, start + size) for start, first in starts for size in self._sizes[first])
        return [(start, end) for start, end in spans if text[start:end] in self._texts]

    def whole(self, guarded: str, guard: str) -> list[Span]:
        """The special tokens of a guarded text that no message has a part in, by llama.cpp's rule: longest first."""
        whole = [span for span in self.found(guarded) if not guarded.startswith(guard, span[1])]
        kept: list[Span] = []
        taken: set[int] = set()
        for start, end in sorted(whole, key=lambda span: (-len(guarded[slice(*span)].encode()), span)):
            if taken.isdisjoint(range(start, end)):
                taken.update(range(start, end))
                kept.append((start, end))
        return sorted(kept)

    def guard_all(self, content: str, guard: str, sought: Sequence[str]) -> str:
        """`content` with a guard after every character, white space and what is `sought` in it excepted."""
        kept = "|".join(re.escape(text) for text in sought if text in content) or "(?!)"
        pieces = re.split(f"({kept})", self._guard_whole(content, guard))
        pieces[::2] = [re.sub(r"\S+", lambda word: guard.join(word[0]) + guard, piece) for piece in pieces[::2]]
        return "".join(pieces)

    def sought_by(self, constants: Iterable[str]) -> list[str]:
        """What a template may look for in messages, the longest first; no part of a special text is among it.

        `constants` are the texts that the template has in quotes.
        """
        safe = (text for text in constants if text.strip() and not any(text in special for special in self._texts))
        return sorted(safe, key=len, reverse=True)

    def guard_some(self, content: str, guard: str) -> str:
        """`content` with a guard in every special text, and at an end that could be one end of a special text.

        For templates that do with messages what does not work with guards everywhere.
        """
        body = content.strip()
        sizes = range(1, len(body[: self._longest]) + 1)
        if any(body[:size] in self._tails for size in sizes):
            start = content.find(body) + 1
            content = content[:start] + guard + content[start:]
        if any(body[-size:] in self._heads for size in sizes):
            end = len(content.rstrip())
            content = content[:end] + guard + content[end:]
        return self._guard_whole(content, guard)

    def _guard_whole(self, content: str, guard: str) -> str:
        pieces, last = [], 0
        for start in sorted({start for start, _ in self.found(content)}):
            pieces.append(content[last : start + 1])
            last = start + 1
        return guard.join([*pieces, content[last:]])

    @cached_property
    def _heads(self) -> frozenset[str]:
        return frozenset(text[:size] for text in self._texts for size in range(1, len(text)))

    @cached_property
    def _tails(self) -> frozenset[str]:
        return frozenset(text[size:] for text in self._texts for size in range(1, len(text)))


def guard_for(text: str) -> str:
    """A character that is not in `text`: a noncharacter if there is one left, else one for private use."""
    used = set(text)
    for code in (*_NONCHARACTERS, *_PRIVATE):
        if chr(code) not in used:
            return chr(code)
    raise UserError("The conversation holds every character there is, so none is left to mark it with; shorten it.")


def own_specials(
    text: str,
    render: Callable[[Callable[[str], str]], str],
    specials: SpecialTexts,
    guard: str,
    sought: Sequence[str],
) -> tuple[str, list[Span]]:
    """The text to tokenize, and where the template's own special tokens are in it.

    `text` is the template rendered from the messages as they are; `render` renders it again with a function applied to
    every message. The text comes back changed only where the template has looked for a special token in a message.
    What is beyond this: a template that cuts messages at fixed places and joins the cuts into a special token.
    """
    try:
        guarded = render(partial(specials.guard_all, guard=guard, sought=sought))
    except TemplateError:
        guarded = ""
    if guarded.replace(guard, "") != text:
        guarded = render(partial(specials.guard_some, guard=guard))
    spans = []
    removed = position = 0
    for start, end in specials.whole(guarded, guard):
        removed += guarded.count(guard, position, start)
        spans.append((start - removed, end - removed))
        position = start
    return guarded.replace(guard, ""), spans


def encode(text: str, own: Sequence[Span], specials: SpecialTexts, tokenizer: Tokenizer) -> list[int]:
    """The token ids of `text`, in which exactly the special tokens at `own` are special.

    What lies between two of them, and has a look-alike in it, is tokenized as plain text; all else in one go.
    """
    strangers = sorted(set(specials.found(text)) - set(own))
    starts, ends = [start for start, _ in own], [end for _, end in own]
    plain: set[int] = set()
    for start, end in strangers:
        plain.update(range(bisect_right(starts, start), bisect_left(ends, end) + 1))
    ids: list[int] = []
    done = 0
    for gap in sorted(plain):
        start = ends[gap - 1] if gap > 0 else 0
        end = starts[gap] if gap < len(own) else len(text)
        if done < start:
            ids += tokenizer.tokenize(text[done:start], special=True)
        left = text[slice(*own[gap - 1])] if gap > 0 else ""
        right = text[slice(*own[gap])] if gap < len(own) else ""
        ids += _plain(_stripped(text[start:end], left, right, tokenizer), specials, tokenizer)
        done = end
    if done < len(text):
        ids += tokenizer.tokenize(text[done:], special=True)
    if tokenizer.add_bos and tokenizer.bos >= 0 and ids[:1] != [tokenizer.bos]:
        ids.insert(0, tokenizer.bos)
    return ids


def continuation(text: str, specials: SpecialTexts, tokenizer: Tokenizer) -> list[int]:
    """The token ids of a text that goes on right behind another, without one special token."""
    line = tokenizer.tokenize("\n", special=False)
    ids = _plain("\n" + text, specials, tokenizer)
    return ids[len(line) :] if ids[: len(line)] == line else _plain(text, specials, tokenizer)


def _stripped(text: str, left: str, right: str, tokenizer: Tokenizer) -> str:
    """`text` without the white space that the special tokens beside it take away."""
    if left and tokenizer.tokenize(left + " ", special=True) == tokenizer.tokenize(left, special=True):
        text = text.lstrip(_STRIPPED)
    if right and tokenizer.tokenize(" " + right, special=True) == tokenizer.tokenize(right, special=True):
        text = text.rstrip(_STRIPPED)
    return text


def _plain(text: str, specials: SpecialTexts, tokenizer: Tokenizer) -> list[int]:
    """The token ids of `text` without one special token.

    A SentencePiece vocabulary that holds the piece "<s" merges it with ">" into the control token "<s>" even when asked
    not to look for special tokens; then the text is cut inside every look-alike.
    """
    ids = tokenizer.tokenize(text, special=False)
    found = specials.found(text)
    look_alikes = {text[start:end] for start, end in found}
    forbidden = {token for look_alike in look_alikes for token in tokenizer.tokenize(look_alike, special=True)}
    if forbidden.isdisjoint(ids):
        return ids
    cuts = [0, *sorted({start + 1 for start, _ in found}), len(text)]
    ids = tokenizer.tokenize(text[: cuts[1]], special=False)
    for start, end in pairwise(cuts[1:]):
        ids += _continued(text[start:end], tokenizer)
    return ids


def _continued(text: str, tokenizer: Tokenizer) -> list[int]:
    """The token ids of `text` without the space that some vocabularies put before a text."""
    line = tokenizer.tokenize("\n", special=False)
    ids = tokenizer.tokenize("\n" + text, special=False)
    return ids[len(line) :] if ids[: len(line)] == line else tokenizer.tokenize(text, special=False)
