"""Guards around expressions on which Spark alone could fail."""

from __future__ import annotations

import re

import pytest

from headgate.declaration.errors import Invalid
from headgate.declaration.expressions.expression import parse_expression
from headgate.declaration.expressions.hardening import harden
from headgate.declaration.expressions.patterns import (
    ISO_REGEX,
    check_read_pattern,
    has_offset,
    reading_regex,
)
from tests.unit.declaration.nested_examples import EXAMPLES, SCOPE


def test_text_is_matched_before_it_is_read_by_a_pattern() -> None:
    assert harden("to_date(lower(s), 'yyyy-MM-dd')") == (
        r"to_date(if((lower(s)) rlike r'^(?!0000)\d{4}-\d{2}-\d{2}$', (lower(s)), null), "
        "'yyyy-MM-dd')"
    )


def test_nested_calls_are_guarded_each() -> None:
    text = harden("coalesce(to_date(s, 'yyyyMMdd'), to_date(u, 'dd.MM.yyyy'))")
    assert text.count("rlike") == 2
    assert r"\d{2}\.\d{2}\." in text


def test_a_split_is_limited() -> None:
    assert harden("split(s, ',')[0]") == "split(s, ',', 1000)[0]"
    assert harden("split(s, ',', 5)") == "split(s, ',', 5)"


def test_a_time_outside_the_calendar_becomes_null() -> None:
    text = parse_expression("d + interval 1000 years", SCOPE).text
    assert text == (
        "if((d + interval 1000 years) between date '0001-01-01' and date '9999-12-31', "
        "(d + interval 1000 years), null)"
    )
    assert parse_expression("to_date(ts)", SCOPE).text.startswith("if(")
    assert parse_expression("coalesce(ts, ts2)", SCOPE).text == "coalesce(ts, ts2)"


def test_guards_that_outgrow_an_expression_are_refused() -> None:
    text = "s"
    for _ in range(12):
        text = f"cast(to_date({text}, 'yyyy-MM-dd') as string)"
    with pytest.raises(Invalid, match="longer than"):
        parse_expression(text, SCOPE)


@pytest.mark.parametrize(
    "text",
    [
        f"to_timestamp(concat(s, '{'x' * 4500}'))",
        f"cast(coalesce(b{', 1' * 1500}) as timestamp)",
        f"to_date(s) < d or to_timestamp(concat(s, '{'x' * 3940}')) < ts",
    ],
)
def test_so_is_the_one_guard_that_is_too_much(text: str) -> None:
    """It would be too long for the digest, and for the next declaration that is compared."""
    assert len(text) < 5000
    with pytest.raises(Invalid, match="longer than 8000 characters with the guards"):
        parse_expression(text, SCOPE)


@pytest.mark.parametrize("text", EXAMPLES)
def test_what_is_guarded_is_still_an_expression_of_that_type(text: str) -> None:
    """The guarded text is parsed like a written expression: guards use nothing that is refused."""
    hardened = parse_expression(text, SCOPE).text
    if "rlike r'^(?!" not in hardened:
        assert str(parse_expression(hardened, SCOPE).type) == EXAMPLES[text]


@pytest.mark.parametrize(
    ("pattern", "fits", "not_"),
    [
        ("yyyy-MM-dd", "2026-01-31", "+999999999-01-31"),
        ("yyyy-MM-dd", "0001-01-31", "0000-01-31"),
        ("d/M/yyyy H:mm", "1/2/2026 9:05", "1/2/-2026 9:05"),
        ("dd MMM yyyy", "31 Jan 2026", "31 January 2026"),
        ("yyyy-MM-dd'T'HH:mm:ss.SSSXXX", "2026-01-31T10:00:00.123+01:00", "2026-01-31 10:00:00"),
        ("yyyy.MM.dd", "2026.01.31", "2026x01x31"),
        ("yyyy''MM''dd", "2026'01'31", "2026-01-31"),
        ("yyyyMMdd", "20260131", "2026013"),
    ],
)
def test_the_regular_expression_of_a_pattern(pattern: str, fits: str, not_: str) -> None:
    check_read_pattern(pattern)
    regex = reading_regex(pattern)
    assert "'" not in regex
    assert re.search(regex, fits)
    assert not re.search(regex, not_)


def test_iso_without_a_date_is_not_read() -> None:
    assert re.search(ISO_REGEX, "2026-01-31")
    assert re.search(ISO_REGEX, "2026-01-31T10:00:00.5Z")
    assert not re.search(ISO_REGEX, "10:00:00")


@pytest.mark.parametrize(
    "pattern", ["", "yyyy", "yyyy-MM-dd yyyy", "yyyyy-MM-dd", "yyyy-MM-dd VV", "[yyyy]-MM-dd", "'"]
)
def test_patterns_that_cannot_be_read(pattern: str) -> None:
    with pytest.raises(Invalid):
        check_read_pattern(pattern)


def test_an_offset_in_a_pattern() -> None:
    assert has_offset("yyyy-MM-dd HH:mmXXX")
    assert not has_offset("yyyy-MM-dd 'X'")
