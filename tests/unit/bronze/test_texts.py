"""Texts become values; tests/spark compares all types with Spark."""

from __future__ import annotations

from decimal import Decimal as Number

import pyarrow as pa
import pytest

from headgate.bronze.decoding.texts import cast_texts
from headgate.declaration.types import BOOLEAN, FLOAT, STRING, TINYINT, DataType, Decimal


@pytest.mark.parametrize(
    ("type_", "texts", "values"),
    [
        (BOOLEAN, ["true", " Y ", "f", "on", None], [True, True, False, None, None]),
        (TINYINT, ["7", "+5", "-128.9", "128", ".", "x"], [7, 5, -128, None, 0, None]),
        (FLOAT, ["0.5", "1e39", "16777217.0000001", "1_0"], [0.5, float("inf"), 16777218, None]),
        (Decimal(4, 2), ["1.005", "-1e1", "99.995", "1,5"], [Number("1.01"), -10, None, None]),
        (STRING, ["a", None], ["a", None]),
    ],
)
def test_texts_become_values(type_: DataType, texts: list[str], values: list[object]) -> None:
    assert cast_texts(pa.array(texts), type_).to_pylist() == values
    assert cast_texts(pa.chunked_array([texts, texts]), type_).to_pylist() == values * 2
    assert not len(cast_texts(pa.array([], pa.string()), type_))


def test_exponents_that_overflow_in_java_are_decimals_too() -> None:
    texts = pa.array(["1e2147483647", "1e-2147483647", "0e2147483647", "1e-2147483648"])
    assert cast_texts(texts, Decimal(10, 2)).to_pylist() == [None, 0, None, None]


@pytest.mark.parametrize("length", [12, 4_300, 4_301, 4_990, 9_000, 1_100_000])
def test_a_decimal_may_have_an_exponent_of_any_length(length: int) -> None:
    """Python converts no more than 4,300 digits to an int, and a context has no million digits."""
    nines, zeros, arabic = "9" * length, "0" * length, "\u0660" * length
    beyond = [f"{mantissa}e{sign}{nines}" for mantissa in "01" for sign in ("", "+", "-")]
    texts = [*beyond, f"1e{zeros}1", f"1e-{arabic}1", f"0e{zeros}37", f"1e-{zeros}2147483648"]
    values = [*(None for _ in beyond), 10, Number("0.1"), 0, None]
    assert cast_texts(pa.array(texts), Decimal(10, 2)).to_pylist() == values
