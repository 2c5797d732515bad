"""YAML 1.2: only booleans, null and whole numbers are converted; other values stay text."""

from __future__ import annotations

import pytest

from headgate.declaration.reading.document import YamlMap, YamlScalar, read


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"),
        ("on", "on"),
        ("yes", "yes"),
        ("true", True),
        ("False", False),
        ("~", None),
        ("null", None),
        ("012", 12),
        ("1_000", "1_000"),
        ("2026-01-31", "2026-01-31"),
        ("12:30:00", "12:30:00"),
        ("1.5", "1.5"),
        ("'true'", "true"),
        ('"5"', "5"),
    ],
)
def test_plain_values(text: str, value: object) -> None:
    node, faults = read(f"key: {text}\n")
    assert isinstance(node, YamlMap)
    assert not faults
    scalar = node.entries[0].node
    assert isinstance(scalar, YamlScalar)
    assert scalar.value == value


def test_lines_are_those_of_keys() -> None:
    node, _ = read("a:\n\n  b: 1\n  c: |\n    text\n    more\nd: 2\n")
    assert isinstance(node, YamlMap)
    inner = node.entries[0].node
    assert isinstance(inner, YamlMap)
    assert [entry.line for entry in (*node.entries, *inner.entries)] == [1, 7, 3, 4]


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("a: 1\nb: 2\na: 3\n", 3, "is given twice (first on line 1)"),
        ("<<: {a: 1}\n? [b]\n: 2\n", 2, "has a key that is not text"),
        ("a: 1\n\tb: 2\n", 2, "cannot start any token"),
        ("a: 1\nb: \x00\n", 2, "special characters are not allowed"),
        ("a: {b: f(x\n", 1, "quote this value"),
        ("a: {b: f(x, y)}\n", 1, "unbalanced parenthesis"),
        ("a: [f(x, y)]\n", 1, "unbalanced parenthesis"),
        ("a: &x {b: *x}\n", 1, "is a YAML alias"),
        ("a: !!str x\n", 1, "tags are not supported"),
        ("\ufeffa: &x !!int 1\n", 1, "tags are not supported"),
        ("a: !!map {b: 1}\n", 1, "tags are not supported"),
        ("a: 1\n!!str b: 1\n", 2, "tags are not supported"),
        ("a: !!python/object:os.system x\n", 1, "tags are not supported"),
        ("a: 1\n---\nb: 2\n", 2, "one YAML document"),
        ("a: 1\rb: {c: [\rd: 2\r", 2, "quote this value"),
        ("a: 1\r\nb: c: d\r\n", 2, "mapping values are not allowed"),
        ("a: 1\rb: \x00\r", 2, "special characters are not allowed"),
    ],
)
def test_faults(text: str, line: int, says: str) -> None:
    _, faults = read(text)
    assert [fault.line for fault in faults] == [line]
    assert says in faults[0].message


def test_a_text_with_a_bracket_in_quotes_is_balanced() -> None:
    _, faults = read("a: {b: \"f(x, ')')\", c: instr(s)}\n")
    assert not faults


def test_a_folded_block_is_one_text() -> None:
    node, faults = read("a: >-\n  one\n  two\n    three\nb: |\n  one\n  two\n")
    assert isinstance(node, YamlMap)
    assert faults == ()
    texts = [entry.node.text for entry in node.entries if isinstance(entry.node, YamlScalar)]
    assert texts == ["one two\n  three", "one\ntwo\n"]
