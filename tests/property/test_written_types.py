"""Types print and parse back, and the parser fails for any other text only with ``Invalid``."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.declaration.errors import Invalid
from headgate.declaration.expressions.expression import parse_expression
from headgate.declaration.type_parser import FIELD_PATTERN, parse_type
from headgate.declaration.types import (
    DECLARED,
    STRING,
    Array,
    DataType,
    Decimal,
    Map,
    Struct,
    differences,
    has_map,
    parts,
)

DECIMALS = st.integers(1, 38).flatmap(
    lambda precision: st.builds(Decimal, st.just(precision), st.integers(0, precision))
)
SCALARS = st.one_of(st.sampled_from(list(DECLARED.values())), DECIMALS)
NAMES = st.from_regex(rf"\A{FIELD_PATTERN}\Z").filter(str.isascii)


def structs(inner: st.SearchStrategy[DataType]) -> st.SearchStrategy[DataType]:
    fields = st.tuples(NAMES, inner)
    unique = st.lists(fields, min_size=1, max_size=4, unique_by=lambda field: field[0].lower())
    return unique.map(lambda found: Struct(tuple(found)))


TYPES: st.SearchStrategy[DataType] = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        inner.map(Array), inner.map(lambda value: Map(STRING, value)), structs(inner)
    ),
    max_leaves=12,
)
WORDS = [
    *DECLARED,
    "array",
    "map",
    "struct",
    "<",
    ">",
    ",",
    ":",
    "(",
    ")",
    "`",
    "a",
    "decimal(3,1)",
]


@given(TYPES)
def test_a_type_prints_and_parses_back(type_: DataType) -> None:
    assert parse_type(str(type_)) == type_
    assert parse_type(f" {str(type_).upper()} ") == parse_type(str(type_).upper())
    assert has_map(type_) == ("map<" in str(type_))
    assert list(differences(type_, type_, "it")) == []


@pytest.mark.slow
@given(TYPES, TYPES)
def test_types_differ_where_they_are_not_equal(one: DataType, other: DataType) -> None:
    assert bool(list(differences(one, other, "it"))) == (one != other)


@pytest.mark.slow
@given(st.lists(st.sampled_from(WORDS), max_size=14).map("".join) | st.text(max_size=40))
def test_any_text_is_a_type_or_invalid(text: str) -> None:
    with suppress(Invalid):
        type_ = parse_type(text)
        assert parse_type(str(type_)) == type_


@pytest.mark.slow
@given(TYPES, st.data())
def test_every_part_can_be_read(type_: DataType, data: st.DataObject) -> None:
    """A path through fields, elements and values has the type of the part it leads to."""
    text, part = "it", type_
    while True:
        if isinstance(part, Struct):
            name, part = data.draw(st.sampled_from(part.fields))
            text += f".`{name}`"
        elif isinstance(part, Array):
            text, part = f"{text}[0]", part.element
        elif isinstance(part, Map):
            text, part = f"{text}['k']", part.value
        else:
            break
    assert parse_expression(text, {"it": type_}).type == part
    assert part in set(parts(type_))
