"""Durations and sizes."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.declaration.errors import Invalid
from headgate.declaration.quantities import (
    format_duration,
    format_size,
    is_above,
    parse_duration,
    parse_share,
    parse_size,
    size_text,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10 minutes", timedelta(minutes=10)),
        ("1 hour", timedelta(hours=1)),
        ("2 s", timedelta(seconds=2)),
        ("500 ms", timedelta(milliseconds=500)),
        ("1 day", timedelta(days=1)),
        ("15m", timedelta(minutes=15)),
        ("3 sec", timedelta(seconds=3)),
    ],
)
def test_durations(text: str, expected: timedelta) -> None:
    assert parse_duration(text) == expected


@pytest.mark.parametrize(
    "text", ["", "soon", "1", "1.5 h", "1 month", "9" * 30 + " s", "1 hour 5 m", "-1 hours", "-1"]
)
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(Invalid):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "expected"), [("64 MB", 64 << 20), ("1024", 1024), ("3GB", 3 << 30), ("5 B", 5)]
)
def test_sizes(text: str, expected: int) -> None:
    assert parse_size(text) == expected


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (0, "0 B"),
        (1023, "1,023 B"),
        (1024, "1.0 KB"),
        (3 << 19, "1.5 MB"),
        (5 << 40, "5,120.0 GB"),
    ],
)
def test_a_size_as_a_person_reads_it(size: int, expected: str) -> None:
    assert size_text(size) == expected


@pytest.mark.parametrize("text", ["", "big", "1.5 GB", "64 MiB", "64 mb"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(Invalid):
        parse_size(text)


@given(st.integers(min_value=0, max_value=10**12))
def test_a_printed_quantity_reads_back(number: int) -> None:
    assert parse_size(format_size(number)) == number
    duration = timedelta(milliseconds=number)
    assert parse_duration(format_duration(duration)) == duration


@pytest.mark.parametrize(("text", "meant"), [("0.05", "5 %"), (".5", "50 %"), ("5", "5 %")])
def test_a_share_without_its_sign_is_told_so(text: str, meant: str) -> None:
    with pytest.raises(Invalid, match="has no %") as caught:
        parse_share(text)
    assert caught.value.nearest == meant


def test_exactly_the_share_that_is_declared_is_not_above_it() -> None:
    for tenths in range(1, 1000):
        share = parse_share(f"{tenths / 10} %")
        assert not is_above(tenths, share, 1000)
        assert is_above(tenths + 1, share, 1000)
    assert not is_above(0, 0.0, 0)
