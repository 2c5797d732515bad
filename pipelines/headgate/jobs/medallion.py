"""The stages of a pipeline that one job owns, and how they move forward together."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from pyspark.sql import SparkSession

from headgate.bronze.stage import BronzeStage
from headgate.failpoints import failpoint
from headgate.gold.closing import close_windows
from headgate.gold.stage import GoldStage
from headgate.jobs.errors import DefinitionChangedError
from headgate.publish.stage import PublishStage
from headgate.savepoints.resets import Resets
from headgate.silver.stage import SilverStage
from headgate.sources.files.log import FILES_LOG, FilesLog
from headgate.spec.model import Pipeline
from headgate.storage.layout import Layout
from headgate.tables.errors import LogGapError
from headgate.tables.shape import Shape
from headgate.tables.table import Table


class Medallion:
    """Bronze, silver and gold of one pipeline; ``layers`` says which of them this job writes."""

    def __init__(
        self, spark: SparkSession, pipeline: Pipeline, layout: Layout, layers: Sequence[str]
    ) -> None:
        source, storage, name = pipeline.source, layout.storage, pipeline.name
        self.pipeline = pipeline
        self.layers = tuple(layers)
        self.files_log = FilesLog(storage, name, source.name) if source.files else None
        self.bronze = BronzeStage(spark, storage, name, source)
        self.silver = SilverStage(spark, storage, name, source, pipeline.silver_of(source.name))
        self.gold = {g.name: GoldStage(spark, storage, name, g) for g in pipeline.gold.values()}
        published = (PublishStage(spark, storage, pipeline, p) for p in pipeline.publish.values())
        self.publications = tuple(stage for stage in published if stage.layer in layers)
        self.resets = Resets(self.bronze.table)

    def create(self) -> None:
        """Make the tables that are missing, of every layer: each is made empty, by whoever comes
        first."""
        for shape in self.shapes():
            shape.create(self._definition(shape.table))
        for publication in self.publications:
            publication.create()

    def shapes(self) -> tuple[Shape, ...]:
        """Every table as it is declared."""
        logs = () if self.files_log is None else (self.files_log.shape,)
        declared = self.pipeline.gold
        types = {name: self.silver.type_of(name) for name in self.silver.silver}
        gold = (
            shape
            for name, stage in self.gold.items()
            for shape in stage.shapes(types[declared[name].silver])
        )
        return (*logs, self.bronze.shape, *self.silver.shapes, *gold)

    def require_declared(self) -> None:
        """Raises DefinitionChangedError if a table was made from another declaration."""
        for table in self.changed():
            raise DefinitionChangedError(self.pipeline, table.name)

    def changed(self) -> tuple[Table, ...]:
        """The tables that were made from another declaration, and are not about to be built anew
        by the job that owns them."""
        tables = (shape.table for shape in self.shapes())
        return tuple(
            table
            for table in tables
            if table.refresh().definition != self._definition(table)
            and not self.resets.awaits(table)
        )

    def _definition(self, table: Table) -> str:
        return self.pipeline.definitions.get(table.name, FILES_LOG)

    def open(self, epoch: int, now: datetime) -> None:
        """Shut out every older driver from every table of this job, before any stage runs; see
        that their logs are whole, and finish a reset that was left open.

        Raises FencedError, LogGapError.
        """
        self.create()
        for table in self.owned():
            table.fence(epoch)
            table.require_intact()
        self.resets.carry_out(self.owned(), now)

    def owned(self) -> tuple[Table, ...]:
        logs = () if self.files_log is None else (self.files_log.table,)
        by_layer = {
            "bronze": (*logs, self.bronze.table),
            "silver": self.silver.tables,
            "gold": tuple(t for g in self.gold.values() for t in g.tables),
        }
        positions = (publication.table for publication in self.publications)
        return (*(t for layer in self.layers for t in by_layer[layer]), *positions)

    def upstream(self) -> tuple[Table, ...]:
        """Readers of their own for the tables from which this job's layers are fed."""
        if "silver" in self.layers:
            return (self.bronze.table.reader(),)
        return tuple(gold.silver.reader() for gold in self.gold.values())

    def catch_up(self, now: datetime, *, beside: bool = False) -> bool:
        """Bring the silver and gold tables of this job to where the table above them is, and
        carry out the operations on the way. Returns whether they all are.

        ``beside``: a table that is far behind, because it is built anew, takes one step only, so
        that it does not hold up the others.
        """
        # A restore may ask for one while this job runs: it was paused behind its fences for longer
        # than its lease, and this job began in between.
        self.resets.carry_out(self.owned(), now)
        try:
            return self._catch_up(now, beside=beside)
        except LogGapError:
            if not any(map(self.resets.awaits, self.owned())):
                raise
            return False  # what is missing went back, and so will what was to absorb it

    def _catch_up(self, now: datetime, *, beside: bool) -> bool:
        bronze = self.bronze.table.refresh()
        most_steps = 1 if beside else None
        level = True
        if "silver" in self.layers:
            # No step of silver passes an operation: gold stops there.
            stops = (*(n for _, n in bronze.closings), bronze.n)
            self.silver.catch_up(stops, now, most_steps)
            level = self.silver.n >= bronze.n
        if "gold" in self.layers:
            for gold in self.gold.values():
                if any(map(self.resets.awaits, (gold.silver, gold.gold))):
                    level = False
                else:
                    level &= _catch_up_gold(gold, self.bronze.table, now, most_steps)
        return level


def _catch_up_gold(gold: GoldStage, bronze: Table, now: datetime, most_steps: int | None) -> bool:
    held, silver = gold.gold.refresh(), gold.silver.refresh()
    # Bronze after silver: an operation that silver has passed is never overlooked.
    for number, n in bronze.refresh().closings:
        if number <= held.operation:
            continue
        gold.catch_up(min(n, silver.n), now, most_steps)
        if gold.gold.refresh().n < n:
            return False
        close_windows(gold, number, now)
        failpoint("operation.table_done")
    gold.catch_up(silver.n, now, most_steps)
    return gold.gold.refresh().n >= silver.n
