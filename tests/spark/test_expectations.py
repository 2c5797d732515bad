"""Each row rule gives the same result as Great Expectations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from headgate.declaration.suites.rows import ROW_EXPECTATIONS
from tests.support.rounds import IN_FULL
from tests.support.suites import ARGUMENTS, ROWS, TYPES, WITHOUT_CONDITION, suite_of, suite_yaml

pytestmark = [
    pytest.mark.spark,
    # The form that replaces it cannot express every SQL condition.
    pytest.mark.filterwarnings("ignore:.*as of GX Core 1.9.0:DeprecationWarning"),
]
RULES = st.fixed_dictionaries(dict(ARGUMENTS))


def test_every_expectation_is_compared() -> None:
    assert set(ARGUMENTS) == set(ROW_EXPECTATIONS)


@settings(
    max_examples=40 if IN_FULL else 6,
    phases=[Phase.explicit, Phase.generate],  # shrinking would take hours: each try is a query
    suppress_health_check=list(HealthCheck),
    derandomize=not IN_FULL,
)
@given(rows=ROWS, rules=RULES, condition=st.sampled_from([None, "i > 0", "b"]))
def test_each_row_is_validated_as_by_great_expectations(
    spark: SparkSession, rows: list[dict[str, Any]], rules: dict[str, Any], condition: str | None
) -> None:
    # It takes seconds to import, and each worker collects all tests.
    from tests.support.great_expectations import RowOracle

    ddl = ", ".join(f"{name} {type_}" for name, type_ in TYPES.items())
    frame = spark.createDataFrame([tuple(row[name] for name in TYPES) for row in rows], ddl)
    ours = _conditions(rules, condition)
    oracle = RowOracle(frame)
    of_rows = {} if condition is None else {"row_condition": condition, "condition_parser": "spark"}
    columns = [
        F.array(
            ~F.expr(ours[name]),
            oracle.breaks(name, given | ({} if name == WITHOUT_CONDITION else of_rows)),
        ).alias(name)
        for name, given in rules.items()
    ]
    for row, results in zip(rows, frame.select(*columns).collect(), strict=True):
        for name, arguments in rules.items():
            mine, theirs = results[name]
            assert mine == theirs, f"{name} {arguments} of {row}: {mine}, not {theirs}"


def _conditions(rules: Mapping[str, dict[str, Any]], condition: str | None) -> dict[str, str]:
    """The conditions of a suite that is written and read like a user's suite."""
    listed: list[dict[str, Any]] = [
        {"id": name, "expect": name, **arguments} for name, arguments in rules.items()
    ]
    for each in listed:
        if condition is not None and each["id"] != WITHOUT_CONDITION:
            each["row_condition"] = condition
    return {rule.id: rule.condition for rule in suite_of(suite_yaml(listed)).rules}
