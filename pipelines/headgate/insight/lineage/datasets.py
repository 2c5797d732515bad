"""The names and facets of datasets: sources, and the tables of a pipeline.

Names follow OpenLineage's naming rules: a folder is ``file`` and its absolute path, a topic is
``kafka://HOST:PORT`` and its name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from openlineage.client.event_v2 import InputDataset, OutputDataset
from openlineage.client.facet_v2 import (
    DatasetFacet,
    InputDatasetFacet,
    OutputDatasetFacet,
    column_lineage_dataset,
    data_quality_assertions_dataset,
    output_statistics_output_dataset,
    schema_dataset,
)

from headgate.declaration.contracts.operator import columns_of
from headgate.declaration.contracts.sink import sink_of
from headgate.declaration.contracts.source import connector_of
from headgate.declaration.graph import Node
from headgate.declaration.kinds import BRONZE, GOLD, SILVER
from headgate.declaration.model import Pipeline
from headgate.declaration.types import TIMESTAMP, DataType
from headgate.insight.lineage.columns import (
    EVENT_TIME,
    Columns,
    Input,
    of_bronze,
    of_gold,
    of_silver,
)
from headgate.insight.lineage.quality import RuleOutcome
from headgate.lake.storage.layout import Layout
from headgate.lake.storage.places import split_scheme

Name = tuple[str, str]
"""Namespace and name."""


def table_name(layout: Layout, path: str) -> Name:
    scheme, rest = split_scheme(layout.storage.uri(path))
    if not scheme:
        return "file", rest
    place, _, name = rest.partition("/")
    return f"{scheme}{place}", name


def inputs(declared: Pipeline, layout: Layout, node: Node) -> list[InputDataset]:
    return [InputDataset(*name) for name in _above(declared, layout, node)]


def _above(declared: Pipeline, layout: Layout, node: Node) -> list[Name]:
    if node.kind == BRONZE:
        source = declared.sources[node.name]
        return [*connector_of(source).datasets(source.reads)]
    return [table_name(layout, path) for path in node.upstream]


def validated(layout: Layout, node: Node, outcomes: Iterable[RuleOutcome]) -> InputDataset:
    """The table, with the results of its rules."""
    assertions = [_assertion(outcome) for outcome in outcomes]
    facets: dict[str, InputDatasetFacet] = {
        "dataQualityAssertions": data_quality_assertions_dataset.DataQualityAssertionsDatasetFacet(
            assertions
        )
    }
    return InputDataset(*table_name(layout, node.path), inputFacets=facets)


def outputs(
    declared: Pipeline, layout: Layout, node: Node, rows: int | None
) -> list[OutputDataset]:
    """The table, with its columns and where they come from, and its side tables. ``rows`` is the
    number that was written, if it is known."""
    columns, types = _columns(declared, node)
    fields = [
        schema_dataset.SchemaDatasetFacetFields(name, str(type_)) for name, type_ in types.items()
    ]
    facets: dict[str, DatasetFacet] = {"schema": schema_dataset.SchemaDatasetFacet(fields)}
    if above := _above(declared, layout, node):
        facets["columnLineage"] = _column_lineage(columns, above)
    about: dict[str, OutputDatasetFacet] = {}
    if rows is not None:
        about["outputStatistics"] = (
            output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(rowCount=rows)
        )
    itself = OutputDataset(*table_name(layout, node.path), outputFacets=about, facets=facets)
    return [itself, *(OutputDataset(*table_name(layout, path)) for path in node.sides.values())]


def sent(declared: Pipeline, node: Node) -> list[OutputDataset]:
    """Where a publication sends rows."""
    publication = declared.publish[node.name]
    return [OutputDataset(*name) for name in sink_of(publication).datasets(publication.sink)]


def _assertion(outcome: RuleOutcome) -> data_quality_assertions_dataset.Assertion:
    return data_quality_assertions_dataset.Assertion(
        assertion=outcome.rule,
        success=outcome.met,
        severity="error" if outcome.holds else "warn",
        description=outcome.description,
    )


def _columns(declared: Pipeline, node: Node) -> tuple[Columns, Mapping[str, DataType]]:
    if node.kind == BRONZE:
        record = declared.sources[node.name].record
        return of_bronze(record), record.types
    if node.kind == SILVER:
        silver = declared.silver[node.name]
        record = declared.sources[silver.source].record
        return of_silver(silver, record), {**silver.types, EVENT_TIME: TIMESTAMP}
    assert node.kind == GOLD
    gold = declared.gold[node.name]
    return of_gold(gold, declared.silver[gold.silver]), {**columns_of(gold), **gold.types}


def _column_lineage(
    columns: Columns, above: list[Name]
) -> column_lineage_dataset.ColumnLineageDatasetFacet:
    def fields(inputs: Iterable[Input]) -> list[column_lineage_dataset.InputField]:
        return [
            column_lineage_dataset.InputField(
                *name, each.column, [column_lineage_dataset.Transformation(_type(each), each.how)]
            )
            for name in above
            for each in inputs
        ]

    of = {
        name: column_lineage_dataset.Fields(fields(inputs)) for name, inputs in columns.of.items()
    }
    return column_lineage_dataset.ColumnLineageDatasetFacet(of, fields(columns.rows))


def _type(each: Input) -> str:
    return "INDIRECT" if each.how in ("FILTER", "GROUP_BY") else "DIRECT"
