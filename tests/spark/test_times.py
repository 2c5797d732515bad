"""Event times by a date pattern: read as Spark's own ``try_to_timestamp`` reads them."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from headgate.declaration.expressions.patterns import reading_regex
from headgate.declaration.model import TimeForm
from headgate.flow.bronze.decoding.event_times import text_reader
from headgate.flow.bronze.decoding.times import FIRST, LAST

pytestmark = pytest.mark.spark

PATTERNS = (
    ("yyyy-MM-dd HH:mm:ss", "UTC"),
    ("yyyy-MM-dd'T'HH:mm:ss.SSS", "Europe/Berlin"),
    ("dd/MM/yyyy HH:mm", "America/New_York"),
    ("d.M.yy H:m:s", "Asia/Kolkata"),
    ("dd MMM yyyy hh:mm a", "Australia/Lord_Howe"),
    ("MMMM d yyyy h a", "UTC"),
    ("yyyyMMddHHmmss", "Africa/Monrovia"),
    ("yyyy-MM-dd HH:mm:ssXXX", None),
    ("yyyy-MM-dd HH:mm:ss.SSSSSSSSS X", None),
    ("yyyy-MM-dd HHmm xx", None),
    ("'at' yyyy-MM-dd 'o''clock' HH", "UTC"),
    ("yyyy-MM-dd a", "UTC"),
    ("yyyy-MM-dd", "Pacific/Apia"),
)
EDGES = [  # a gap, an overlap, a skipped day, zones of long ago, and the ends of time
    datetime(2026, 3, 29, 2, 30, tzinfo=UTC),
    datetime(2026, 10, 25, 2, 30, tzinfo=UTC),
    datetime(2011, 12, 30, 12, tzinfo=UTC),
    datetime(1900, 1, 1, tzinfo=UTC),
    datetime(1, 1, 1, tzinfo=UTC),
    datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC),
    datetime(2024, 2, 29, tzinfo=UTC),
]
OFFSETS = ["Z", "+01", "+0130", "+01:30", "-18:00", "+18:01", "+19:00", "+0000", "z", "-00:00"]


def texts(pattern: str, chance: random.Random) -> list[str]:
    """Times in the format of the pattern; some of them are damaged."""
    letters = sorted(FIELDS, key=len, reverse=True)
    parts = re.findall(rf"'(?:[^']|'')*'|{'|'.join(letters)}|.", pattern)
    found = []
    for number in range(400):
        start = datetime(1990, 1, 1, tzinfo=UTC) + timedelta(seconds=chance.randrange(2 * 10**9))
        at = EDGES[number] if number < len(EDGES) else start
        text = "".join(_written(part, at, chance) for part in parts)
        if number % 3 == 2:
            place = chance.randrange(len(text))
            text = text[:place] + chance.choice("0159 :xAZ-") + text[place + chance.randrange(2) :]
        found.append(text)
    return found


def _written(part: str, at: datetime, chance: random.Random) -> str:
    if part[0] == "'":
        return part[1:-1].replace("''", "'")
    if part[0] in "Xx" and len(part) <= 3:
        return chance.choice(OFFSETS)
    return FIELDS[part](at) if part in FIELDS else part


FIELDS: dict[str, Callable[[Any], str]] = {
    "yyyy": lambda t: f"{t.year:04}",
    "yy": lambda t: f"{t.year % 100:02}",
    "MMMM": lambda t: f"{t:%B}",
    "MMM": lambda t: f"{t:%b}".lower(),
    "MM": lambda t: f"{t.month:02}",
    "M": lambda t: str(t.month),
    "dd": lambda t: f"{t.day:02}",
    "d": lambda t: str(t.day),
    "HH": lambda t: f"{t.hour:02}",
    "H": lambda t: str(t.hour),
    "hh": lambda t: f"{t:%I}",
    "h": lambda t: str(t.hour % 12 or 12),
    "mm": lambda t: f"{t.minute:02}",
    "m": lambda t: str(t.minute),
    "ss": lambda t: f"{t.second:02}",
    "s": lambda t: str(t.second),
    "a": lambda t: f"{t:%p}",
    "SSSSSSSSS": lambda t: f"{t.second * 7919 % 1000:03}",
    "SSS": lambda t: f"{t.second % 10}",
    "XXX": str, "xx": str, "X": str,
}  # fmt: skip


@pytest.mark.parametrize(("pattern", "zone"), PATTERNS)
def test_patterns_are_read_as_spark_reads_them(
    spark: SparkSession, pattern: str, zone: str | None
) -> None:
    given = texts(pattern, random.Random(7))
    given_text = F.trim("text")  # blanks around a time do not count
    fits = given_text.rlike(reading_regex(pattern))
    local = F.try_to_timestamp(F.when(fits, given_text), F.lit(pattern))
    utc = F.to_utc_timestamp(local, zone) if zone else local
    frame = spark.createDataFrame(pa.table({"text": given}))
    rows = frame.select("text", F.unix_micros(utc).alias("micros")).toArrow().to_pylist()
    told = {row["text"]: row["micros"] for row in rows}
    expected = {text: m if m and FIRST <= m <= LAST else None for text, m in told.items()}
    read = text_reader(TimeForm(pattern, zone))
    assert {text: (time := read(text)) and time.micros for text in given} == expected
    assert 50 < sum(time is not None for time in expected.values()) < len(given)
