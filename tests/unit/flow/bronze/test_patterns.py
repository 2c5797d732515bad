"""Parts of date patterns that Spark's own reader does not take. The others are compared with it in
tests/spark/test_times.py."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from headgate.declaration.model import TimeForm
from headgate.flow.bronze.decoding.event_times import text_reader

NOON = int(datetime(2026, 3, 1, 12, tzinfo=UTC).timestamp()) * 1_000_000


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("EEE, dd MMM yyyy HH", "Sun, 01 Mar 2026 12", NOON),
        ("EEE, dd MMM yyyy HH", "sun, 01 mar 2026 12", NOON),
        ("EEE, dd MMM yyyy HH", "Mon, 01 Mar 2026 12", None),
        ("uuuuMMddHH", "2026030112", NOON),
        ("uuuuMMddHH", "0000030112", None),
    ],
)
def test_weekdays_and_proleptic_years(pattern: str, text: str, expected: int | None) -> None:
    time = text_reader(TimeForm(pattern, "UTC"))(text)
    assert (time and time.micros) == expected
