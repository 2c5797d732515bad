"""The contract of every measure; a measure of another package needs no change here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from headgate.declaration.contracts.measure import MEASURES
from headgate.declaration.errors import Invalid
from headgate.declaration.expressions.measure import parse_measure
from headgate.declaration.load import load
from headgate.declaration.plan import plan
from headgate.declaration.type_parser import parse_type
from headgate.declaration.types import BIGINT, INT
from headgate.flow.gold.schema import merged_sql, state_type, value_sql
from tests.support.toys import plugged_in

ARGUMENTS = ("int", "bigint", "decimal(18,2)", "double", "string", "timestamp", "boolean")
CONSTANTS = {"p": "0.5", "n": "3"}

TOY = """
from headgate.declaration.contracts.measure import MeasureFold, MeasureFunction, StateField
from headgate.declaration.types import DOUBLE


class Product(MeasureFunction):
    result, keeps = "double", "a product"
    also_called = ("prod",)

    def type_of(self, arguments):
        return DOUBLE

    def fold(self, measure):
        merge = "coalesce({old}, 1) * coalesce({new}, 1)"
        field = StateField(DOUBLE, f"product({measure.argument()})", merge)
        return MeasureFold({"p": field}, "{p}")


MEMBER = Product()
"""
DECLARATION = """
pipeline: shop
sources:
  orders:
    files: {path: landing, format: json}
    record: {event_id: [id], event_time: {column: at}, schema: {id: string, at: timestamp, x: int}}
silver: {clean: {from: orders}}
gold:
  per_hour:
    from: clean
    window: {tumbling: 1 hour}
    measures: {all: product(x)}
    allowed_lateness: 0 seconds
"""


@pytest.mark.parametrize("name", MEASURES.names())
def test_it_says_its_type_and_what_it_keeps(name: str) -> None:
    kind = MEASURES[name]
    assert kind.result
    assert kind.keeps
    assert kind.distinct is None or MEASURES.get(kind.distinct) is not None
    assert not {*kind.also_called, *kind.synonyms} & set(MEASURES.names())


@pytest.mark.parametrize("name", MEASURES.names())
@pytest.mark.parametrize("argument", ARGUMENTS)
@pytest.mark.parametrize("suffix", ["", " filter (where x is null)"])
def test_its_state_has_only_fields_that_are_there(name: str, argument: str, suffix: str) -> None:
    given = ", ".join(CONSTANTS.get(taken, "x") for taken in MEASURES[name].takes)
    try:
        measure = parse_measure("m", f"{name}({given}){suffix}", {"x": parse_type(argument)})
    except Invalid:
        is_number = argument not in ("string", "timestamp", "boolean")
        assert not is_number or MEASURES[name].takes == ("condition",)
        return
    assert parse_type(str(measure.type)) == measure.type
    fold = MEASURES[name].fold(measure)
    fields = set(fold.fields)
    assert set(re.findall(r"\{(\w+)\}", fold.value)) <= fields
    for field, kept in fold.fields.items():
        assert (" x is null" in kept.partial) == bool(suffix)
        sql = merged_sql(measure, field, "o", "n")
        assert "{" not in sql
        assert set(re.findall(r"[on]\.`(\w+)`", sql)) <= fields
    assert "{" not in value_sql(measure, "s")
    assert {field for field, _ in state_type(measure).fields} == fields


def test_rows_are_counted_without_an_argument() -> None:
    assert parse_measure("m", "count(*)", {}).type == BIGINT
    with pytest.raises(Invalid):
        parse_measure("m", "sum(*)", {})


@pytest.fixture
def toy(tmp_path: Path) -> Iterator[None]:
    entries = (
        "product = toy_measures:MEMBER",
        "wrong = toy_measures:Product",
    )
    with plugged_in(tmp_path, "toy_measures", "headgate.measures", *entries, code=TOY):
        yield


@pytest.mark.usefixtures("toy")
def test_a_measure_of_another_package_is_declared_like_any(tmp_path: Path) -> None:
    pipeline = load(tmp_path / "shop.yml", text=DECLARATION)
    said = plan(pipeline)["gold"]["per_hour"]["measures"]["all"]
    assert (said["type"], said["state"]) == ("double", "a product")
    (measure,) = pipeline.gold["per_hour"].measures
    assert merged_sql(measure, "p", "o", "n") == "coalesce(o.`p`, 1) * coalesce(n.`p`, 1)"
    with pytest.raises(
        TypeError, match=r"headgate.flow.gold.measures: wrong is no MeasureFunction"
    ):
        MEASURES.get("wrong")


def test_without_the_package_it_is_refused_by_name() -> None:
    with pytest.raises(Invalid, match=r"product\(\) is not a measure"):
        parse_measure("m", "product(x)", {"x": INT})
    assert MEASURES.get("adding") is None
    assert MEASURES.get("../count") is None


@pytest.mark.parametrize("function", ["sum", "avg"])
def test_a_decimal_without_a_digit_for_the_sum_is_refused(function: str) -> None:
    with pytest.raises(Invalid, match=r"write cast\(\.\.\. as decimal\(38,37\)\)"):
        parse_measure("m", f"{function}(x)", {"x": parse_type("decimal(38,38)")})
