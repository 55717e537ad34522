"""Templates that would reach the machine, or take its time or its memory, are stopped with one sentence."""

from __future__ import annotations

import itertools
import re
import threading

import pytest

from localspec.chat.sandbox import Sandbox, TemplateError, TemplateRefusalError
from localspec.chat.sandbox.sandbox import SOURCE_LIMIT

MESSAGES = [{"role": "user", "content": "hi"}]
LOOP = "{{% for i in range(99999) %}}{}{{% endfor %}}"
TIME = "ran for more than 0.2 seconds and was stopped"
SIZE = "asked for more than 16 million characters and was stopped"
NUMBER = "asked for a number of more than 4096 bits and was stopped"
FORBIDDEN = "tried what no chat template may do and was stopped"
ENDLESS = "calls itself, or nests, without end and was stopped"


def rendered(source: str, seconds: float = 20.0) -> str:
    return Sandbox(source, seconds=seconds).render({"messages": MESSAGES}, text=2)


def failure(source: str, seconds: float = 20.0) -> str:
    with pytest.raises(TemplateError) as caught:
        rendered(source, seconds)
    sentence = str(caught.value)
    assert sentence.startswith("The model's chat template ")
    assert sentence.endswith(".")
    assert "\n" not in sentence
    return sentence


@pytest.mark.parametrize(
    "source",
    [
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        "{% set s = 'a' * 9000000 %}{% for a in s %}{% for b in s %}{% endfor %}{% endfor %}",
        "{% for a in range(99999) %}{% for b in range(99999) if false %}{% endfor %}{% endfor %}",
        "{% for a in range(99999) %}{% for b in range(99999) %}{{ loop.last }}{% endfor %}{% endfor %}",
        "{% for a in [1] recursive %}{{ loop([1, 2]) if loop.depth < 40 }}{% endfor %}",
        "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(60) }}",
        LOOP.format("{% set x = range(99999) | list %}"),
        LOOP.format("{% set x = range(99999) | map('string') | join %}"),
        LOOP.format("{% set x = range(99999) | select('odd') | first %}"),
        LOOP.format("{% set x = range(99999) | sort(reverse=true) | list %}"),
        "{{ 'ab'.join('c' * 9000000) }}",
        "{% set b = 'a' * 9000000 %}{% set c = b[2:] ~ 'b' %}" + "{% if c in b %}{% endif %}" * 2000,
        "{% set b = 'a' * 9000000 %}{% set c = b[2:] ~ 'b' %}" + "{% if c is in(b) %}{% endif %}" * 2000,
    ],
)
def test_time_without_end_is_stopped(source: str) -> None:
    # What follows fails without a look at the clock: the time must have been seen to be up before it.
    assert TIME in failure(source + "{{ missing.attribute }}", seconds=0.2)


@pytest.mark.parametrize(
    "filters",
    [
        "list",
        "sort",
        "sum",
        "min",
        "max",
        "join",
        "map('string') | first",
        "select('eq', 'a') | first",
        "reject('number') | first",
        "selectattr('x') | first",
        "rejectattr('x', 'undefined') | first",
        "batch(3) | first",
        "slice(3) | first",
        "groupby('x') | first",
        "unique | first",
    ],
)
def test_no_filter_goes_on_without_a_look_at_the_clock(filters: str) -> None:
    sandbox = Sandbox("{{ endless | " + filters + " }}", seconds=0.2)
    with pytest.raises(TemplateError, match=re.escape(TIME)):
        sandbox.render({"endless": itertools.count()}, text=0)


@pytest.mark.parametrize(
    "source",
    [
        "{{ 'a' * 10**12 }}",
        "{{ 1000000000000 * 'a' }}",
        "{% set x = [1] * 1000000000000 %}",
        "{{ [[1] * 1000000] * 1000 }}",
        "{{ 'a' | center(1000000000000) }}",
        "{{ ['a'] | map('center', 1000000000000) | list }}",
        "{{ 'a'.center(1000000000000) }}",
        "{{ 'a'.ljust(10**12) }}",
        "{{ 'a'.rjust(10**12, 'b') }}",
        "{{ 'a'.zfill(10**12) }}",
        "{{ 'a\nb' | indent(1000000000000) }}",
        "{{ ('\n' * 9000000) | indent('    ', blank=true) }}",
        "{{ '%1000000000000d' % 1 }}",
        "{{ '%*d' % (1000000000000, 1) }}",
        "{{ '%*d %1000000000000d' % (1, 1, 1) }}",
        "{{ '%.1000000000000f' | format(1) }}",
        "{{ ['%1000000000000d'] | map('format', 1) | list }}",
        "{{ '{:1000000000000}'.format(1) }}",
        "{{ '{:{}}'.format(1, 1000000000000) }}",
        "{{ '{a:1000000000000}'.format_map({'a': 1}) }}",
        "{{ ('{:1000000000000}' | attr('format'))(1) }}",
        "{{ (['{:1000000000000}'] | map(attribute='format') | first)(1) }}",
        "{{ ('a' * 1000000).replace('a', 'b' * 1000000) }}",
        "{{ ('a' * 1000000) | replace('a', 'b' * 1000000) }}",
        "{{ ('b' * 1000000).join(['a'] * 1000) }}",
        "{{ (['a'] * 1000) | join('b' * 1000000) }}",
        "{{ ('a,' * 7000000).split(',') }}",
        "{{ ('ab ' * 5000000) | title }}",
        "{{ messages | tojson(indent=1000000000000) }}",
        "{% set ns = namespace(x='a') %}{% for i in range(60) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
        "{% set ns = namespace(x='a') %}{% for i in range(60) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
        "{% set ns = namespace(x='a') %}{% for i in range(60) %}{% set y %}{{ ns.x }}{{ ns.x }}{% endset %}"
        "{% set ns.x = y %}{% endfor %}",
        LOOP.format("b" * 90000),
        "{% set x %}" + LOOP.format("b" * 90000) + "{% endset %}",
        "{% macro m() %}" + LOOP.format("b" * 90000) + "{% endmacro %}{{ m() | length }}",
    ],
)
def test_a_text_too_large_is_never_made(source: str) -> None:
    assert SIZE in failure(source)


@pytest.mark.parametrize(
    "source",
    [
        "{% set ns = namespace(x=[1]) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x }}",
        "{% set ns = namespace(x=1) %}{% for i in range(60) %}{% set ns.x = (ns.x, ns.x) %}{% endfor %}{{ {ns.x: 1} }}",
        "{% set ns = namespace(x=1) %}{% for i in range(60) %}{% set ns.x = {'a': ns.x, 'b': ns.x} %}{% endfor %}",
        "{% set ns = namespace(x=1) %}{% for i in range(60) %}{% set ns.x = dict(a=ns.x, b=ns.x) %}{% endfor %}",
        "{% set ns = namespace(x=1) %}{% macro m() %}{% set ns.x = varargs %}{% endmacro %}"
        "{% for i in range(60) %}{{ m(ns.x, ns.x) }}{% endfor %}{{ {ns.x: 1} }}",
    ],
)
def test_a_list_that_holds_itself_many_times_over_is_stopped(source: str) -> None:
    sentence = failure(source, seconds=0.2)
    assert SIZE in sentence or TIME in sentence


def test_lists_in_lists_in_lists_are_stopped() -> None:
    deep = "{% set ns = namespace(x=1) %}" + LOOP.format("{% set ns.x = [ns.x] %}")
    assert "put lists into lists more than 64 deep" in failure(deep)


@pytest.mark.parametrize(
    "making",
    [
        "{% set x = b[1:] %}",
        "{% set x = b + 'a' %}",
        "{% set x = b ~ 'a' %}",
        "{% set x = b | upper %}",
        "{% set x = b | trim %}",
        "{% set x = b.lower() %}",
        "{% set x = '%s' % b %}",
        "{% set x = [b] | string %}",
        "{% set x %}{{ b }}{% endset %}",
        "{{ ('{:9000000}' * 100).format(*range(100)) }}",
    ],
)
def test_all_that_is_made_counts_together(making: str) -> None:
    sentence = failure("{% set b = 'a' * 9000000 %}" + making * 20)
    assert "made more than 128 million characters in all and was stopped" in sentence


def test_namespaces_in_namespaces_are_printed_by_name_alone() -> None:
    nested = "{% set ns.x = namespace(a=ns.x, b=ns.x) %}"
    assert rendered("{% set ns = namespace(x=1) %}{% for i in range(60) %}" + nested + "{% endfor %}{{ ns.x }}") == (
        "<Namespace>"
    )


def test_lazy_filters_are_not_piled_up() -> None:
    pile = "{% set ns = namespace(g=[1]) %}{% for i in range(999) %}{% set ns.g = ns.g | map('string') %}{% endfor %}"
    assert rendered(pile + "{{ ns.g | list }}") == "['1']"


@pytest.mark.parametrize(
    "source",
    [
        "{{ 2**100000000 }}",
        "{{ (10**1000) ** 2 }}",
        "{{ ('f' * 9000000) | int(0, 16) // 3 }}",
        "{% set ns = namespace(x=3) %}{% for i in range(60) %}{% set ns.x = ns.x * ns.x %}{% endfor %}",
    ],
)
def test_a_number_too_large_is_stopped(source: str) -> None:
    assert NUMBER in failure(source)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("{{ 10 | round(-1000000000000) }}", "asked for more than 100 decimals"),
        ("{{ [1] | batch(1000000000000, 2) | list }}", "asked for groups of too many items"),
        ("{{ [1] | slice(1000000000000) | list }}", "asked for groups of too many items"),
        ("{{ strftime_now('%Y' * 1000000) }}", "asked for a date of too many parts"),
        ("{% for x in range(10**12) %}{% endfor %}", "Range too big"),
        ("{{ lipsum(1000000000000) }}", "'lipsum' is undefined"),
        ("{{ " + "9" * 5000 + " }}", "Exceeds the limit"),
        ("a" * (SOURCE_LIMIT + 1), "has more than 100 thousand characters and was stopped"),
    ],
)
def test_other_ways_to_ask_for_too_much_are_stopped(source: str, reason: str) -> None:
    assert reason in failure(source)


@pytest.mark.parametrize(
    "source",
    [
        "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
        "{% for a in [1] recursive %}{{ loop([1]) }}{% endfor %}",
        "{% block a %}{{ self.a() }}{% endblock %}",
        "{{ " + "(" * 40000 + "1" + ")" * 40000 + " }}",
        "{{ " + "[" * 40000 + "]" * 40000 + " }}",
        "{{ " + "not " * 20000 + "1 }}",
        "{{ 1" + "+1" * 40000 + " }}",
        "{% if 1 %}" * 4000 + "{% endif %}" * 4000,
    ],
)
def test_recursion_without_end_is_stopped(source: str) -> None:
    assert ENDLESS in failure(source)


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''.__class__.__mro__ }}",
        "{{ '{0.__class__.__mro__}'.format('') }}",
        "{{ '{a.__class__.__mro__}'.format_map({'a': ''}) }}",
        "{{ (''|attr('__class__')).mro() }}",
        "{{ ''['__class__']['__mro__'] }}",
        "{{ ['']|map(attribute='__class__.__mro__')|list }}",
        "{{ raise_exception.__globals__.x }}",
        "{{ strftime_now.__code__.co_consts }}",
        "{{ cycler.__init__.__globals__ }}",
        "{{ ''.format.__globals__.x }}",
        "{{ messages[0].get.__self__.x }}",
        "{{ messages.append(1) }}",
        "{{ messages[0].update({'role': 'system'}) }}",
        "{{ messages[0].setdefault('x', 1) }}",
        "{{ (5).to_bytes(1000000000000, 'big') }}",
        "{{ 'a'.encode() }}",
        "{{ 'a'.translate({97: 'b'}) }}",
        "{{ 'a'.expandtabs(1000000000000) }}",
        "{{ 'a'() }}",
        "{% include '/etc/passwd' %}",
        "{% import 'os' as os %}",
        "{% from 'os' import path %}",
        "{% extends '/etc/passwd' %}",
        "{% if false %}{% include messages[0].content %}{% endif %}",
        "{% autoescape true %}{% endautoescape %}",
    ],
)
def test_the_machine_is_out_of_reach(source: str) -> None:
    assert FORBIDDEN in failure(source)


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''['__class__'] }}",
        "{{ '' | attr('__class__') }}",
        "{{ messages.__class__ }}",
        "{{ self._TemplateReference__context }}",
        "{{ raise_exception.__globals__ }}",
        "{% for i in [1] %}{{ loop._iterator }}{% endfor %}",
        "{% set ns = namespace() %}{{ ns._Namespace__attrs }}{{ ns['_Namespace__attrs'] }}",
        "{{ environment }}{{ context }}{{ __builtins__ }}",
    ],
)
def test_what_is_private_prints_as_nothing(source: str) -> None:
    assert rendered(source) == ""


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("{% for %}", "cannot be read (line 1: Expected an expression"),
        ("\n\n{{ 'a' | urlize }}", "cannot be read (line 3: No filter named 'urlize')"),
        ("{% for a in b %}" * 30 + "{% endfor %}" * 30, "too many statically nested blocks"),
        ("{{ foo.bar }}", "fails ('foo' is undefined)"),
        ("{{ 1 / 0 }}", "fails (division by zero)"),
        ("{{ messages[0].content.x.y }}", "fails ('str object' has no attribute 'x')"),
        ("{% for x in 5 %}{% endfor %}", "fails ('int' object is not iterable)"),
    ],
)
def test_a_broken_template_is_named_as_such(source: str, reason: str) -> None:
    assert reason in failure(source)


def test_what_a_template_raises_is_told_in_one_short_line() -> None:
    with pytest.raises(TemplateRefusalError) as caught:
        rendered("{{ raise_exception('No\n\x1b[31msystem\u2028role.' ~ 'x' * 1000) }}")
    sentence = str(caught.value)
    assert "refuses this conversation (No [31msystem role.xxx" in sentence
    assert sentence.isprintable()
    assert len(sentence) < 400


def test_raising_nothing_still_names_what_happened() -> None:
    with pytest.raises(TemplateRefusalError, match=r"refuses this conversation \(RaisedError\)"):
        rendered("{{ raise_exception() }}")


def test_a_large_message_is_no_large_template() -> None:
    text = "word " * 6_000_000
    source = "{% for m in messages %}{{ '<s>' + m.content | trim + '</s>' }}{% endfor %}"
    output = Sandbox(source).render({"messages": [{"role": "user", "content": text}]}, text=len(text))
    assert output == f"<s>{text.strip()}</s>"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{{ {'é': '<&>\"', 'b': [1, none, true]} | tojson }}", '{"é": "<&>\\"", "b": [1, null, true]}'),
        ("{{ [1] | tojson(indent=2) }}", "[\n  1\n]"),
        ("{{ {'b': 1, 'a': 2} | tojson(sort_keys=true, separators=(',', ':')) }}", '{"a":2,"b":1}'),
        ("{% for i in range(9) %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% endfor %}", "01"),
        ("{% for i in range(3) %}{% if i == 1 %}{% continue %}{% endif %}{{ i }}{% endfor %}", "02"),
        ("a{% generation %}{% set x = 1 %}b{{ x }}{% endgeneration %}c{{ x }}", "ab1c"),
        ("{% set ns = namespace(a=1) %}{% for i in [1, 2] %}{% set ns.a = ns.a + i %}{% endfor %}{{ ns.a }}", "4"),
        ("{% for k, v in {'a': 1}.items() %}{{ k }}{{ v }}{% endfor %}{{ dict(b=2) | items | list }}", "a1[('b', 2)]"),
        ("{{ '{} {a:>3}'.format(1, a='x') }}{{ '%s-%03d' % ('a', 5) }}{{ '%s' | format('q') }}", "1   xa-005q"),
        ("{{ [3, 1, 2] | sort | join(', ') }}|{{ 'aXb' | replace('X', '-') }}|{{ ' a ' | trim }}", "1, 2, 3|a-b|a"),
        ("{{ 'a\nb' | indent(2) }}|{{ 'hello world' | title }}|{{ 'ab' | center(4) }}", "a\n  b|Hello World| ab "),
        ("{{ messages | selectattr('role', 'equalto', 'user') | map(attribute='content') | list }}", "['hi']"),
        ("{{ 'yes' if messages | selectattr('role', 'equalto', 'none') else 'no' }}", "yes"),
        ("{{ none | map('upper') | list }}{{ missing | select | list }}{{ [] | map('upper') | list }}", "[][][]"),
        ("{{ 'yes' if messages | selectattr('role', 'equalto', 'none') | list else 'no' }}", "no"),
        (
            "{{ messages is iterable }}{{ messages is mapping }}{{ tools is defined }}{{ none is none }}",
            "TrueFalseFalseTrue",
        ),
        ("{{ 'ab'[::-1] }}{{ messages[-1].content }}{{ messages[:1] | length }}{{ 'a' in 'abc' }}", "bahi1True"),
        ("{% macro m(a, b='d') %}[{{ a }}{{ b }}]{% endmacro %}{{ m(1) }}{{ m(1, b=2) }}", "[1d][12]"),
        ("{% macro m() %}<{{ caller() }}>{% endmacro %}{% call m() %}body{% endcall %}", "<body>"),
        ("{% filter upper %}abc{% endfilter %}{% set x | upper %}d{% endset %}{{ x }}", "ABCD"),
        ("{% for g, l in [{'k': 1}, {'k': 1}] | groupby('k') %}{{ g }}{{ l | length }}{% endfor %}", "12"),
        ("{% for i in [[1], [2, 3]] recursive %}{{ loop(i) if i is sequence else i }}{% endfor %}", "123"),
        (
            "{% for i in 'ab' %}{{ loop.index }}{{ loop.length }}{{ loop.last }}{{ loop.cycle(7, 8) }}{% endfor %}",
            "12False722True8",
        ),
        (
            "{% for r in messages | map(attribute='role') %}{{ loop.length }}{{ loop.nextitem }}{% endfor %}",
            "1",
        ),
        ("{{ 2.567 | round(1) }}{{ '3' | int + 1 }}{{ -3 | abs }}{{ [1, 2] | sum }}{{ [1, 2] | max }}", "2.64332"),
        ("{{ ' a,b '.strip().split(',')[-1] }}{{ 'a-b'.replace('-', '+', 1) }}{{ ', '.join(['x', 'y']) }}", "ba+bx, y"),
        ("{{ range(5) | batch(2, 'x') | list }}", "[[0, 1], [2, 3], [4, 'x']]"),
        ("{{ range(5) | slice(2, 'x') | list }}", "[[0, 1, 2], [3, 4, 'x']]"),
        ("{{ ('<b>' | safe) + ('<b>' | e) }}", "<b>&lt;b&gt;"),
        ("{% set c = cycler(1, 2) %}{{ c.next() }}{{ c.next() }}{% set j = joiner('|') %}{{ j() }}{{ j() }}", "12|"),
        ("  {% if true %}\n  x\n  {% endif %}\ny\n", "  x\ny"),
        ("{{ undefined_name }}{{ none }}{{ true }}{{ 1.5 }}", "NoneTrue1.5"),
    ],
)
def test_what_real_templates_use_works_as_in_plain_jinja(source: str, expected: str) -> None:
    assert rendered(source) == expected


def test_the_date_is_formatted() -> None:
    day, month, year = rendered("{{ strftime_now('%d %b %Y') }}").split()
    assert day.isdigit()
    assert month.isalpha()
    assert len(year) == 4


def test_one_sandbox_serves_several_threads() -> None:
    sandbox = Sandbox("{% for i in range(300) %}{{ name }}{% endfor %}")
    outputs: dict[str, str] = {}

    def work(name: str) -> None:
        outputs[name] = sandbox.render({"name": name}, text=1)

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcdef"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outputs == {name: name * 300 for name in "abcdef"}
