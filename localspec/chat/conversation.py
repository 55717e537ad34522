"""A conversation with a loaded engine: turns go in as text, steps come out, the answer is kept however it ends."""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace

from localspec.chat.document_spans import document_spans
from localspec.chat.messages import Document, Message, attach_documents
from localspec.chat.template import Template
from localspec.engine.engine import Engine, Options
from localspec.engine.errors import UserError
from localspec.engine.step import Finish, Step, Totals
from localspec.engine.stop import Stop


def template_of(engine: Engine) -> Template:
    """The chat template of the loaded target."""
    vocabulary = engine.target.vocabulary
    return Template(
        engine.target.chat_template,
        bos=vocabulary.token_text(vocabulary.bos) if vocabulary.bos >= 0 else "",
        eos=vocabulary.token_text(vocabulary.eos) if vocabulary.eos >= 0 else "",
        tokenizer=vocabulary,
    )


@dataclass
class Conversation:
    """The turns so far. One answer at a time."""

    engine: Engine
    system: str | None = None
    messages: list[Message] = field(default_factory=list)
    totals: Totals = field(default_factory=Totals)
    """Sums over the last answer."""

    def __post_init__(self) -> None:
        self.template = template_of(self.engine)

    def ask(
        self,
        words: str,
        options: Options,
        documents: Sequence[Document] = (),
        on_prompt: Callable[[int, int], None] | None = None,
        stop: Stop | None = None,
    ) -> Generator[Step, None, None]:
        """Add a turn and stream the answer. What has been written when the iterator ends, is stopped or is dropped stays
        as the assistant's turn. A turn stopped or failed before the first word is taken back: a long one would be read
        again with the next. Raises UserError.

        `options`: the template's stop strings are added to them.
        """
        if not words.strip() and not documents:
            raise UserError("The prompt is empty; write something to answer.")
        before, keep = len(self.messages), False
        self.messages.append(Message("user", attach_documents(documents, words)))
        self.totals = Totals()
        text: list[str] = []
        try:
            prompt = self.template.encode(self._turns())
            spans = document_spans(prompt, self.engine.target.vocabulary.piece)
            for step in self.engine.generate(prompt, self._with_ours(options), on_prompt, documents=spans, stop=stop):
                text.append(step.text)
                self.totals.add(step)
                # A model may have nothing to say, and that is an answer.
                keep = keep or bool(step.text) or step.finish not in (None, Finish.INTERRUPTED)
                yield step
        finally:
            if keep:
                self.messages.append(Message("assistant", "".join(text)))
            else:
                del self.messages[before:]

    def _turns(self) -> list[Message]:
        return [*([Message("system", self.system)] if self.system else []), *self.messages]

    def _with_ours(self, options: Options) -> Options:
        return replace(options, stop=(*options.stop, *self.template.stop_strings))
