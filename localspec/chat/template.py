"""A conversation as the model was trained to read it: messages become token ids through its own chat template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from localspec.chat.messages import Message, shapes
from localspec.chat.sandbox import Allowance, Sandbox, TemplateRefusalError
from localspec.chat.tokens import SpecialTexts, Tokenizer, continuation, encode, guard_for, own_specials

__all__ = ["Template", "Tokenizer"]

CHATML = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""What a vocabulary with these two tokens was most likely trained on."""

PLAIN = (
    "{% for message in messages %}"
    "{% if message.role == 'system' %}{{ message.content | trim }}\n\n"
    "{% else %}{{ message.role | capitalize }}: {{ message.content | trim }}\n{% endif %}"
    "{% endfor %}"
    "{% if add_generation_prompt %}Assistant:{% endif %}"
)
"""For models that were trained on no form at all. Nothing but their next words says that they are done."""

PLAIN_STOPS = ("\nUser:",)

_FRAME = 250
"""Characters that a template may put around a message, far more than any does."""


class Template:
    """The chat template of one model.

    `source` is the Jinja source in the model file, None when it has none; `bos` and `eos` are the texts of these two
    tokens, "" when there are none. `seconds` is the processor time one conversation may take; `variables` are further
    variables of the template, such as enable_thinking, which is left to the template's own default otherwise.
    Raises TemplateError, here and everywhere, when the template cannot be used.
    """

    def __init__(
        self,
        source: str | None,
        *,
        bos: str,
        eos: str,
        tokenizer: Tokenizer,
        seconds: float = 2.0,
        variables: Mapping[str, object] | None = None,
    ) -> None:
        self._tokenizer = tokenizer
        self._specials = SpecialTexts(tokenizer.special_texts)
        self._variables = {"bos_token": bos, "eos_token": eos, "tools": None, "documents": None, **(variables or {})}
        self.stop_strings: tuple[str, ...] = ()
        """Texts that end an answer, for a form that has no token for it."""
        if source is None or not source.strip():
            chatml = all(self._is_token(text) for text in ("<|im_start|>", "<|im_end|>"))
            source, self.stop_strings = (CHATML, ()) if chatml else (PLAIN, PLAIN_STOPS)
        self._sandbox = Sandbox(source, seconds=seconds)
        self._sought = self._specials.sought_by(self._sandbox.constants)

    def render(self, messages: Sequence[Message], add_generation_prompt: bool = True) -> str:
        """The conversation as text."""
        return self._first_accepted(_cleaned(messages), add_generation_prompt, self._sandbox.allowance())[1]

    def encode(self, messages: Sequence[Message], add_generation_prompt: bool = True) -> list[int]:
        """The conversation as token ids: those of the rendered text, but special tokens in messages stay text.

        BOS is put first when the vocabulary asks for it and the template has not done so.
        """
        allowance = self._sandbox.allowance()
        shape, text = self._first_accepted(_cleaned(messages), add_generation_prompt, allowance)
        guard = guard_for("".join([text, *(message.content for message in shape)]))
        text, own = own_specials(
            text,
            lambda change: self._rendered(
                [replace(message, content=change(message.content)) for message in shape],
                add_generation_prompt,
                allowance,
            ),
            self._specials,
            guard,
            self._sought,
        )
        return encode(text, own, self._specials, self._tokenizer)

    def continuation(self, text: str) -> list[int]:
        """The token ids of `text` right behind an encoded conversation, as the unfinished answer to it."""
        return continuation(_whole(text), self._specials, self._tokenizer)

    def _first_accepted(self, messages: list[Message], prompt: bool, allowance: Allowance) -> tuple[list[Message], str]:
        """The first shape of the conversation that the template does not refuse, and its text."""
        refusals: list[TemplateRefusalError] = []
        for shape in shapes(messages):
            try:
                return shape, self._rendered(shape, prompt, allowance)
            except TemplateRefusalError as error:
                refusals.append(error)
        raise refusals[0]

    def _rendered(self, messages: list[Message], prompt: bool, allowance: Allowance) -> str:
        variables = self._variables | {
            "messages": [{"role": message.role, "content": message.content} for message in messages],
            "add_generation_prompt": prompt,
            "date_string": datetime.now().strftime("%d %b %Y"),
        }
        text = sum(len(message.content) + _FRAME for message in messages)
        return _whole(self._sandbox.render(variables, text=text, allowance=allowance))

    def _is_token(self, text: str) -> bool:
        return len(self._tokenizer.tokenize(text, special=True)) == 1


def _cleaned(messages: Sequence[Message]) -> list[Message]:
    return [replace(message, content=_whole(message.content)) for message in messages]


def _whole(text: str) -> str:
    """`text` with every half of a surrogate pair joined to its other half or replaced: halves have no UTF-8 form."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
