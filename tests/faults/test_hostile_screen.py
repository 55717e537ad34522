"""Text that was made to do harm, in the app: what reaches the terminal are Textual's own sequences and letters."""

from __future__ import annotations

import ast
import os
import pty
import re
import select
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.segment import Segment
from rich.style import Style
from test_hostile_text import ANYTHING, HOSTILE
from textual.color import Color

from command import ROOT, surroundings
from localspec.chat.messages import Document
from localspec.literal import UNSAFE
from localspec.tui.literal import OnlyText
from localspec.tui.markdown import parser
from scripted import app_with, chat, finished, send, until

MARKDOWN = [
    "<https://e.example/%1b]0;pwned%07>",
    "https://e.example/%c2%9b2J and https://e.example/%1b%5b2J",
    "a &#27; &#12; &#13; b &#x202e; &#x9b; &NewLine; c",
    "[your bank](http://evil.example) ![picture](http://evil.example/i.png) <b onclick=x>bold</b>",
    "```py\x1b]0;t\x07\nx = 1 # \u202e\x1b[2J\n```",
    "| a | b |\n|---|---|\n| [bold]x[/] &#13; | https://e.example/%1b%5b2J |",
    "- &#13; [@click=app.quit]item[/]\n- ![x](http://e.example/%1b)",
    "# &#13; heading https://e.example/%1b[2J",
    "[ref]: http://evil.example/%1b\n\n[ref]",
]
ANSWER = "\n\n".join([*MARKDOWN, *HOSTILE]) + "\n\nthe end"

CHAT = """
import sys
from pathlib import Path
from hostile_script import answer, document
from localspec.chat.messages import Document
from localspec.tui.app import ChatApp
from scripted import ScriptedBackend

backend = ScriptedBackend([answer[at : at + 5] for at in range(0, len(answer), 5)])
backend.target = document
backend.note = answer
ChatApp(lambda report: backend, Path(sys.argv[1])).run()
"""

_SEQUENCE = re.compile("\x1b(?:\\[[?<>=]?[0-9;:]*[ $]?[A-Za-z]|[()][A-Z0-9]|[=>78])|\x1b\\]22;[a-z-]*(?:\x07|\x1b\\\\)")
"""CSI sequences, and the shape of the mouse's pointer: what Textual sends."""
_OWN = set("HmhlJKABCDGcqupnt")
"""The last letters of those that Textual sends."""


def drawn(app) -> str:
    """All lines of the screen, as they go to the terminal."""
    return "\n".join(strip.text for strip in app.screen._compositor.render_strips())


def links(app) -> list[str]:
    return [
        segment.style.link
        for strip in app.screen._compositor.render_strips()
        for segment in strip
        if segment.style and segment.style.link
    ]


def assert_only_text(app) -> None:
    assert not UNSAFE.search(drawn(app))
    assert links(app) == []


@given(st.lists(ANYTHING, max_size=4))
def test_what_is_left_of_a_line_is_text_as_wide_as_it_was(texts: list[str]) -> None:
    line = [Segment(text, Style(link="http://evil.example")) for text in texts]
    filtered = OnlyText().apply([*line, Segment("x", None, [(1,)])], Color(0, 0, 0))
    assert sum(segment.cell_length for segment in filtered) == sum(segment.cell_length for segment in line)
    text = "".join(segment.text for segment in filtered)
    assert not UNSAFE.search(text) and "\n" not in text and "\t" not in text
    assert all(segment.style and not segment.style.link for segment in filtered)


@given(st.lists(ANYTHING | st.sampled_from(MARKDOWN), max_size=4).map("\n\n".join))
def test_markdown_makes_nothing_of_text_that_a_terminal_would_obey(text: str) -> None:
    for block in parser().parse(text):
        for token in (block, *(block.children or ())):
            if token.type not in ("inline",):
                assert not UNSAFE.search(token.content + token.info)
            assert token.type != "image"
            assert not token.type.startswith("html")


@pytest.mark.parametrize("text", [*MARKDOWN, *HOSTILE])
async def test_an_answer_is_shown_and_not_obeyed(text: str) -> None:
    """While it streams, when it is complete, when it is old, and in the colors of who drafted it; and so are documents."""
    app, _ = app_with([text[:7], text[7:] + "\n\nthe end", ""])
    async with app.run_test(size=(100, 60)) as pilot:
        chat(app).query_one("Prompt").put(text, [Document(text, text)])
        await pilot.pause()
        assert_only_text(app)
        await pilot.press("enter")
        await until(pilot, lambda: "the end" in drawn(app))
        assert_only_text(app)
        await finished(pilot, 1)
        assert_only_text(app)
        answer = next(iter(chat(app).query("Answer")))
        assert answer.text == text + "\n\nthe end"
        await answer.settle()
        await pilot.pause()
        assert_only_text(app)
        await pilot.press("f3")
        await pilot.pause()
        assert_only_text(app)
        assert app.is_running and app.title == "localspec"


@pytest.mark.parametrize("settled", [False, True])
async def test_a_link_says_where_it_leads_and_opens_nothing(settled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    app, _ = app_with(["[your bank](http://evil.example/'%22%1b)"])
    monkeypatch.setattr(app, "open_url", lambda url, **_: opened.append(url))
    async with app.run_test(size=(100, 30)) as pilot:
        await send(pilot, "x")
        await finished(pilot, 1)
        if settled:
            await next(iter(chat(app).query("Answer"))).settle()
            await pilot.pause()
        assert links(app) == []
        strips = [strip.text for strip in app.screen._compositor.render_strips()]
        y = next(y for y, text in enumerate(strips) if "your bank" in text)
        await pilot.click(offset=(strips[y].index("your bank") + 2, y))
        await until(pilot, lambda: "http://evil.example/" in drawn(app))
        assert opened == []


@pytest.mark.terminal
def test_nothing_reaches_the_terminal_but_what_textual_sends(tmp_path: Path) -> None:
    """The chat in a real terminal, with a hostile model that has a hostile name and a hostile message to it."""
    (tmp_path / "hostile_script.py").write_text(f"answer = {ANSWER!r}\ndocument = {''.join(HOSTILE)!r}\n")
    (tmp_path / "chat.py").write_text(CHAT)
    written = _play([sys.executable, str(tmp_path / "chat.py"), str(tmp_path / "data")], b"\x1b]0;typed\x07[bold]hi\r")
    sent = written.decode("utf-8")
    rest = _SEQUENCE.sub("", sent)
    assert "\x1b" not in rest, rest[rest.index("\x1b") :][:40]
    assert not UNSAFE.search(rest.replace("\r\n", "\n").replace("\r", ""))
    assert {found[-1] for found in _SEQUENCE.findall(sent) if found.startswith("\x1b[")} <= _OWN
    assert "\x1b[2J" not in sent.partition("the end")[0].rpartition("evil")[2]


def _play(command: list[str], keys: bytes) -> bytes:
    """Run a chat, ask one question, and leave when it is answered. What it has written."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (60, 100))
    environment = surroundings(TERM="xterm-256color", COLUMNS="", LINES="")
    environment["PYTHONPATH"] = os.pathsep.join([environment["PYTHONPATH"], str(ROOT / "tests")])
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    written, asked, left, limit = b"", False, False, time.monotonic() + 90
    while time.monotonic() < limit:
        if select.select([ours], [], [], 0.1)[0]:
            try:
                piece = os.read(ours, 1 << 16)
            except OSError:
                break
            if not piece:
                break
            written += piece
        if not asked and b"is ready" in written:
            asked = True
            os.write(ours, keys)
        if asked and not left and b"the end" in written.partition(b"hi")[2]:
            left = True
            os.write(ours, b"\x11")
    os.close(ours)
    assert process.wait(30) == 0
    assert left
    return written


def test_no_string_of_a_widget_is_read_as_markup() -> None:
    """A widget takes a plain string for markup, so what is not written here in the source must be a Content."""
    found = []
    for path in ROOT.glob("localspec/tui/**/*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and any(
                isinstance(target, ast.Attribute) and target.attr in ("border_title", "border_subtitle", "tooltip")
                for target in node.targets
            ):
                found += [f"{path.name}:{node.lineno}"] * (not _is_fixed(node.value))
            elif isinstance(node, ast.Call) and _name(node.func) in (
                "Static",
                "Label",
                "Option",
                "Content.from_markup",
                "notify",
            ):
                plain = any(word.arg == "markup" for word in node.keywords)
                found += [f"{path.name}:{node.lineno}"] * (
                    not plain and bool(node.args) and not _is_fixed(node.args[0])
                )
    assert found == []


def _name(function: ast.expr) -> str:
    return ast.unparse(function).removeprefix("self.").removeprefix("app.")


def _is_fixed(value: ast.expr) -> bool:
    """Written in the source, a constant of a module, or no string at all."""
    if isinstance(value, ast.IfExp):
        return _is_fixed(value.body) and _is_fixed(value.orelse)
    if isinstance(value, ast.Constant):
        return True
    text = ast.unparse(value).removeprefix("*(")
    return bool(re.match(r"Content\b|_?[A-Z][A-Z_]+$|_?[A-Z]\w+\(|_line\(|chart\(|rendered\(|self\._choices", text))
