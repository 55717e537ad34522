"""A file of its own for a chat that is exported."""

import contextlib
import itertools
import os
import re
from pathlib import Path

from localspec.engine.errors import UserError
from localspec.whole_file import open_private

_LONGEST = 60
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)", re.IGNORECASE)
"""No file can have these names on Windows."""


def write_new(folder: Path, title: str, ending: str, text: str) -> Path:
    """Write `text` into a new file in `folder` and return its path. Raises UserError.

    The file is named after `title`: title.md for the `ending` ".md", title-2.md where that exists.
    """
    stem = file_stem(title)
    for number in itertools.count(1):
        path = folder / (f"{stem}{ending}" if number == 1 else f"{stem}-{number}{ending}")
        try:
            # What was said is nobody else's business before the person says so.
            file = os.fdopen(open_private(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb")
        except FileExistsError:
            continue
        except OSError as error:
            raise _refusal(path, error) from error
        try:
            with file:
                file.write(text.encode("utf-8", "replace"))
        except OSError as error:
            # Half a file would look like an export.
            with contextlib.suppress(OSError):
                path.unlink()
            raise _refusal(path, error) from error
        return path
    raise AssertionError("unreachable")


def file_stem(title: str) -> str:
    """`title` as a file may be named anywhere: its letters and digits, with a hyphen for everything between."""
    stem = "-".join(re.findall(r"\w+", title))[:_LONGEST].strip("-_")
    # Most file systems count bytes, up to 255.
    stem = stem.encode("utf-8", "ignore")[:200].decode("utf-8", "ignore")
    return f"chat-{stem}" if _RESERVED.fullmatch(stem) else stem or "chat"


def _refusal(path: Path, error: OSError) -> UserError:
    return UserError(f"{path} cannot be written ({error.strerror}): start localspec in a folder where you may write.")
