"""Suites outside of a stream: Great Expectations validates what we export, and all rows meet what
we propose."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from headgate.declaration.expectations.exporting import exported
from headgate.declaration.expectations.library import great_expectations
from headgate.declaration.suites.model import Suite
from tests.support.arrow_tables import NOON
from tests.support.profiled import Profiled
from tests.support.rounds import IN_FULL
from tests.support.suites import (
    ARGUMENTS,
    ROWS,
    TYPES,
    WITHOUT_CONDITION,
    suite_of,
    suite_yaml,
)

pytestmark = pytest.mark.spark
SQL = {"sql": "s rlike 'a{1,2}' or i > 0", "guarded": "to_date(s) is null and b"}


def frame_of(spark: SparkSession, rows: list[dict[str, Any]]) -> DataFrame:
    ddl = ", ".join(f"{name} {type_}" for name, type_ in TYPES.items())
    return spark.createDataFrame([tuple(row[name] for name in TYPES) for row in rows], ddl)


@settings(
    max_examples=20 if IN_FULL else 1,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
    derandomize=not IN_FULL,
)
@given(
    # The first examples that Hypothesis tries have only equal rows.
    rows=ROWS.filter(lambda rows: len({str(row) for row in rows}) > 10),
    arguments=st.fixed_dictionaries(dict(ARGUMENTS)),
    condition=st.sampled_from(["", "i > 0", "b"]),
)
def test_great_expectations_counts_the_same_rows(
    spark: SparkSession,
    rows: list[dict[str, Any]],
    arguments: dict[str, dict[str, Any]],
    condition: str,
) -> None:
    rules = [{"id": name, "expect": name, **given} for name, given in arguments.items()]
    rules += [{"id": name, "expect": sql} for name, sql in SQL.items()]
    for rule in rules:
        if condition and rule["id"] != WITHOUT_CONDITION:
            rule["row_condition"] = condition
    suite = suite_of(suite_yaml(rules))
    frame = frame_of(spark, rows)
    document = json.loads(json.dumps(exported(suite, TYPES)))
    counted = broken(frame, suite)
    assert unexpected(frame, document) == counted
    assert sum(counted.values()) > 0


def test_every_row_meets_what_is_proposed_for_it(spark: SparkSession) -> None:
    """tests/unit/declaration/expectations/test_profiling.py tests it with many rows, in DuckDB."""
    suite = Profiled(EXTREMES).suite
    assert suite is not None
    assert set(broken(frame_of(spark, EXTREMES), suite).values()) == {0}


# All values that each column takes.
_CHOICES: dict[str, list[Any]] = {
    "l": [-(2**63), 0, 2**63 - 1],
    "d": [-0.0, 5e-324, 1.7976931348623157e308],
    "p": [Decimal("-9999999999999999.99"), Decimal("0.01"), Decimal("9999999999999999.99")],
    "s": ["", "it's a\\d", "日本\n"],
    "t": ["a", "😀\u0301", "\t"],
    "at": [datetime(1, 1, 1, tzinfo=UTC), NOON, datetime(9999, 12, 31, 23, 59, 59, 999999, UTC)],
    "day": [date(1, 1, 1), date(2026, 1, 1), date(9999, 12, 31)],
}
EXTREMES = [
    {"i": -(2**31), "j": 2**31 - 1, "b": True, **{n: v[i % 3] for n, v in _CHOICES.items()}}
    for i in range(6)
]


def broken(frame: DataFrame, suite: Suite) -> dict[str, int]:
    """How many rows break each rule."""
    counts = [F.count(F.when(~F.expr(r.condition), 1)).alias(r.id) for r in suite.rules]
    found = frame.select(*counts).first()
    assert found is not None
    return found.asDict()


def unexpected(frame: DataFrame, document: Mapping[str, Any]) -> dict[str, int]:
    """How many rows break each rule, by Great Expectations' own validation of a stored suite."""
    gx = great_expectations()

    context: Any = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False}
    suite = context.suites.add(gx.ExpectationSuite(**document))
    assert len(suite.expectations) == len(document["expectations"])
    source = context.data_sources.add_spark("rows", persist=False)
    batches = source.add_dataframe_asset("rows").add_batch_definition_whole_dataframe("rows")
    batch = batches.get_batch({"dataframe": frame})
    found = batch.validate(suite, result_format="BASIC")
    return {
        each.expectation_config.meta["headgate"]["id"]: _count(each.result)
        for each in found.results
    }


def _count(result: Mapping[str, Any]) -> int:
    return int(result.get("unexpected_count", result.get("observed_value")))
