"""PDF and Word files as documents."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from localspec.chat.attach import read_document
from localspec.engine.errors import UserError

_PDF = """%PDF-1.4
1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj
2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj
3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 200]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>endobj
4 0 obj<</Length {length}>>stream
{drawn}
endstream endobj
5 0 obj<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>endobj
trailer<</Root 1 0 R>>
startxref
0
%%EOF
"""


def pdf(path: Path, drawn: str) -> Path:
    """A page on which this is drawn."""
    path.write_text(_PDF.format(length=len(drawn), drawn=drawn))
    return path


def test_the_text_of_a_pdf_is_read(tmp_path: Path) -> None:
    """Page by page."""
    file = pdf(tmp_path / "letter.PDF", "BT /F1 18 Tf 20 100 Td (Dear reader) Tj ET")
    document = read_document(file)
    assert (document.name, document.text) == ("letter.PDF", "Dear reader\n")


def test_a_scanned_pdf_says_what_to_do(tmp_path: Path) -> None:
    """A page without letters has no text to attach."""
    file = pdf(tmp_path / "scan.pdf", "0 0 100 100 re f")
    with pytest.raises(UserError, match=r"scan\.pdf has only pictures of its pages; recognize their text first"):
        read_document(file)


def test_the_text_of_a_word_file_is_read(tmp_path: Path) -> None:
    """Headings, paragraphs and tables, in their order."""
    docx = pytest.importorskip("docx")
    written = docx.Document()
    written.add_heading("Report", 1)
    written.add_paragraph("First words.")
    table = written.add_table(1, 2)
    table.cell(0, 0).text, table.cell(0, 1).text = "left", "right"
    written.add_paragraph("Last words.")
    written.save(str(tmp_path / "report.docx"))
    assert read_document(tmp_path / "report.docx").text == "# Report\n\nFirst words.\n\nleft | right\n\nLast words.\n"


@pytest.mark.parametrize(("name", "library"), [("a.pdf", "pypdf"), ("a.docx", "docx")])
def test_without_the_extra_one_sentence_says_how_to_get_it(
    name: str, library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing else needs these libraries."""
    (tmp_path / name).write_bytes(b"%PDF-1.4")
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(UserError, match=r"pip install 'localspec\[documents\]'\.$"):
        read_document(tmp_path / name)


@pytest.mark.parametrize("name", ["a.pdf", "a.docx"])
def test_damaged_missing_and_other_files_are_refused_in_one_sentence(name: str, tmp_path: Path) -> None:
    """Whatever the library says about them goes to the log."""
    with pytest.raises(UserError, match="There is no file"):
        read_document(tmp_path / name)
    (tmp_path / name).write_bytes(b"PK\x03\x04 nothing of the kind")
    with pytest.raises(UserError, match="damaged or not what its name says"):
        read_document(tmp_path / name)
    (tmp_path / name).unlink()
    (tmp_path / name).mkdir()
    with pytest.raises(UserError, match="is not a file"):
        read_document(tmp_path / name)
