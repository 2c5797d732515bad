"""The names and facets of datasets: sources, and the tables of a pipeline with the lineage of
their columns and the latest results of their rules.

Names follow OpenLineage's naming rules: a folder is ``file`` and its absolute path, a topic is
``kafka://HOST:PORT`` and its name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import sqlglot
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
from sqlglot import exp
from sqlglot.errors import SqlglotError

from headgate.declaration.contracts.operator import bounds_of, columns_of, operator_of
from headgate.declaration.contracts.sink import sink_of
from headgate.declaration.contracts.source import connector_of
from headgate.declaration.expressions.tokens import tokenize
from headgate.declaration.graph import Node
from headgate.declaration.kinds import BRONZE, GOLD, SILVER
from headgate.declaration.model import GoldTable, Measure, Pipeline, Record, SilverTable
from headgate.declaration.names import RESULT_ID, RESULT_TIME
from headgate.declaration.suites.model import Suite, count_key
from headgate.declaration.types import TIMESTAMP, DataType
from headgate.flow.gates.validations import Validation, validations
from headgate.insight.quality.findings import without_values
from headgate.lake.storage.layout import Layout
from headgate.lake.storage.places import split_scheme
from headgate.lake.tables.table import Table

How = Literal["IDENTITY", "TRANSFORMATION", "AGGREGATION", "FILTER", "GROUP_BY"]
"""A subtype of a transformation, in the words of OpenLineage's column lineage facet."""

_COMPUTED: How = "TRANSFORMATION"
EVENT_TIME = "_event_time"
"""The column of silver that decides to which windows a row belongs."""


@dataclass(frozen=True, order=True)
class Input:
    """A column of an upstream table, and how it is used. ``place`` is that of the table among the
    upstream tables, if there are several."""

    column: str
    how: How
    place: int = 0


@dataclass(frozen=True)
class Columns:
    """``of`` has the inputs of each column. ``rows`` are the inputs that decide which rows there
    are."""

    of: Mapping[str, tuple[Input, ...]]
    rows: tuple[Input, ...]


def of_bronze(record: Record) -> Columns:
    """The fields of a record, from the fields of the source."""
    return Columns({c.name: (Input(c.in_record, "IDENTITY"),) for c in record.schema}, ())


def of_silver(table: SilverTable, record: Record) -> Columns:
    fields: Mapping[str, str] = {name: name for name in record.types}
    if table.explode is not None:
        fields = {**fields, table.explode.name: table.explode.array.partition(".")[0]}
    derived = {each.name: each.expression for each in table.columns}
    of: dict[str, tuple[Input, ...]] = {
        name: _from_fields(derived.get(name, name), fields) for name in table.types
    }
    of[EVENT_TIME] = (Input(record.event_time.column.partition(".")[0], "TRANSFORMATION"),)
    # The condition may read all columns of the table, also those that are dropped after it.
    rows = {
        Input(source.column, "FILTER")
        for name in _names(table.where, fields.keys() | derived.keys())
        for source in _from_fields(derived.get(name, name), fields)
    }
    if table.explode is not None:
        rows.add(Input(fields[table.explode.name], "FILTER"))
    return Columns(of, tuple(sorted(rows)))


def of_gold(table: GoldTable, declared: Pipeline) -> Columns:
    """``of`` has the columns of the table that it reads: a rollup reads the end of a row as its
    event time, and the bounds of a row as a struct."""
    if operator_of(table).appends:
        return _of_append(table, declared)
    if table.reads is None:
        # When and where a record arrived is no field of it.
        is_of_event_time = table.time == "event" and bool(bounds_of(table))
        time = EVENT_TIME if is_of_event_time else None
        return _of_gold(table, declared.silver[table.silver].types.keys(), time)
    above = declared.gold[table.reads]
    bounds = tuple(columns_of(above))
    found = _of_gold(table, {*above.types, above.name}, bounds_of(above)[-1])
    if above.name in above.types:
        return found

    def each_bound(inputs: Iterable[Input]) -> tuple[Input, ...]:
        return tuple(
            replace(each, column=name)
            for each in inputs
            for name in (bounds if each.column == above.name else (each.column,))
        )

    of = {name: each_bound(inputs) for name, inputs in found.of.items()}
    return Columns(of, each_bound(found.rows))


def _of_append(table: GoldTable, declared: Pipeline) -> Columns:
    """Expressions name a column of an input as ``input.column``."""
    operator = operator_of(table)
    columns = [(name, [*declared.silver[name].types]) for name in table.inputs]
    time = tuple(Input(EVENT_TIME, _COMPUTED, place) for place in range(len(table.inputs)))
    of: dict[str, tuple[Input, ...]] = {RESULT_TIME: time, RESULT_ID: ()}
    made_of = operator.made_of(table.operator)
    for column in table.columns:
        read = _read(column.expression, columns)
        for name in _names(column.expression, made_of):
            read += [each for text in made_of[name] for each in _read(text, columns)]
        is_itself = column.expression in {f"{table.inputs[at]}.{name}" for at, name in read}
        how: How = "IDENTITY" if is_itself else "TRANSFORMATION"
        of[column.name] = _without_copies(Input(name, how, at) for at, name in read)
    conditions = operator.conditions(table.operator)
    rows = (Input(n, "FILTER", at) for each in conditions for at, n in _read(each, columns))
    return Columns(of, _without_copies(rows))


def _read(expression: str, inputs: Sequence[tuple[str, Sequence[str]]]) -> list[tuple[int, str]]:
    """The columns of inputs that an expression reads, each with the place of its input; all columns
    of an input that it reads as a whole. ``inputs`` has their names and columns."""
    try:
        found = sqlglot.parse_one(expression, dialect="spark").find_all(exp.Column)
        paths = [[part.name for part in column.parts] for column in found]
    except SqlglotError:  # Spark's grammar has more than that of sqlglot
        names = {token.text.strip("`") for token in tokenize(expression)}
        paths = [[name, each] for name, columns in inputs for each in columns if each in names]
    return sorted(
        (place, column)
        for place, (name, columns) in enumerate(inputs)
        for path in paths
        if path[0] == name
        for column in (path[1:2] or columns)
    )


def _of_gold(table: GoldTable, names: Collection[str], time: str | None) -> Columns:
    place = () if time is None else (Input(time, "TRANSFORMATION"),)
    of: dict[str, tuple[Input, ...]] = dict.fromkeys(columns_of(table), place)
    of |= {key.name: _computed(key.expression, names) for key in table.by}
    of |= {measure.name: _aggregated(measure, names) for measure in table.measures}
    for column in table.columns:
        inputs = (source for name in _names(column.expression, of.keys()) for source in of[name])
        of[column.name] = _without_copies(
            Input(each.column, "TRANSFORMATION" if each.how == "IDENTITY" else each.how)
            for each in inputs
        )
    rows = [Input(name, "FILTER") for name in _names(table.where, names)]
    rows += [Input(name, "GROUP_BY") for key in table.by for name in _names(key.expression, names)]
    return Columns(of, _without_copies(rows))


def _aggregated(measure: Measure, names: Collection[str]) -> tuple[Input, ...]:
    read = (name for each in measure.arguments for name in _names(each.text, names))
    tested = (Input(name, "FILTER") for name in _names(measure.filter, names))
    return _without_copies((*(Input(name, "AGGREGATION") for name in read), *tested))


def _from_fields(expression: str, fields: Mapping[str, str]) -> tuple[Input, ...]:
    """As ``_computed``, over the fields of a record. An item is computed from its array, and
    ``fields`` has the field of each name."""
    return _without_copies(
        Input(fields[each.column], each.how if fields[each.column] == each.column else _COMPUTED)
        for each in _computed(expression, fields.keys())
    )


def _computed(expression: str, names: Collection[str]) -> tuple[Input, ...]:
    how: How = "IDENTITY" if expression in names else "TRANSFORMATION"
    return tuple(Input(name, how) for name in _names(expression, names))


def _names(expression: str | None, names: Collection[str]) -> tuple[str, ...]:
    """The ``names`` that an expression reads. No variable of a lambda has the name of a column."""
    if expression is None:
        return ()
    try:
        columns = sqlglot.parse_one(expression, dialect="spark").find_all(exp.Column)
        found = {column.parts[0].name for column in columns}
    except SqlglotError:  # Spark's grammar has more than that of sqlglot
        found = {token.text.strip("`") for token in tokenize(expression)}
    return tuple(sorted(found & {*names}))


def _without_copies(inputs: Iterable[Input]) -> tuple[Input, ...]:
    return tuple(sorted(set(inputs)))


@dataclass(frozen=True)
class RuleOutcome:
    """``holds``: whether rows or versions that break the rule are held back. ``description`` has no
    value of a row, because a receiver may show it to anyone."""

    rule: str
    met: bool
    holds: bool
    description: str


def rule_outcomes(declared: Pipeline, layout: Layout, node: Node) -> Sequence[RuleOutcome]:
    """For gold: the validation of the newest version that readers can see. For silver: all rows
    that were ever validated. Raises HeadgateError if the table is damaged."""
    if node.kind == GOLD:
        newest = (each for each in reversed(validations(layout, node.name)) if _is_visible(each))
        return _of_version(next(newest, None))
    suite = declared.silver[node.name].suite if node.kind == SILVER else None
    if suite is None:
        return ()
    table = Table(layout.storage, node.path, pipeline=declared.name)
    return _of_rows(suite, table.refresh().total) if table.exists else ()


def _is_visible(validation: Validation) -> bool:
    """Whether readers can see the version: it is neither held nor a version of a rebuild."""
    return not validation.log and validation.outcome != "held"


def _of_version(validation: Validation | None) -> Sequence[RuleOutcome]:
    if validation is None:
        return ()
    rules = {rule.id: rule for rule in validation.suite.rules}
    results = [without_values(each, rules.get(each.rule)) for each in validation.results]
    return [RuleOutcome(each.rule, each.met, each.action == "hold", each.seen) for each in results]


def _of_rows(suite: Suite, total: Mapping[str, int]) -> Sequence[RuleOutcome]:
    broken = {rule.id: total.get(count_key(rule.id), 0) for rule in suite.rules}
    return [
        RuleOutcome(
            rule.id, not broken[rule.id], rule.quarantines, f"{broken[rule.id]} rows break it"
        )
        for rule in suite.rules
    ]


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
        facets["columnLineage"] = _column_lineage(columns, above, several=len(node.upstream) > 1)
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
    return of_gold(gold, declared), {**columns_of(gold), **gold.types}


def _column_lineage(
    columns: Columns, above: list[Name], *, several: bool
) -> column_lineage_dataset.ColumnLineageDatasetFacet:
    """``several``: the inputs say from which of the tables ``above`` they are. Otherwise a column
    may be from any of them, such as from several topics."""

    def fields(inputs: Iterable[Input]) -> list[column_lineage_dataset.InputField]:
        return [
            column_lineage_dataset.InputField(
                *name, each.column, [column_lineage_dataset.Transformation(_type(each), each.how)]
            )
            for each in inputs
            for name in (above[each.place : each.place + 1] if several else above)
        ]

    of = {
        name: column_lineage_dataset.Fields(fields(inputs)) for name, inputs in columns.of.items()
    }
    return column_lineage_dataset.ColumnLineageDatasetFacet(of, fields(columns.rows))


def _type(each: Input) -> str:
    return "INDIRECT" if each.how in ("FILTER", "GROUP_BY") else "DIRECT"
