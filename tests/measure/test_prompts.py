"""Prompts: our own set is what it says, and files of others are read or refused in one sentence."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from localspec.chat.messages import Document, attach_documents
from localspec.engine.errors import UserError
from localspec.measure.prompts import Prompt, limit_per_category, load_prompts

OURS = ("chat", "code", "summarization", "document_qa", "rewriting", "code_editing")


def test_our_own_prompts_cover_six_kinds_of_task() -> None:
    """Six prompts each, every one with a name of its own."""
    prompts = load_prompts()
    assert Counter(prompt.category for prompt in prompts) == dict.fromkeys(OURS, 6)
    assert len({prompt.id for prompt in prompts}) == len({prompt.turns for prompt in prompts}) == 36


def test_our_documents_are_long_enough_to_copy_from() -> None:
    """Texts of 150 to 450 words with their task, code of 20 to 60 lines."""
    for prompt in load_prompts():
        words, lines = len(prompt.turns[0].split()), prompt.turns[0].count("\n") + 1
        if prompt.category in ("summarization", "document_qa", "rewriting"):
            assert 150 <= words <= 450, prompt.id
        elif prompt.category == "code_editing":
            assert 24 <= lines <= 64, prompt.id
        else:
            assert words < 100, prompt.id


def test_what_is_to_be_edited_is_attached_as_a_document() -> None:
    """Framed as the chat frames it, the instruction behind it: it is measured as people use it."""
    for prompt in load_prompts():
        if prompt.category in ("rewriting", "code_editing"):
            framed = re.fullmatch(
                r"--- document: (\S+) ---\n(.+)\n--- end of \1 ---\n\n(.+)", prompt.turns[0], re.DOTALL
            )
            assert framed, prompt.id
            document, instruction = Document(framed[1], framed[2]), framed[3]
            assert attach_documents([document], instruction) == prompt.turns[0]
            assert "\n" not in instruction, prompt.id


def test_spec_bench_lines_are_read(tmp_path: Path) -> None:
    """Numbers as names, several turns, more keys than are needed, empty lines."""
    path = tmp_path / "questions.jsonl"
    lines = [
        json.dumps({"question_id": 81, "category": "writing", "turns": ["Once", "Again"], "reference": ["x"]}),
        "",
        json.dumps({"question_id": "b", "category": "qa", "turns": ["Why\u2028not?"]}, ensure_ascii=False),
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert load_prompts(path) == [Prompt("81", "writing", ("Once", "Again")), Prompt("b", "qa", ("Why\u2028not?",))]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("{", "not JSON"),
        ("[1]", "not a JSON object"),
        ('{"category": "a", "turns": ["b"]}', "question_id"),
        ('{"question_id": true, "category": "a", "turns": ["b"]}', "question_id"),
        ('{"question_id": 1, "turns": ["b"]}', "category"),
        ('{"question_id": 1, "category": "a"}', "turns"),
        ('{"question_id": 1, "category": "a", "turns": []}', "turns"),
        ('{"question_id": 1, "category": "a", "turns": "b"}', "turns"),
        ('{"question_id": 1, "category": "a", "turns": [" "]}', "turns"),
    ],
)
def test_bad_lines_are_refused_with_file_and_line(tmp_path: Path, line: str, says: str) -> None:
    """One sentence that names the place and what is missing."""
    path = tmp_path / "questions.jsonl"
    path.write_text('{"question_id": 1, "category": "a", "turns": ["b"]}\n' + line + "\n")
    with pytest.raises(UserError, match=re.escape(f"{path}, line 2: ") + f".*{says}") as error:
        load_prompts(path)
    assert str(error.value).count("\n") == 0


@pytest.mark.parametrize(
    ("content", "says"), [(None, "cannot be read"), (b"\n\n", "no prompts"), (b"\xff\xfe", "not text in UTF-8")]
)
def test_unreadable_files_are_refused(tmp_path: Path, content: bytes | None, says: str) -> None:
    """A missing file, an empty one, and one that is no text."""
    path = tmp_path / "questions.jsonl"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UserError, match=says):
        load_prompts(path)


def test_the_limit_counts_each_category() -> None:
    """The first ones stay, in their order."""
    prompts = [Prompt(name, name[0], ("x",)) for name in ("a1", "b1", "a2", "a3", "b2")]
    assert [prompt.id for prompt in limit_per_category(prompts, 2)] == ["a1", "b1", "a2", "b2"]
    assert limit_per_category(prompts, None) == prompts
