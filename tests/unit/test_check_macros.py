"""scripts/check_macros.py reports each kind of finding, and nothing else."""

from __future__ import annotations

import pytest

from scripts.check_macros import called_plainly, defined_twice, findings, wrong_arguments

COMMENT = "{# Why. #}\n"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("decode", "{% macro decode(a) %}1{% endmacro %}\n{% macro _part() %}{% endmacro %}\n"),
        ("valid_to", "{% test valid_to(model) %}select 1{% endtest %}\n"),
        ("persist_docs", "{% macro spark__persist_docs(relation) %}{% endmacro %}\n"),
        ("log", "{%- materialization log, adapter='spark' -%}{%- endmaterialization -%}\n"),
        ("_names", "{% macro _quoted(a) %}1{% endmacro %}\n"),
    ],
)
def test_a_file_in_order_passes(name: str, text: str) -> None:
    assert list(findings(name, COMMENT + text)) == []


@pytest.mark.parametrize(
    ("name", "text", "finding"),
    [
        ("decode", COMMENT + "{% macro encode() %}{% endmacro %}\n", "defines encode, expected"),
        ("decode", COMMENT + "select 1\n", "defines nothing, expected"),
        ("_names", COMMENT + "{% macro quoted() %}{% endmacro %}\n", "quoted is public"),
        ("_names", "{% macro _quoted() %}{% endmacro %}\n", "start the file with a comment"),
        ("_names", COMMENT + "x" * 161 + "\n", "line 2: 161 columns"),
        ("_names", COMMENT + "x \n", "trailing whitespace"),
        ("_names", COMMENT + "\tx\n", "tab"),
        ("_names", COMMENT + "x", "line break"),
    ],
)
def test_each_fault_is_found(name: str, text: str, finding: str) -> None:
    (found,) = findings(name, text)
    assert finding in found


def test_a_name_that_two_files_define_is_found() -> None:
    texts = {
        "one.sql": "{% macro one() %}{% endmacro %}{% macro _both() %}{% endmacro %}",
        "_two.sql": "{% macro _both(a) %}{% endmacro %}",
    }
    assert list(defined_twice(texts)) == ["_both is defined more than once: one.sql, _two.sql"]


def test_a_call_that_does_not_name_the_package_is_found() -> None:
    texts = {
        "one.sql": "{% macro one(a) %}{{ _two(a) }} {{ afterimage._two(a) }}{% endmacro %}",
        "_two.sql": "{# _two(1) #}{% macro _two(a) %}{{ ref('_two(1)') }}{% endmacro %}",
    }
    (found,) = called_plainly(texts)
    assert found == "one.sql: _two( is called without the package: afterimage._two("


@pytest.mark.parametrize(
    ("call", "finding"),
    [
        ("_two(1)", None),
        ("_two(1, c=2)", None),
        ("_two(**given)", None),
        ("_two(*given)", None),
        ("_two(c=2)", "lacks a"),
        ("_two(1, 2, 3)", "gives more beyond a, c"),
        ("_two(1, d=2)", "gives d beyond a, c"),
    ],
)
def test_a_call_with_wrong_arguments_is_found(call: str, finding: str | None) -> None:
    texts = {
        "one.sql": "{% materialization one, adapter='spark' %}{{ afterimage." + call + " }}"
        "{% endmaterialization %}",
        "_two.sql": "{% macro _two(a, c=none) %}{% endmacro %}",
    }
    expected = [f"one.sql: line 1: afterimage._two( {finding}"] if finding else []
    assert list(wrong_arguments(texts)) == expected
