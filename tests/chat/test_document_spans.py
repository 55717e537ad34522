"""Documents are found among the tokens of a prompt, whatever the template and the tokens are."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from localspec.chat.document_spans import document_spans
from localspec.chat.messages import Document, attach_documents

texts = st.text(st.sampled_from("ab -\n:é😀\t"), min_size=1, max_size=40)


def cut(text: str, sizes: list[int]) -> list[bytes]:
    """A text as pieces of these many bytes, over and over; they may end inside a character."""
    data, pieces, place = text.encode(), [], 0
    while place < len(data):
        size = sizes[len(pieces) % len(sizes)]
        pieces.append(data[place : place + size])
        place += size
    return pieces


def found(pieces: list[bytes]) -> list[str]:
    """The texts at the spans."""
    spans = document_spans(range(len(pieces)), pieces.__getitem__)
    return [b"".join(pieces[start:end]).decode() for start, end in spans]


def test_a_document_is_found_with_its_line_end_and_nothing_else() -> None:
    """In a prompt with control tokens, which have no bytes."""
    prompt = attach_documents([Document("notes.md", "one\ntwo")], "Fix it.")
    pieces = [b"", b"user\n", *cut(prompt, [1]), b"", b"assistant\n"]
    assert found(pieces) == ["one\ntwo\n"]


@settings(max_examples=200, deadline=None)
@given(documents=st.lists(texts, min_size=1, max_size=3), words=texts)
def test_every_document_is_found(documents: list[str], words: str) -> None:
    """Byte by byte, whatever they contain, in their order."""
    prompt = attach_documents([Document(f"n{index}!", text) for index, text in enumerate(documents)], words)
    expected = [text if text.endswith("\n") else f"{text}\n" for text in documents]
    assert found(cut(f"user\n{prompt}", [1])) == expected


@settings(max_examples=200, deadline=None)
@given(text=texts, sizes=st.lists(st.integers(1, 7), min_size=1, max_size=5))
def test_tokens_that_reach_over_its_ends_are_left_out(text: str, sizes: list[int]) -> None:
    """What is found lies within the document, and lacks less than a token at either end."""
    prompt = attach_documents([Document("n", text)], "words")
    pieces = cut(f"user\n{prompt}", sizes)
    framed = text if text.endswith("\n") else f"{text}\n"
    for start, end in document_spans(range(len(pieces)), pieces.__getitem__):
        inside = b"".join(pieces[start:end])
        assert inside in framed.encode()
        assert len(inside) > len(framed.encode()) - 2 * max(sizes)


def test_a_document_that_is_named_comes_last() -> None:
    """The answer is most likely about it."""
    documents = [Document("first.txt", "one"), Document("second.txt", "two"), Document("third.txt", "three")]
    pieces = cut(attach_documents(documents, "Shorten first.txt, please."), [1])
    assert found(pieces) == ["two\n", "three\n", "one\n"]


def test_what_is_no_document_is_not_found() -> None:
    """A frame that is not closed, text that looks like half of one, nothing at all."""
    for text in (
        "",
        "hello",
        "--- document: a ---\none",
        "--- document: a ---\none\n---- end of a ----",
        "--- end of a ---",
    ):
        assert found(cut(text, [1])) == []


def test_an_open_frame_does_not_hide_the_next_document() -> None:
    """Somebody wrote about frames."""
    text = f"--- document: a ---\n{attach_documents([Document('b', 'two')], 'words')}"
    assert found(cut(text, [1])) == ["two\n"]
