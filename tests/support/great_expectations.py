"""The result of Great Expectations itself for each row: an independent oracle of row rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from headgate.declaration.expectations.library import great_expectations

great_expectations()

from great_expectations.core.metric_function_types import MetricPartialFunctionTypes  # noqa: E402
from great_expectations.execution_engine.sparkdf_execution_engine import SparkDFExecutionEngine  # noqa: E402
from great_expectations.expectations.registry import get_expectation_impl, get_metric_provider  # noqa: E402
from great_expectations.expectations.row_conditions import deserialize_row_condition  # noqa: E402
from great_expectations.validator.metric_configuration import MetricConfiguration  # noqa: E402

_BOOLEAN = {"result_format": {"result_format": "BOOLEAN_ONLY"}}


class RowOracle:
    """Compiles expectations over the rows of a frame. It uses internals of Great Expectations,
    whose public interface only counts rows."""

    def __init__(self, frame: DataFrame) -> None:
        self._engine = SparkDFExecutionEngine(spark=frame.sparkSession, persist=False)
        self._engine.load_batch_data("rows", frame)

    def breaks(self, name: str, arguments: Mapping[str, Any]) -> Column:
        """Whether a row is unexpected. Never null."""
        expectation: Any = get_expectation_impl(name)(**arguments)
        metric = f"{expectation.map_metric}.unexpected_count"
        wanted = expectation.get_validation_dependencies(
            self._engine, runtime_configuration=_BOOLEAN
        ).metric_configurations[metric]
        values = {k: v for k, v in wanted.metric_value_kwargs.items() if k != "result_format"}
        unexpected, compute, accessor = self._resolve(
            MetricConfiguration(
                f"{expectation.map_metric}.condition", wanted.metric_domain_kwargs, values
            )
        )
        checked = F.lit(True)
        domain = {**compute, **accessor}
        for each in domain.get("filter_conditions", ()):
            checked &= F.expr(each.condition)
        if domain.get("row_condition"):
            condition: Any = deserialize_row_condition(domain["row_condition"])
            checked &= F.expr(condition.pass_through_filter)
        checked &= ~_ignored(domain)
        return F.coalesce(unexpected & checked, F.lit(False))

    def _resolve(self, metric: MetricConfiguration) -> Any:
        if metric.metric_name == "table.row_count":
            return None  # declared as a dependency, but not used
        provider, function = get_metric_provider(metric.metric_name, self._engine)
        kind = getattr(function, "metric_fn_type", None)
        rows = (MetricPartialFunctionTypes.MAP_FN, MetricPartialFunctionTypes.MAP_CONDITION_FN)
        assert kind in rows or metric.metric_name in ("table.columns", "table.column_types")
        needed = provider.get_evaluation_dependencies(metric=metric, execution_engine=self._engine)
        return function(
            cls=provider,
            execution_engine=self._engine,
            metric_domain_kwargs=metric.metric_domain_kwargs,
            metric_value_kwargs=metric.metric_value_kwargs,
            runtime_configuration={},
            metrics={name: self._resolve(each) for name, each in needed.items()},
        )


def _ignored(domain: Mapping[str, Any]) -> Column:
    way = domain.get("ignore_row_if", "never")
    names = domain.get("column_list") or [domain.get(f"column_{end}") for end in "AB"]
    nulls = [F.col(name).isNull() for name in names if name]
    if way in ("both_values_are_missing", "all_values_are_missing"):
        return _joined(nulls, Column.__and__)
    if way in ("either_value_is_missing", "any_value_is_missing"):
        return _joined(nulls, Column.__or__)
    return F.lit(False)


def _joined(parts: list[Column], by: Any) -> Column:
    first, *others = parts
    for each in others:
        first = by(first, each)
    return first
