"""The text of PDF and Word files. The libraries that read them are an extra, and imported when such a file is attached."""

from __future__ import annotations

import logging
import stat
from collections.abc import Iterator
from pathlib import Path

from localspec.chat.text_file import MOST_BYTES
from localspec.engine.errors import UserError

_PDF, _WORD = ".pdf", ".docx"
_INSTALL = "install the extra that reads it: pip install 'localspec[documents]'"

_log = logging.getLogger("localspec.chat")


def is_office(path: Path) -> bool:
    """Whether the name is that of a file whose text must be taken out of it."""
    return path.suffix.lower() in (_PDF, _WORD)


def read(path: Path) -> str:
    """The text of such a file. Raises UserError where it cannot be read, or has none."""
    try:
        status = path.stat()
    except FileNotFoundError:
        raise UserError(f"There is no file {path}; check the path.") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror or error}); check its permissions.") from None
    if not stat.S_ISREG(status.st_mode):
        raise UserError(f"{path} is not a file; give a text file.")
    if status.st_size > MOST_BYTES:
        raise UserError(f"{path} is larger than {MOST_BYTES // 10**6} MB; give the part that matters.")
    try:
        text = _pdf(path) if path.suffix.lower() == _PDF else _word(path)
    except ImportError:
        raise UserError(f"The text of {path} cannot be read yet; {_INSTALL}.") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror or error}); check its permissions.") from None
    except UserError:
        raise
    except Exception as error:
        # Whatever a library meets in a damaged file.
        _log.warning("%s cannot be read", path, exc_info=error)
        raise UserError(
            f"{path} cannot be read because it is damaged or not what its name says; export it again."
        ) from None
    if text.strip():
        return text
    if path.suffix.lower() == _PDF:
        raise UserError(f"{path} has only pictures of its pages; recognize their text first, or attach its text.")
    raise UserError(f"{path} is empty: there is nothing to attach.")


def _pdf(path: Path) -> str:
    from pypdf import PdfReader

    reader = PdfReader(path)
    if reader.is_encrypted and not reader.decrypt(""):
        raise UserError(f"{path} is locked with a password; save a copy without one.")
    pages = [page.extract_text().strip() for page in reader.pages]
    return "\n\n".join(filter(None, pages)) + "\n"


def _word(path: Path) -> str:
    import docx

    return "\n\n".join(_blocks(docx.Document(str(path)))) + "\n"


def _blocks(document: object) -> Iterator[str]:
    """Paragraphs, headings in the way of Markdown, and tables line by line, in the order of the file."""
    from docx.table import Table

    for block in document.iter_inner_content():  # type: ignore[attr-defined]
        if isinstance(block, Table):
            rows = [" | ".join(" ".join(cell.text.split()) for cell in row.cells) for row in block.rows]
            yield "\n".join(rows)
        elif text := block.text.strip():
            yield _heading(block.style) + text


def _heading(style: object) -> str:
    """The marks before a heading; "" for another paragraph."""
    words = str(getattr(style, "name", None) or "").split()
    if words == ["Title"]:
        return "# "
    is_heading = len(words) == 2 and words[0] == "Heading" and words[1].isdigit()
    return "#" * min(6, int(words[1])) + " " if is_heading else ""
