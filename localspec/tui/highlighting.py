"""Code that is highlighted as it is written: every line once, and not all of it anew with each word."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, String, _TokenType
from pygments.util import ClassNotFound
from textual.content import Content, Span
from textual.highlight import ANSIDarkHighlightTheme, ANSILightHighlightTheme, HighlightTheme

Theme: TypeAlias = type[HighlightTheme]

LONGEST_LINE = 400
"""Characters: a longer line is not highlighted before it has ended, for it would be looked at again with each word."""


def theme_of(*, ansi: bool, dark: bool) -> Theme:
    """The colors, the same that Textual gives to code in Markdown."""
    if not ansi:
        return HighlightTheme
    return ANSIDarkHighlightTheme if dark else ANSILightHighlightTheme


class Highlighter:
    """Highlights a block of code that grows.

    A line is looked at alone, or behind the line in which a string or a comment over several lines was opened: that is all a
    lexer has to know in most languages, and does not grow.
    """

    def __init__(self, language: str) -> None:
        """`language`: what stands behind the fence; empty, or unknown, for no colors."""
        self._lexer = _lexer(language)
        self._opening = ""
        """The line that opened what is not closed yet."""
        self.looked_at = 0
        """Characters that went through the lexer so far."""

    def lines(self, text: str, theme: Theme) -> Content:
        """More of the code, in whole lines."""
        if self._lexer is None or not text:
            return _plain(text)
        tokens = list(self._tokens(self._opening + text))
        shown = _content(tokens, theme)[len(self._opening) :]
        self._opening = _left_open(tokens)
        return shown

    def begun(self, text: str, theme: Theme) -> Content:
        """The line that is being written: it will come again."""
        if self._lexer is None or len(text) > LONGEST_LINE:
            return _plain(text)
        return _content(self._tokens(self._opening + text), theme)[len(self._opening) : len(self._opening) + len(text)]

    def _tokens(self, text: str) -> Iterator[tuple[_TokenType, str]]:
        assert self._lexer is not None
        self.looked_at += len(text)
        tokens: Iterator[tuple[_TokenType, str]] = self._lexer.get_tokens(text)
        return tokens


def _lexer(language: str) -> Lexer | None:
    if not language:
        return None
    try:
        lexer: Lexer = get_lexer_by_name(language, stripnl=False, ensurenl=True, tabsize=8)
    except ClassNotFound:
        return None
    return lexer


def _plain(text: str) -> Content:
    return Content(text).stylize_before("$text")


def _content(tokens: Iterator[tuple[_TokenType, str]] | list[tuple[_TokenType, str]], theme: Theme) -> Content:
    texts: list[str] = []
    spans: list[Span] = []
    at = 0
    for kind, text in tokens:
        style = _style(kind, theme)
        if style:
            spans.append(Span(at, at + len(text), style))
        texts.append(text)
        at += len(text)
    return Content("".join(texts), spans=spans).stylize_before("$text")


def _style(kind: _TokenType | None, theme: Theme) -> str:
    while kind is not None:
        if style := theme.STYLES.get(kind):
            return style
        kind = kind.parent
    return ""


def _left_open(tokens: list[tuple[_TokenType, str]]) -> str:
    """The line in which the string or comment begins that the text ends in; empty where it ends in none."""
    start = len(tokens)
    while start and _may_have_lines(tokens[start - 1][0]):
        start -= 1
    if start == len(tokens):
        return ""
    before = "".join(text for _, text in tokens[:start])
    line = before.rpartition("\n")[2] + "".join(text for _, text in tokens[start:])
    opening = line.partition("\n")[0] + "\n"
    # Longer than any line that a person would read: then the rest is shown as code.
    return opening if len(opening) <= LONGEST_LINE else ""


def _may_have_lines(kind: _TokenType) -> bool:
    """Whether what ends in such a token goes on in the next line. Many lexers count the line end to a comment of one line."""
    return kind in String or kind in Comment.Multiline
