"""A chat as Markdown that reads well, and as JSON that has everything."""

from __future__ import annotations

import json
import re
from datetime import datetime

import pytest

from localspec.chat.export import to_json, to_markdown
from localspec.chat.messages import Document
from localspec.chat.store import Chat, ChatInfo
from localspec.chat.thread import Thread

CREATED = 1_700_000_000.0


def chat(*texts: str, title: str = "Rain in Bergen", system: str | None = None) -> Chat:
    thread = Thread()
    for number, text in enumerate(texts):
        thread.add("assistant" if number % 2 else "user", text, after=thread.leaf)
    info = ChatInfo(3, title, "SmolLM2-135M", CREATED, CREATED + 60, len(texts), "")
    return Chat(info, system, {"temp": 0.5}, thread)


def test_markdown_says_what_was_said_and_by_whom():
    local = datetime.fromtimestamp(CREATED).strftime("%Y-%m-%d %H:%M")
    assert to_markdown(chat("Why?", "Because.\n", "Really?", system="Be brief.")) == (
        f"# Rain in Bergen\n\n- Date: {local}\n- Model: SmolLM2-135M\n\n## System prompt\n\nBe brief.\n\n"
        "## You\n\nWhy?\n\n## Assistant\n\nBecause.\n\n## You\n\nReally?\n"
    )


def test_markdown_has_the_branch_that_is_shown():
    exported = chat("Why?", "Old answer")
    exported.thread.add("assistant", "New answer", after=1)
    assert "New answer" in to_markdown(exported)
    assert "Old answer" not in to_markdown(exported)
    exported.thread.show(2)
    assert "Old answer" in to_markdown(exported)
    assert "New answer" not in to_markdown(exported)


def test_documents_are_named_but_not_copied():
    exported = chat()
    exported.thread.add("user", "Sum up", [Document("my_notes [1].md", "secret"), Document("b\n# c", "x")], after=None)
    text = to_markdown(exported)
    assert "- Document: my\\_notes \\[1\\].md\n- Document: b \\# c\n\nSum up\n" in text
    assert "secret" not in text


@pytest.mark.parametrize("title", ["*bold* _it_ `code` [a](b) <b> # x", "two\nlines\r\n# more", "a | b ~~c~~ {d} \\"])
def test_a_title_is_no_markup(title):
    head = to_markdown(chat("Hi", title=title)).split("\n\n")[0]
    assert head.startswith("# ")
    assert "\n" not in head
    assert re.sub(r"\\(.)", r"\1", head[2:]) == " ".join(title.split())
    assert not re.search(r"(?<!\\)[*_`\[\]<>|~{}#]", head[2:].replace("\\\\", ""))


def test_a_chat_without_a_title_or_a_date_has_a_heading():
    exported = chat("Hi", title="")
    exported.info = ChatInfo(0, "", "", 0.0, 0.0, 1, "")
    assert to_markdown(exported) == "# Untitled chat\n\n## You\n\nHi\n"


FENCED = "Look:\n\n```python\ndef f():\n    return '~~~'\n\n\n# not a heading\n```\n\nDone"


@pytest.mark.parametrize(
    ("text", "closed"),
    [
        (FENCED, FENCED),
        (
            "    indented\n\twith a tab\n\nand  two  blanks  \nend",
            "    indented\n\twith a tab\n\nand  two  blanks  \nend",
        ),
        ("\n\nHi \n\n", "Hi"),
        ("```python\nx = 1", "```python\nx = 1\n```"),
        ("````\n```\nx\n```", "````\n```\nx\n```\n````"),
        ("~~~\n```\n", "~~~\n```\n~~~"),
        ("```\r\nx\r\n```\r\n", "```\r\nx\r\n```"),
        ("```\nx\n``` not the end", "```\nx\n``` not the end\n```"),
        ("```\nx\n`````  ", "```\nx\n`````"),
        ("```inline``` code", "```inline``` code"),
        ("    ```\nindented code", "    ```\nindented code"),
        ("   ```\nx", "   ```\nx\n```"),
        ("```\na\n```\n```\nb", "```\na\n```\n```\nb\n```"),
    ],
)
def test_what_was_said_stays_as_it_is_and_an_open_fence_ends_with_it(text, closed):
    assert f"## Assistant\n\n{closed}\n\n## You\n\nNext\n" in to_markdown(chat("Show", text, "Next"))
    assert to_markdown(chat(text)).endswith(f"## You\n\n{closed}\n")


def test_an_answer_without_a_word_is_still_an_answer():
    assert to_markdown(chat("Hi", "")).endswith("## You\n\nHi\n\n## Assistant\n")


def test_json_has_everything():
    exported = chat("Why? \U0001f600\0", "Old", system="Be brief.")
    exported.thread.add("assistant", "New", after=1)
    exported.thread.change(3, finish="stop", figures={"steps": 3, "speedup": float("inf")})
    exported.thread.add("user", "And?", [Document("a.md", "# text")], after=3)
    exported.thread.show(2)
    text = to_json(exported)
    assert text.endswith("}\n")
    document = json.loads(text, parse_constant=pytest.fail)
    messages = document.pop("messages")
    created = document.pop("created")
    assert datetime.fromisoformat(created).timestamp() == CREATED
    assert datetime.fromisoformat(created).tzinfo
    assert datetime.fromisoformat(document.pop("updated")).timestamp() == CREATED + 60
    assert document == {
        "id": 3,
        "title": "Rain in Bergen",
        "model": "SmolLM2-135M",
        "system": "Be brief.",
        "settings": {"temp": 0.5},
        "shown": [1, 2],
    }
    assert [(m["id"], m["parent"], m["role"], m["text"]) for m in messages] == [
        (1, None, "user", "Why? \U0001f600\0"),
        (2, 1, "assistant", "Old"),
        (3, 1, "assistant", "New"),
        (4, 3, "user", "And?"),
    ]
    assert (messages[2]["finish"], messages[2]["figures"]) == ("stop", {"steps": 3, "speedup": None})
    assert messages[3]["documents"] == [{"name": "a.md", "text": "# text"}]
