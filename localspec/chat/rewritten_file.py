"""Where a rewritten text is saved: in the file it came from, as that was, or in a new one."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Collection, Iterator
from pathlib import Path

from localspec.chat.text_file import check_writable, read_text_file, replace_file
from localspec.engine.errors import UserError
from localspec.whole_file import write_whole


def save_rewritten(path: Path, text: str, known: Collection[str]) -> None:
    """Write `text` (line ends are newlines) to `path`, at once or not at all.

    A file that is there is replaced only where its text is one of `known`: what was rewritten, or was saved there before. It
    keeps its encoding, mark, line ends and mode. Raises UserError; the file is as it was then.
    """
    check_writable(path)
    if not path.exists():
        with _explained(path):
            write_whole(path, text.encode("utf-8", "replace"))
        return
    file = read_text_file(path)
    content = file.content
    if content.text not in known:
        raise UserError(
            f"{path} has another text than the one that was rewritten, and stays as it is; choose another name."
        )
    if objection := content.objection(text):
        raise UserError(f"The text {objection}, so {path} stays as it is; choose another name.")
    data = content.mark + content.encoded(content.ends.restored(content.text, text))
    with _explained(path):
        descriptor, name = tempfile.mkstemp(prefix=f".{file.path.name[:60]}.", dir=file.path.parent)
        try:
            with os.fdopen(descriptor, "wb") as written:
                written.write(data)
        except OSError:
            Path(name).unlink(missing_ok=True)
            raise
    replace_file(file, Path(name))


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UserError(f"{path} cannot be written ({error.strerror or error}); choose another name.") from error
