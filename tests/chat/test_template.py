"""Conversations through chat templates of every family: what is rendered, what is retried, what is refused."""

from __future__ import annotations

import itertools
from datetime import datetime
from functools import partial
from pathlib import Path

import chat_templates
import pytest

import tiny
from llama_vocabulary import LlamaVocabulary, write_sentencepiece
from localspec.chat.messages import Message
from localspec.chat.sandbox import TemplateError, TemplateRefusalError
from localspec.chat.template import Template, Tokenizer

SYSTEM, USER, ANSWER, AGAIN = (
    Message("system", "Be brief."),
    Message("user", "Hi"),
    Message("assistant", "Hello!"),
    Message("user", "Bye"),
)


@pytest.fixture(scope="module")
def vocabulary(tiny_llama: Path) -> LlamaVocabulary:
    return LlamaVocabulary(tiny_llama)


@pytest.fixture(scope="module")
def sentencepiece(tmp_path_factory: pytest.TempPathFactory) -> LlamaVocabulary:
    return LlamaVocabulary(write_sentencepiece(tmp_path_factory.mktemp("vocabulary") / "spm.gguf"))


def template(source: str | None, vocabulary: Tokenizer, seconds: float = 20.0, **variables: object) -> Template:
    return Template(source, bos="<s>", eos="</s>", tokenizer=vocabulary, seconds=seconds, variables=variables)


def test_chatml_puts_in_its_own_system_prompt(vocabulary: LlamaVocabulary) -> None:
    text = template(chat_templates.CHATML, vocabulary).render([USER])
    assert text == (
        "<|im_start|>system\nYou are a helpful assistant<|im_end|>\n"
        "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    )


def test_without_a_generation_prompt_the_text_ends_with_the_last_turn(vocabulary: LlamaVocabulary) -> None:
    text = template(chat_templates.CHATML, vocabulary).render([SYSTEM, USER], add_generation_prompt=False)
    assert text == "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"


def test_earlier_thoughts_are_left_out_by_a_template_that_does_so(vocabulary: LlamaVocabulary) -> None:
    thought = Message("assistant", "<think>\nhm\n</think>\n\nHello!")
    text = template(chat_templates.THINKING, vocabulary).render([USER, thought, AGAIN])
    assert text == (
        "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nHello!<|im_end|>\n"
        "<|im_start|>user\nBye<|im_end|>\n<|im_start|>assistant\n"
    )


@pytest.mark.parametrize(
    ("variables", "end"),
    [
        ({}, "assistant\n"),
        ({"enable_thinking": True}, "assistant\n"),
        ({"enable_thinking": False}, "assistant\n<think>\n\n</think>\n\n"),
    ],
)
def test_variables_reach_the_template(vocabulary: LlamaVocabulary, variables: dict[str, object], end: str) -> None:
    assert template(chat_templates.THINKING, vocabulary, **variables).render([USER]).endswith(end)


def test_llama3_has_bos_headers_and_the_date(vocabulary: LlamaVocabulary) -> None:
    text = template(chat_templates.LLAMA3, vocabulary, date_string="26 Jul 2024").render([SYSTEM, USER])
    today = template(chat_templates.LLAMA3, vocabulary).render([USER])
    assert f"Today Date: {datetime.now():%d %b %Y}\n" in today
    dated = text.replace(f"{datetime.now():%d %b %Y}", "26 Jul 2024")
    assert dated == (
        "<s><|start_header_id|>system<|end_header_id|>\n\nToday Date: 26 Jul 2024\n\nBe brief.<|eot_id|>"
        "<|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n"
    )


def test_gemma_gets_the_system_message_inside_the_first_user_message(vocabulary: LlamaVocabulary) -> None:
    text = template(chat_templates.GEMMA, vocabulary).render([SYSTEM, USER, ANSWER, AGAIN])
    assert text == (
        "<s><start_of_turn>user\nBe brief.\n\nHi<end_of_turn>\n<start_of_turn>model\nHello!<end_of_turn>\n"
        "<start_of_turn>user\nBye<end_of_turn>\n<start_of_turn>model\n"
    )


def test_two_turns_of_one_person_become_one_where_roles_must_alternate(vocabulary: LlamaVocabulary) -> None:
    text = template(chat_templates.GEMMA, vocabulary).render([SYSTEM, USER, AGAIN])
    assert text == "<s><start_of_turn>user\nBe brief.\n\nHi\n\nBye<end_of_turn>\n<start_of_turn>model\n"


def test_mistral_has_its_instructions_in_brackets(vocabulary: LlamaVocabulary) -> None:
    text = template(chat_templates.MISTRAL, vocabulary).render([SYSTEM, USER, ANSWER, AGAIN])
    assert text == "<s>[INST] Be brief.\n\nHi [/INST] Hello!</s>[INST] Bye [/INST]"


def test_a_template_that_takes_the_conversation_gets_it_unchanged(vocabulary: LlamaVocabulary) -> None:
    source = "{% for m in messages %}{{ m.role[0] }}{% endfor %}"
    assert template(source, vocabulary).render([SYSTEM, USER, AGAIN]) == "suu"


def test_what_no_shape_satisfies_is_refused_with_the_first_reason(vocabulary: LlamaVocabulary) -> None:
    with pytest.raises(TemplateRefusalError) as caught:
        template(chat_templates.GEMMA, vocabulary).render([SYSTEM, ANSWER, USER])
    assert str(caught.value) == (
        "The model's chat template refuses this conversation (System role not supported); "
        "start a new conversation or use another model."
    )


def test_a_failure_of_another_kind_is_not_retried(vocabulary: LlamaVocabulary) -> None:
    source = "{% if messages[0].role == 'system' %}{{ 1 / 0 }}{% endif %}fine"
    assert template(source, vocabulary).render([USER]) == "fine"
    with pytest.raises(TemplateError, match="division by zero"):
        template(source, vocabulary).render([SYSTEM, USER])


def test_the_time_a_template_may_take_is_the_one_asked_for(vocabulary: LlamaVocabulary) -> None:
    endless = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
    with pytest.raises(TemplateError, match=r"ran for more than 0\.1 seconds"):
        template(endless, vocabulary, seconds=0.1).encode([USER])


def test_all_renderings_for_one_conversation_share_that_time(
    vocabulary: LlamaVocabulary, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A hundred looks at the clock take a second: one rendering of these is in time, two are not.
    monkeypatch.setattr("localspec.chat.sandbox.meter.time.thread_time", partial(next, itertools.count(0, 0.01)))
    slow = "{% for i in range(60) %}{% endfor %}"
    assert template(slow + "x", vocabulary, 1.0).render([SYSTEM, USER]) == "x"
    with pytest.raises(TemplateError, match="ran for more than 1 seconds"):
        template(slow + "{{ raise_exception('no') }}", vocabulary, 1.0).render([SYSTEM, USER])
    with pytest.raises(TemplateError, match="ran for more than 1 seconds"):
        template(slow + "x", vocabulary, 1.0).encode([SYSTEM, USER])


@pytest.mark.parametrize("content", ["", "a" * 100_000])
def test_a_template_may_write_the_messages_twice_and_not_much_more(content: str, vocabulary: LlamaVocabulary) -> None:
    messages = [Message("user", content)] * 2
    twice = "{% for m in messages %}{{ m.content }}{{ m.content }}{% endfor %}{{ 'x' * 99000 }}"
    assert len(template(twice, vocabulary).render(messages)) == 4 * len(content) + 99_000
    with pytest.raises(TemplateError, match="wrote more than 100 thousand characters"):
        template(twice * 2, vocabulary).render(messages)


def test_a_template_that_cannot_be_read_is_an_error_at_once(vocabulary: LlamaVocabulary) -> None:
    with pytest.raises(TemplateError, match="cannot be read"):
        template("{% for %}", vocabulary)


@pytest.mark.parametrize("source", [None, "", " \n"])
def test_without_a_template_a_vocabulary_with_chatml_tokens_gets_chatml(
    vocabulary: LlamaVocabulary, source: str | None
) -> None:
    fallback = template(source, vocabulary)
    assert fallback.render([SYSTEM, USER]) == (
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    )
    assert fallback.stop_strings == ()


def test_without_a_template_any_other_vocabulary_gets_the_plain_form(sentencepiece: LlamaVocabulary) -> None:
    fallback = template(None, sentencepiece)
    assert fallback.render([SYSTEM, USER, Message("assistant", " Hello!"), AGAIN]) == (
        "Be brief.\n\nUser: Hi\nAssistant: Hello!\nUser: Bye\nAssistant:"
    )
    assert fallback.stop_strings == ("\nUser:",)


def test_a_template_in_the_file_needs_no_stop_strings(sentencepiece: LlamaVocabulary) -> None:
    assert template(chat_templates.MISTRAL, sentencepiece).stop_strings == ()


def test_bos_is_put_first_only_where_it_is_wanted_and_missing(
    vocabulary: LlamaVocabulary, sentencepiece: LlamaVocabulary
) -> None:
    without, with_it = "{{ messages[0].content }}", "{{ bos_token }}{{ messages[0].content }}"
    message = Message("user", "a")
    assert sentencepiece.add_bos
    plain = sentencepiece.tokenize("a", special=False)
    assert template(without, sentencepiece).encode([message]) == [1, *plain]
    assert template(with_it, sentencepiece).encode([message]) == [1, *plain]
    assert not vocabulary.add_bos
    assert template(without, vocabulary).encode([message]) == [ord("a")]
    assert template(with_it, vocabulary).encode([message]) == [tiny.BOS, ord("a")]


def test_a_message_that_begins_like_bos_does_not_stand_in_for_it(sentencepiece: LlamaVocabulary) -> None:
    ids = template("{{ messages[0].content }}", sentencepiece).encode([Message("user", "<s>a")])
    assert ids.count(1) == 1
    assert ids[0] == 1


def test_halves_of_surrogate_pairs_and_nul_are_no_trouble(vocabulary: LlamaVocabulary) -> None:
    broken = Message("user", "a\ud800b\x00c\ud83d\ude00\udfff")
    encoded = template(chat_templates.CHATML, vocabulary).encode([SYSTEM, broken])
    assert "user\na\ufffdb\x00c😀\ufffd<|im_end|>" in vocabulary.detokenize(encoded)


def test_a_template_may_write_halves_of_surrogate_pairs_too(vocabulary: LlamaVocabulary) -> None:
    ids = template("{{ '\\ud800' }}{{ messages[0].content }}", vocabulary).encode([USER])
    assert vocabulary.detokenize(ids) == "\ufffdHi"


def test_an_empty_conversation_is_the_templates_own_affair(vocabulary: LlamaVocabulary) -> None:
    assert template(None, vocabulary).render([]) == "<|im_start|>assistant\n"
    assert template("{{ messages | length }}", vocabulary).encode([]) == [ord("0")]
