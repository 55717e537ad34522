"""`localspec run`: one answer on stdout."""

import sys
from contextlib import closing
from dataclasses import dataclass

from localspec.chat.conversation import Conversation
from localspec.chat.messages import Document
from localspec.console import Progress, abandon, say
from localspec.engine.engine import Engine
from localspec.engine.errors import UserError
from localspec.engine.llama import LOGGER_NAME, LoadCancelledError
from localspec.engine.rates import share
from localspec.engine.step import Finish
from localspec.hub.starter import FetchCancelledError
from localspec.interruption import Stoppable
from localspec.launch import load_engine, options
from localspec.logs import log_to_file
from localspec.output import Form, Output
from localspec.program import EXIT_INTERRUPTED
from localspec.report import answer_report
from localspec.settings import Folders, Settings

EXIT_DONE = 0


@dataclass(frozen=True)
class Run:
    """One use of the command."""

    settings: Settings
    folders: Folders
    interruption: Stoppable
    form: Form = "text"
    quiet: bool = False

    def answer(self, prompt: str, piped: bytes | None) -> int:
        """Load, answer, report. Returns the exit code; raises UserError."""
        words, documents = _question(prompt, piped)
        if sys.stdout is None:
            raise UserError("There is no stdout to write the answer to; send it to a terminal, a file or a pipe.")
        log_to_file(self.folders.logs, LOGGER_NAME)
        progress = Progress(self.quiet)
        try:
            with load_engine(self.settings, self.folders, progress, self.interruption) as engine:
                return self._write(engine, words, documents, progress)
        except (LoadCancelledError, FetchCancelledError):
            return EXIT_INTERRUPTED
        except BrokenPipeError:
            # Whoever read our output has seen enough.
            abandon(sys.stdout)
            return EXIT_DONE
        finally:
            progress.clear()

    def _write(self, engine: Engine, words: str, documents: tuple[Document, ...], progress: Progress) -> int:
        def reading(done: int, total: int) -> None:
            progress.show(f"reading the prompt {share(done, total):4.0%}")

        conversation = Conversation(engine, self.settings.system)
        chosen = options(self.settings, engine)
        out, steps = Output(self.form, sys.stdout), []
        with closing(conversation.ask(words, chosen, documents, reading, self.interruption.stop)) as answer:
            for step in answer:
                progress.clear()
                steps.append(step)
                out.step(step)
        out.end(lambda: answer_report(engine, conversation.totals, steps, chosen))
        finish = conversation.totals.finish
        if finish is Finish.CONTEXT and not self.quiet:
            say("The context is full, so the answer ends here; choose a larger --ctx.")
        return EXIT_INTERRUPTED if finish is Finish.INTERRUPTED else EXIT_DONE


def _question(prompt: str, piped: bytes | None) -> tuple[str, tuple[Document, ...]]:
    """The words and what was piped in: a document beside a prompt, or the prompt itself."""
    text = _decoded(piped) if piped else ""
    if not prompt.strip() and not text.strip():
        raise UserError("The prompt is empty; write the question behind localspec run, or pipe it in.")
    if not text.strip():
        return prompt, ()
    return (prompt, (Document("stdin", text),)) if prompt.strip() else (text, ())


def _decoded(piped: bytes) -> str:
    try:
        return piped.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        where = f"byte {error.start + 1} is 0x{piped[error.start]:02x}"
        raise UserError(
            f"The text on stdin is not UTF-8 ({where}); convert it first, for example with iconv."
        ) from error
