"""Types are values that print as Spark writes them."""

from __future__ import annotations

import pickle

import pytest

from headgate.declaration.errors import Invalid
from headgate.declaration.types import (
    BIGINT,
    INT,
    STRING,
    TIMESTAMP,
    Array,
    DataType,
    Decimal,
    Map,
    Struct,
    declared_type,
    is_decimal,
    is_nested,
    is_number,
    parse_type,
)

DEEP = Struct.of({"a b": Array(Map(STRING, Decimal(3, 1))), "C": Struct.of({"at": TIMESTAMP})})


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("BigInt", BIGINT),
        ("long", BIGINT),
        ("dec( 18 , 2 )", Decimal(18, 2)),
        ("array<int>", Array(INT)),
        ("ARRAY < array<Long> >", Array(Array(BIGINT))),
        ("map<string,array<decimal(3,1)>>", Map(STRING, Array(Decimal(3, 1)))),
        ("struct<A: int, b string>", Struct.of({"A": INT, "b": STRING})),
        ("struct<`a b`: array<map<string,numeric(3,1)>>, C: struct<at timestamp>>", DEEP),
    ],
)
def test_a_type_is_parsed_in_any_depth(text: str, type_: DataType) -> None:
    assert parse_type(text) == type_
    assert parse_type(str(type_)) == type_
    assert {parse_type(text): "found"}[pickle.loads(pickle.dumps(type_))] == "found"


def test_it_prints_as_spark_writes_it() -> None:
    assert str(Decimal(18, 2)) == "decimal(18,2)"
    assert str(Array(Array(BIGINT))) == "array<array<bigint>>"
    assert str(DEEP) == (
        "struct<`a b`: array<map<string,decimal(3,1)>>, `C`: struct<`at`: timestamp>>"
    )


@pytest.mark.parametrize(
    "text",
    [
        *("array", "array<int", "array<int>>", "array<int> x", "array<>", "array<int,int>"),
        *("map<int>", "struct<>", "struct<int>", "struct<a: int,>", "array<frob>", "array(int)"),
    ],
)
def test_what_is_no_type_is_refused(text: str) -> None:
    with pytest.raises(Invalid, match="is not a supported type"):
        parse_type(text)


@pytest.mark.parametrize("text", ["array<int>", "MAP<string,int>", "struct<a: int>", "variant"])
def test_a_declared_column_is_not_nested_yet(text: str) -> None:
    with pytest.raises(Invalid, match=f"the type {text} comes next"):
        declared_type(text)


def test_kinds_of_types() -> None:
    assert [is_number(t) for t in (INT, Decimal(3, 1), STRING, Array(INT))] == [
        True,
        True,
        False,
        False,
    ]
    assert is_decimal(Decimal(3, 1))
    assert not is_decimal(INT)
    assert is_nested(DEEP)
    assert not is_nested(STRING)
