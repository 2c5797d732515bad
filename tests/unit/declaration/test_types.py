"""Types are values that print as Spark writes them."""

from __future__ import annotations

import pickle

import pytest

from headgate.declaration.errors import Invalid
from headgate.declaration.type_parser import MAX_LEVELS, parse_type
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
    has_map,
    is_decimal,
    is_nested,
    is_number,
)

DEEP = Struct.of({"a_b": Array(Map(STRING, Decimal(3, 1))), "C": Struct.of({"at": TIMESTAMP})})


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
        ("struct<`a_b`: array<map<string,numeric(3,1)>>, C: struct<at timestamp>>", DEEP),
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
        "struct<`a_b`: array<map<string,decimal(3,1)>>, `C`: struct<`at`: timestamp>>"
    )


@pytest.mark.parametrize(
    "text",
    [
        *("array", "array<int", "array<int>>", "array<int> x", "array<>", "array<int,int>"),
        *("map<int>", "struct<>", "struct<int>", "struct<a: int,>", "array<frob>", "array(int)"),
    ],
)
def test_what_is_no_type_is_refused(text: str) -> None:
    with pytest.raises(Invalid):
        parse_type(text)


@pytest.mark.parametrize(
    ("text", "says", "guess"),
    [
        ("array<strng>", "element: 'strng' is not a supported type", "string"),
        ("array<struct<sku: string, price: decimal>>", "element.price: 'decimal' needs a", "dec"),
        ("struct<a: struct<b: map<string, int32>>>", "a.b.value: 'int32' is not", "int"),
        ("map<int, string>", "key: the keys of a map are strings, not int", "string"),
        ("map<array<string>, string>", "key: the keys of a map are strings", "string"),
        ("struct<a: array>", "a: 'array' needs the types of its parts", "array<string>"),
        ("map", "'map' needs the types of its parts", "map<string,string>"),
        ("map<string>", "a map has a type of values", "map<string,string>"),
        ("array<int, int>", "an array has one type of elements", "array<string>"),
        ("struct<a: int, a: int>", "has the field 'a' twice", None),
        ("array<struct<id: int, ID: int>>", "element: the fields 'id' and 'ID' differ only", None),
        ("struct<`a b`: int>", "'a b' is not a name of a field", None),
        ("struct<1a: int>", "'1a' is not a name of a field", None),
        ("struct<a int b int>", "a comma or > must follow the field 'a'", None),
        ("struct<>", "a struct has fields", None),
        ("array<int> x", "nothing can follow array<int>", None),
        ("list<int>", "is not a supported type", "array<string>"),
        ("array<decimal(39,1)>", "element: decimal(39,1) is out of range", None),
    ],
)
def test_what_is_wrong_in_a_nested_type_has_its_path(
    text: str, says: str, guess: str | None
) -> None:
    with pytest.raises(Invalid) as caught:
        parse_type(text)
    assert caught.value.message.startswith(says) or says in caught.value.message
    assert (caught.value.nearest or "").startswith(guess or "")
    assert bool(caught.value.nearest) == bool(guess)


def test_a_type_has_a_greatest_depth_and_a_greatest_number_of_fields() -> None:
    deep = "array<" * MAX_LEVELS + "int" + ">" * MAX_LEVELS
    assert str(parse_type(deep)) == deep
    with pytest.raises(Invalid, match="at most 20 arrays, maps and structs in each other"):
        parse_type(f"array<{deep}>")
    with pytest.raises(Invalid, match="at most 20"):
        parse_type("struct<a:" * 100_000)
    with pytest.raises(Invalid, match="at most 1000 fields"):
        parse_type(f"struct<{','.join(f'f{n}: int' for n in range(1001))}>")


def test_what_holds_a_map() -> None:
    assert has_map(parse_type("array<struct<a: int, b: map<string,int>>>"))
    assert not has_map(parse_type("array<struct<a: int>>"))


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
