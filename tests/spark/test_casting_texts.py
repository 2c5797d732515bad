"""Texts become values as Spark's cast makes them."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from headgate.bronze.decoding.texts import cast_texts
from headgate.declaration.types import BOOLEAN, DOUBLE, FLOAT, INTEGRALS, STRING, Decimal

pytestmark = pytest.mark.spark

DECIMALS = ((1, 0), (2, 2), (10, 2), (18, 6), (38, 0), (38, 10), (38, 38))
TYPES = (STRING, BOOLEAN, *INTEGRALS, FLOAT, DOUBLE, *(Decimal(p, s) for p, s in DECIMALS))

SPECIAL = (
    *("", " ", ".", "+", "-", "+.", "--1", "1 1", "1_0", "1,5", "1L", "0x10", "0x1p3", "-0x.8P1d"),
    *("0x1.8p2000", "-0x1p2000", "0x1p-2000", "t", "TRUE", " yes\t", "Y", "f", "False", "no", "N"),
    *("on", "tru", "NaN", "nan", "-NaN", "-nan", "+NaN", "inf", "-INF", "+Infinity", "infinit"),
    *("1d", "1F", "1dd", "1e2f", "1e", "e2", "1e+", ".e2", "1.e2", "\x007\x00", "\x7f7", "\xa07"),
    *("7\u2028", "7\u3000", "\u0663", "1.\u0663", "\uff11", "\u0967e\u0967", "1\n", "\n1\r"),
    *("127", "128", "-128", "-129", "127.9", "-128.9", "32767", "32768", "-32769", "2147483647"),
    *("2147483648", "-2147483648", "-2147483649", "9223372036854775807", "9223372036854775808"),
    *("-9223372036854775808.9", "-9223372036854775809", "0" * 30 + "7", "9" * 38, "9" * 39),
    *("1e37", "1e38", "1e39", "3.4028235e38", "3.40282356e38", "3.4028235677973366e38", "1e-45"),
    *("7e-46", "1e-400", "1e400", "-1e400", "1.7976931348623157e308", "1.7976931348623159e308"),
    *("4.9e-324", "2.4e-324", "0e37", "0e38", "1e-9999"),
    *("1e99999999999", "1e-99999999999", "0." + "9" * 60, "0.005", "-0.005"),
    *("16777217", "16777217.0000000000000000001", "16777216.9999999999999999999", "8388608.5"),
    *("0.99999999995", "9.5", "9.49", "-0", "-0.0", "+0", "0.1e1", "\U0001d7cf"),
)
# Longer than the integers that Python converts, and a little shorter.
_DIGITS = [digit * length for digit in "09\u0669" for length in (12, 4_298, 4_301)]
ENDLESS = (
    *(
        f"{mantissa}e{sign}{digits}"
        for mantissa in "01"
        for sign in ("", "-")
        for digits in _DIGITS
    ),
    *(f"1e{zero * length}1" for zero in "0\u0660" for length in (10, 4_299, 4_300, 9_000)),
    *(f"{digits}.{digits}" for digits in _DIGITS),
    *(f"0.{'0' * length}1e{length}" for length in (20, 4_301)),
)


def _written(random_: random.Random) -> Iterator[str]:
    yield from SPECIAL
    yield from ENDLESS
    for _ in range(6000):
        yield "".join(random_.choices("0123456789.+-eE dfx \t", k=random_.randrange(1, 9)))
    for _ in range(6000):
        whole, fraction = (random_.choices("0159", k=random_.randrange(24)) for _ in range(2))
        number = f"{''.join(whole)}{random_.choice(('', '.'))}{''.join(fraction)}"
        exponent = random_.choice(("", "", f"e{random_.randrange(-50, 50)}", "D", " "))
        yield random_.choice(("", "-", "+", " ")) + number + exponent


def test_texts_become_values_as_in_spark(spark: SparkSession) -> None:
    texts = pa.array([None, *_written(random.Random(5))])
    frame = spark.createDataFrame(pa.table({"text": texts}))
    columns = [F.col("text").cast(str(type_)).alias(str(type_)) for type_ in TYPES]
    expected = frame.select("text", *columns).toArrow()
    texts = expected["text"].combine_chunks()
    for type_ in TYPES:
        ours = cast_texts(texts, type_)
        theirs = expected[str(type_)].combine_chunks()
        assert ours.type == theirs.type
        differing = [
            (text, found, wanted)
            for text, found, wanted in zip(texts, ours, theirs, strict=True)
            if repr(found) != repr(wanted)
        ]
        assert differing == []
        assert theirs.null_count < len(texts)
