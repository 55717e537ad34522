"""Chat templates that mean harm, in model files that are sound otherwise: stopped in time, in little memory, in one sentence,
and nobody has died of it."""

from __future__ import annotations

import runpy
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest
from gguf_parts import STRING, Parts, taken_apart
from trying import SECONDS, Outcome, Trial, is_one_sentence

import tiny

Scale = Callable[[int, int], int]

MEMORY = 256 << 20
"""Bytes over and above the file: all that a template makes takes 128 MB at most (sandbox/meter.py), as much again while it is
put together, and a hundred thousand characters are split into tokens."""

LOOP = "{% for i in range(99999) %}"
END = "{% endfor %}"

TIME = {
    "nested ranges": LOOP + LOOP.replace("i", "j", 1) + END + END,
    "recursion": "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(60) }}",
    "a recursive loop": "{% for a in [1] recursive %}{{ loop([1, 2]) if loop.depth < 40 }}{% endfor %}",
    "refused late": "{% for a in range(99) %}" + LOOP + END + END + "{{ raise_exception('no') }}",
    "sorting": LOOP + "{% set x = range(99999) | sort(reverse=true) | list %}" + END,
    "searching": "{% set b = 'a' * 9000000 %}{% set c = b[2:] ~ 'b' %}" + "{% if c in b %}{% endif %}" * 2000,
}
"""They take time. It is all that is left when they are stopped, so the next one must find it whole again."""

SIZE = {
    "multiplied": "{{ 'a' * 10**12 }}",
    "multiplied list": "{% set x = [1] * 10**12 %}",
    "joined with ~": "{% set n = namespace(x='a') %}" + LOOP + "{% set n.x = n.x ~ n.x %}" + END,
    "added": "{% set n = namespace(x='a') %}" + LOOP + "{% set n.x = n.x + n.x %}" + END,
    "doubled list": "{% set n = namespace(x=[1]) %}" + LOOP + "{% set n.x = n.x + n.x %}" + END,
    "nested lists": "{% set n = namespace(x=[1]) %}" + LOOP + "{% set n.x = [n.x, n.x] %}" + END + "{{ n.x }}",
    "format": "{{ '{:1000000000000}'.format(1) }}",
    "percent": "{{ '%1000000000000d' % 1 }}",
    "center": "{{ 'a' | center(10**12) }}",
    "ljust": "{{ 'a'.ljust(10**12) }}",
    "zfill": "{{ 'a'.zfill(10**12) }}",
    "indent": "{{ ('\n' * 9000000) | indent('    ', blank=true) }}",
    "replace": "{{ ('a' * 1000000) | replace('a', 'b' * 1000000) }}",
    "join": "{{ (['a'] * 1000) | join('b' * 1000000) }}",
    "batch": "{{ [1] | batch(10**12, 2) | list }}",
    "slice": "{{ [1] | slice(10**12) | list }}",
    "range": "{% for x in range(10**12) %}{% endfor %}",
    "power": "{{ 9**(9**9) }}",
    "json": "{{ messages | tojson(indent=10**12) }}",
    "wide characters": "{% set b = '\U0001f600' * 9000000 %}" + "{% set x = b ~ 'a' %}" * 9,
    "wide characters kept": "{% set n = namespace(x=()) %}"
    + LOOP
    + "{% set n.x = n.x + ('\U0001f600' * 900000,) %}"
    + END,
    "small lists": "{{ ((('a,' * 300000).split(',') | map('list') | list), (['a'] * 300000) | map('list') | list) }}",
    "lists of one": "{% set n = namespace(x=[]) %}"
    + LOOP
    + "{% set n.x = (range(99999) | batch(1) | list, n.x) %}"
    + END,
    "a long source": "{% if false %}" + "x" * 200_000 + "{% endif %}",
    "an output of words": "{{ 'word ' * 3000000 }}",
    "an output of one word": "{{ 'a' * 15000000 }}",
    "an output of special tokens": "{{ '<|im_start|>' * 1300000 }}",
    "an output of parts of special tokens": "{{ '<|im_start' * 1300000 }}",
    "an output in a loop": LOOP + "<|im_end|>aaaaaaaaaaaaaaaaaaaa" + END,
}
"""They take memory."""

LONGEST = {
    "one word": "{{ 'a' * 99900 }}",
    "words": "{{ 'word ' * 19980 }}",
    "spaces": "{{ ' ' * 99900 }}",
    "lines": "{{ '\n' * 99900 }}",
    "special tokens": "{{ '<|im_start|>' * 8325 }}",
    "parts of special tokens": "{{ '<|im_start' * 9900 }}",
    "digits": "{{ '1' * 99900 }}",
    "wide characters": "{{ '\U0001f600' * 99900 }}",
}
"""As much as a template may write: it is for the tokenizer to be in time."""

REACHING = {
    "class": "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "globals": "{{ raise_exception.__globals__['os'].system('x') }}",
    "init": "{{ cycler.__init__.__globals__.os.popen('id').read() }}",
    "attr": "{{ (''|attr('__class__')).mro() }}",
    "format": "{{ '{0.__class__.__mro__}'.format('') }}",
    "map": "{{ ['']|map(attribute='__class__.__mro__')|list }}",
    "self": "{{ self._TemplateReference__context.environment.loader.x }}",
    "builtins": "{{ __builtins__.open('/etc/passwd').read() }}",
    "import": "{% import 'os' as os %}{{ os.system('x') }}",
    "from": "{% from 'os' import path %}",
    "include": "{% include '/etc/passwd' %}",
    "extends": "{% extends '/etc/passwd' %}",
    "changing messages": "{{ messages.append(1) }}",
    "exception": "{{ raise_exception('\x1b[2J\x07no\n' * 9000) }}",
    "division": "{{ 1 / 0 }}",
    "syntax": "{% for %}",
    "brackets": "{{ " + "(" * 40000 + "1" + ")" * 40000 + " }}",
    "braces": "{" * 90000,
    "blocks": "{% if 1 %}" * 4000 + "{% endif %}" * 4000,
    "attributes": "{{ a" + ".b" * 40000 + " }}",
    "filters": "{{ a" + "|list" * 15000 + " }}",
    "endless macro": "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    "endless block": "{% block a %}{{ self.a() }}{% endblock %}",
}
"""They reach for what is not theirs, or fail."""

WORDS = ("{{ a }}", "{#", "#}", "{% raw %}", "{% set", " ", "\n", "'", '"', "\\", "(", "[", "0", "_", "é", "\0")


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trial]:
    trial = Trial(tmp_path_factory.mktemp("trial"))
    yield trial
    trial.close()


@pytest.fixture(scope="module")
def parts(models: Path) -> Parts:
    return taken_apart(tiny.llama(models / "hostile-templates.gguf", chat_template=tiny.CHAT_TEMPLATE))


@pytest.fixture
def outcome_of(trial: Trial, parts: Parts, tmp_path: Path) -> Callable[[str], Outcome]:
    def outcome_of(template: str) -> Outcome:
        """What comes of a model with that template, once it is certain that it did no harm."""
        path = tmp_path / "hostile.gguf"
        parts.put("tokenizer.chat_template", STRING, as_text(template))
        path.write_bytes(parts.written())
        outcome = trial.of(path)
        assert not outcome.died, outcome.error
        assert outcome.seconds < SECONDS, f"{outcome.seconds:.1f} s"
        assert outcome.memory < path.stat().st_size + MEMORY, f"{outcome.memory >> 20} MB"
        assert outcome.error is None or is_one_sentence(outcome.error), repr(outcome.error)
        print(f"{outcome.seconds:.2f} s, {outcome.memory >> 20} MB, {outcome.error}")
        return outcome

    return outcome_of


def as_text(template: str) -> bytes:
    return len(template.encode()).to_bytes(8, "little") + template.encode()


@pytest.mark.parametrize("template", TIME.values(), ids=TIME)
def test_time(template: str, outcome_of: Callable[[str], Outcome]) -> None:
    assert "ran for more than 2 seconds and was stopped" in str(outcome_of(template).error)


@pytest.mark.parametrize("template", SIZE.values(), ids=SIZE)
def test_size(template: str, outcome_of: Callable[[str], Outcome]) -> None:
    sentence = str(outcome_of(template).error)
    assert sentence.startswith("The model's chat template ")
    assert "and was stopped" in sentence or "Range too big" in sentence


@pytest.mark.parametrize("template", LONGEST.values(), ids=LONGEST)
def test_the_longest_prompt(template: str, outcome_of: Callable[[str], Outcome]) -> None:
    sentence = str(outcome_of(template).error)
    assert sentence.startswith("The prompt has ")
    assert "and the context holds 2048" in sentence


@pytest.mark.parametrize("template", REACHING.values(), ids=REACHING)
def test_out_of_reach(template: str, outcome_of: Callable[[str], Outcome]) -> None:
    assert str(outcome_of(template).error).startswith("The model's chat template ")


def test_every_one_dies_alone(outcome_of: Callable[[str], Outcome]) -> None:
    """A sound template still answers, in the process in which the others were stopped."""
    outcome_of(TIME["recursion"])
    outcome_of(REACHING["brackets"])
    assert outcome_of(tiny.CHAT_TEMPLATE).text is not None


FAMILIES = runpy.run_path(str(Path(__file__).parents[1] / "chat" / "chat_templates.py"))


@pytest.mark.parametrize("family", sorted(name for name in FAMILIES if name.isupper()))
def test_templates_of_well_known_families_answer(family: str, outcome_of: Callable[[str], Outcome]) -> None:
    assert outcome_of(FAMILIES[family]).error is None


def test_sources_that_are_long_to_read(outcome_of: Callable[[str], Outcome], scale: Scale) -> None:
    """Reading a template is under no meter: each of these is as long as a template may be."""
    random = Random(8)
    for _ in range(scale(8, 100)):
        words = [random.choice(WORDS) for _ in range(random.choice([1, 2, 3, 40]))]
        source = "".join(words) * (99_000 // len("".join(words)))
        outcome_of(source)
