"""The base of append operators."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, TypeVar

from headgate.declaration.contracts.operator import Operator
from headgate.declaration.model import GoldTable
from headgate.declaration.names import RESULT_ID, RESULT_TIME, Columns
from headgate.declaration.types import STRING, TIMESTAMP

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from headgate.flow.gold.stage import GoldStage
    from headgate.lake.tables.table import TableOf

Declared = TypeVar("Declared")
TIME, ID = "_time", "_id"
"""The columns of input rows and results that every append operator uses."""
REPLACED = ("from", "window", "where", "by", "measures", "salt")
"""The keys of a gold table that have no meaning beside the key of an append operator."""


class AppendOperator(Operator[Declared]):
    """Each result has a time: it is *decided* then, because no row at or after that time changes
    it. It is computed once the output watermark, which is the watermark less the allowed lateness,
    has passed this time. Rows up to ``reach`` before that time may decide what it is."""

    appends: ClassVar[bool] = True

    def columns(self, operator: Declared) -> Columns:
        return {RESULT_TIME: TIMESTAMP, RESULT_ID: STRING}

    def identity(self, operator: Declared) -> tuple[str, ...]:
        return (RESULT_ID,)

    def pairs_per_row(self, operator: Declared) -> int | None:
        return 1

    @abstractmethod
    def results(self, operator: Declared, rows: Mapping[str, DataFrame]) -> DataFrame:
        """The definition: the results of included rows of each input, by its name.

        A row has ``TIME``, its event time in microseconds since 1970 UTC, ``ID``, which names it
        among the rows of all inputs, and a struct with the name of its input, which has silver's
        columns. A result has ``TIME``, when it is decided, ``ID``, which names it among all
        results, and a struct for each input; null if no row of it is in the result; and the columns
        ``of_results``. Rows that are not included because they are earlier than what was read must
        not change results after ``reach``.
        """

    def stage(self, spark: SparkSession, table: TableOf, declared: GoldTable) -> GoldStage:
        from headgate.flow.gold.append.stage import AppendStage

        return AppendStage(spark, table, declared)
