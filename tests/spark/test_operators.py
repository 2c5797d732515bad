"""Invariants of the runtime part of every fold: pairs are a function of the row alone, and no
pair may be folded into a result that is final."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from headgate.declaration.contracts.operator import (
    OPERATORS,
    columns_of,
    identity_columns,
    operator_of,
)
from headgate.flow.gold.operators.fold_operator import FoldOperator
from headgate.flow.gold.pairs import Assignment
from headgate.lake.tables.frames import micros, struct_type
from tests.support.operators import FOLDS, Case
from tests.support.toys import toys

pytestmark = pytest.mark.spark

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
STEPS = [timedelta(seconds=17 * n, microseconds=n) for n in range(-60, 60)]
TIMES = [NOON + step for step in STEPS] + [datetime(1969, 12, 31, 23, 59, 58, tzinfo=UTC), NOON]


@pytest.fixture(params=FOLDS, ids=lambda case: case.name)
def case(request: pytest.FixtureRequest) -> Iterator[Case]:
    found: Case = request.param
    with toys():
        yield found


def assignment(case: Case) -> Assignment:
    gold = case.table
    kind = OPERATORS[gold.kind]
    assert isinstance(kind, FoldOperator)
    found: Assignment = kind.assignment(gold.operator, gold)
    return found


def silver(spark: SparkSession, times: list[datetime]) -> DataFrame:
    number = pa.array(range(len(times)), pa.int64())
    time = pa.array(times, pa.timestamp("us", "UTC"))
    zeros = pa.array([0] * len(times), pa.int32())
    columns = {"_partition": zeros, "_offset": number, "_item": zeros}
    return spark.createDataFrame(pa.table({**columns, "_event_time": time, "_arrived": time}))


def pairs(rows: DataFrame, case: Case) -> list[dict[str, Any]]:
    found = assignment(case)
    columns = ("_offset", "_event_time", *columns_of(case.table))
    said = found.assign(rows).select(
        *columns,
        found.end.alias("end"),
        found.late_from.alias("late_from"),
        found.closed_by.alias("closed_by"),
    )
    return sorted((row.asDict() for row in said.collect()), key=str)


def test_its_pairs_have_its_columns(spark: SparkSession, case: Case) -> None:
    columns = columns_of(case.table)
    given = assignment(case).assign(silver(spark, TIMES)).select(*columns).schema
    wanted = struct_type(columns)
    assert [(f.name, f.dataType) for f in given] == [(f.name, f.dataType) for f in wanted]


def test_its_pairs_are_a_function_of_the_row(spark: SparkSession, case: Case) -> None:
    whole = pairs(silver(spark, TIMES), case)
    rows = silver(spark, TIMES)
    parts = [
        pair
        for part in (F.col("_offset") % 2 == 1, F.col("_offset") % 2 == 0)
        for pair in pairs(rows.where(part).repartition(3), case)
    ]
    assert sorted(parts, key=str) == whole


def test_each_row_is_in_as_many_pairs_as_it_says(spark: SparkSession, case: Case) -> None:
    gold = case.table
    most = operator_of(gold).pairs_per_row(gold.operator)
    found = pairs(silver(spark, TIMES), case)
    identity = ("_offset", *identity_columns(gold))
    assert len({tuple(pair[name] for name in identity) for pair in found}) == len(found)
    assert most is None or len(found) == most * len(TIMES)


def test_no_pair_is_folded_into_what_is_final(spark: SparkSession, case: Case) -> None:
    lateness = micros(case.table.allowed_lateness)
    for pair in pairs(silver(spark, TIMES), case):
        assert pair["late_from"] <= pair["end"] + lateness


def test_a_row_in_time_is_never_late(spark: SparkSession, case: Case) -> None:
    """A row is not late if its watermark at arrival is at most its own time plus the operator's
    ``slack``."""
    slack = assignment(case).slack
    assert slack >= 0
    for pair in pairs(silver(spark, TIMES), case):
        assert pair["late_from"] > micros(pair["_event_time"].replace(tzinfo=UTC) - EPOCH) + slack


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
