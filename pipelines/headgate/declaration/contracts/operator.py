"""The contract of gold operators, and their registry.

An operator assigns silver rows to results, such as tumbling and hopping windows. A row and a result
that it belongs to are a *pair*. A member is a folder of ``headgate.flow.gold.operators``
(``headgate.registry``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from headgate.declaration.expressions.inference import Scope
from headgate.declaration.keys.key import Key
from headgate.declaration.model import GoldTable, Pipeline
from headgate.declaration.names import (
    INPUT,
    SILVER_COLUMNS,
    SILVER_IDENTITY,
    STATUS_COLUMNS,
    WHY_LATE,
    Columns,
)
from headgate.declaration.reading.checked import Field, ProblemReport
from headgate.declaration.types import STRING, Struct
from headgate.registry import Registry

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headgate.flow.gold.stage import GoldStage
    from headgate.lake.tables.table import TableOf

Declared = TypeVar("Declared")


class Operator(ABC, Generic[Declared]):
    """A gold operator. ``Declared`` is the type of the immutable value that ``build`` returns, kept
    as ``GoldTable.operator``.

    A gold table gives one of the ``keys`` of one operator: in its section ``window`` if the
    operator ``is_window``, otherwise in the table itself. Such a key may say that it ``replaces``
    other keys of the table. ``ends``: a result ends, and its row becomes final. ``end_varies``: its
    rows decide when a result ends, so the end is a value of the row, as in a session.
    ``is_timed``: results are ranges of time, and a watermark or a drain makes them final.
    ``rolls_up``: a table of this operator may read a gold table. ``appends``: it is an *append
    operator*. ``limits`` is a sentence for the reference, or empty.

    A *fold* keeps the open results of a table as states in its open rows, and merges each batch
    into them. It extends ``FoldOperator`` (``flow.gold.operators.fold_operator``), which has the
    stage of all folds, and adds only how rows are assigned to results.

    An *append operator* computes each result once, when no row that is on time can change it any
    more. It extends ``AppendOperator`` (``flow.gold.append.operator``), which has the stage of
    them. It may read several silver tables, its ``inputs``. Its results are moments: they have one
    time.
    """

    keys: ClassVar[tuple[Key, ...]]
    is_window: ClassVar[bool] = False
    ends: ClassVar[bool] = True
    end_varies: ClassVar[bool] = False
    is_timed: ClassVar[bool] = True
    rolls_up: ClassVar[bool] = False
    appends: ClassVar[bool] = False
    limits: ClassVar[str] = ""

    # When a declaration is read.

    def inputs(self, key: str, at: Field) -> tuple[Field, ...]:
        """The fields that name the tables which an append operator reads. One without a value is
        wrong, which is reported."""
        return ()

    @abstractmethod
    def build(self, key: str, at: Field, scope: Scope, report: ProblemReport) -> Declared | None:
        """What ``key`` declares at ``at``; None after reporting what is wrong. ``scope`` has the
        columns of the silver table, or, for an append operator, a struct for each input."""

    @abstractmethod
    def meaning(self, operator: Declared) -> Mapping[str, Any]:
        """The operator's part of the meaning of a table: equal if the rows are equal. The digest of
        a meaning must never change. A duration is a timedelta, under a key's name."""

    @abstractmethod
    def columns(self, operator: Declared) -> Columns:
        """The columns of a result, before the author's, and their types. Late pairs have them too.

        If results are ranges of time, the first is the begin and the second is the end, both
        timestamps. Those of an append operator begin with one time. Without columns, a key has one
        result, which never ends.
        """

    def identity(self, operator: Declared) -> tuple[str, ...]:
        """The columns that distinguish the results of one key; by default the first column."""
        return tuple(self.columns(operator))[:1]

    @abstractmethod
    def pairs_per_row(self, operator: Declared) -> int | None:
        """The number of pairs of each silver row; None if it differs from row to row."""

    def first_after(self, operator: Declared, time: int) -> tuple[int, int] | None:
        """The begin and the end of the first result that ends after ``time``, all in microseconds
        since 1970 UTC. None if the rows decide where results begin or end; a scheduled backfill
        then compares only those that lie in its interval."""
        return None

    def reach(self, operator: Declared) -> int:
        """Rows before the begin of a result by up to so many microseconds may decide where it
        begins. 0 if the bounds of a result do not depend on rows."""
        return 0

    def of_results(self, operator: Declared) -> Columns:
        """The columns of an append operator's results, beside rows of its inputs, that the author's
        columns can use."""
        return {}

    def made_of(self, operator: Declared) -> Mapping[str, tuple[str, ...]]:
        """The expressions over rows of the inputs from which each column ``of_results`` is
        computed."""
        return {}

    def conditions(self, operator: Declared) -> tuple[str, ...]:
        """Expressions over the rows of the inputs that decide which results an append operator
        has."""
        return ()

    @abstractmethod
    def plan(self, operator: Declared) -> Mapping[str, Any]:
        """The operator's part of a plan, as a document of plain values."""

    @abstractmethod
    def summary(self, operator: Declared) -> tuple[str, str]:
        """A label of at most eight characters and a line, for a person."""

    def details(self, operator: Declared) -> tuple[tuple[str, str], ...]:
        """Further labels and lines, as of ``summary``."""
        return ()

    def final_up_to(
        self, operator: Declared, watermark: datetime, lateness: timedelta
    ) -> datetime | None:
        """The time up to which results are final: all results that end then or earlier. None if
        results never become final. ``watermark`` is the watermark that the table has reached."""
        return watermark - lateness

    # When a pipeline runs.

    @abstractmethod
    def stage(self, spark: SparkSession, table: TableOf, declared: GoldTable) -> GoldStage:
        """The stage of one gold table, which processes its batches. ``table`` gives the tables that
        it reads and writes."""

    def rollup_stage(
        self, spark: SparkSession, table: TableOf, declared: GoldTable, above: GoldTable
    ) -> GoldStage:
        """As ``stage``, of a table that reads the gold table ``above``, if the operator
        ``rolls_up``."""
        raise NotImplementedError(f"{declared.kind} does not read gold tables")


OPERATORS: Registry[Operator[Any]] = Registry("headgate.flow.gold.operators", Operator)


def operator_of(table: GoldTable) -> Operator[Any]:
    """The operator of a gold table."""
    return OPERATORS[table.kind]


def backfilled_tables(pipeline: Pipeline) -> tuple[str, ...]:
    """The gold tables that a backfill can compute again: those of folds that read silver."""
    found = pipeline.with_late_rows.items()
    return tuple(name for name, table in found if not operator_of(table).appends)


def columns_of(table: GoldTable) -> Columns:
    """The columns of a gold table's results, before the author's."""
    return operator_of(table).columns(table.operator)


def gold_columns(table: GoldTable) -> Columns:
    """All columns of a gold table: those of its results, the author's, and a row's status."""
    return {**columns_of(table), **table.types, **STATUS_COLUMNS}


def late_columns(table: GoldTable, silver: Mapping[str, Columns]) -> Columns:
    """The columns of the late table: those of silver's row and of the result that it is late for.
    With an append operator, the row's input, and a struct for each input with the columns of its
    author; those of the other inputs are null. ``silver`` has all columns of each input."""
    if not operator_of(table).appends:
        return {**silver[table.silver], **columns_of(table), **WHY_LATE}
    rows = {
        name: Struct.of({n: type_ for n, type_ in silver[name].items() if n not in SILVER_COLUMNS})
        for name in table.inputs
    }
    return {INPUT: STRING, **SILVER_COLUMNS, **WHY_LATE, **rows}


def late_identity(table: GoldTable) -> tuple[str, ...]:
    """The columns that identify a row of the late table."""
    if operator_of(table).appends:
        return (INPUT, *SILVER_IDENTITY)
    return (*SILVER_IDENTITY, *identity_columns(table))


def late_bounds_of(table: GoldTable) -> tuple[str, ...]:
    """The columns of the late table with the range of time that a row is late for; empty if it has
    none. A late row of an append operator may be late for several results, or for none."""
    return () if operator_of(table).appends else shown_key(table)[0]


def identity_columns(table: GoldTable) -> tuple[str, ...]:
    """The columns that distinguish the results of one key; empty if a key has one result."""
    return operator_of(table).identity(table.operator)


def bounds_of(table: GoldTable) -> tuple[str, ...]:
    """The columns with the begin and the end of a result, or with its only time; empty if results
    are no ranges of time."""
    operator = operator_of(table)
    if not operator.is_timed:
        return ()
    return tuple(columns_of(table))[: 1 if operator.appends else 2]


def begin_of(table: GoldTable) -> tuple[str, ...]:
    """The column with the begin of a result; empty if results are no ranges of time."""
    return bounds_of(table)[:1]


def shown_key(table: GoldTable) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The columns with which a row is shown to a person: those of its range of time, if it has one,
    and those of its key."""
    by = tuple(each.name for each in table.by)
    if operator_of(table).appends:
        return bounds_of(table), identity_columns(table)
    if operator_of(table).is_timed:
        return tuple(columns_of(table)), by
    return (), (*identity_columns(table), *by)


def key_of_gold(table: GoldTable) -> tuple[str, ...]:
    """The columns that identify a row of a gold table."""
    return (*identity_columns(table), *(each.name for each in table.by))


def key_of(table: GoldTable) -> tuple[str, ...]:
    """As ``key_of_gold``, with the other columns of a result that follow from its identity."""
    operator = operator_of(table)
    only_identity = operator.end_varies or operator.appends
    columns = identity_columns(table) if only_identity else tuple(columns_of(table))
    return (*columns, *(each.name for each in table.by))
