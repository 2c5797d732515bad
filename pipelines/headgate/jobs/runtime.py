"""The tables of a pipeline that one job owns, and how they move forward together."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime

from pyspark.sql import SparkSession

from headgate.bronze.stage import BronzeStage
from headgate.declaration.kinds import BRONZE, GOLD, SILVER, kind_of
from headgate.declaration.model import GoldTable, Pipeline, SilverTable
from headgate.graph.graph import graph_of
from headgate.graph.operations import Document
from headgate.jobs.errors import DefinitionChangedError, ResetAskedError
from headgate.jobs.stages import Stages
from headgate.operations.carrying_out import intend
from headgate.publish.stage import PublishStage
from headgate.savepoints import rebuilds
from headgate.savepoints.declarations import all_kept
from headgate.savepoints.rebuilds import Rebuild
from headgate.savepoints.resets import Resets
from headgate.sources.connector import Place, connector_of
from headgate.storage.layout import Layout
from headgate.storage.ownership import LAYERS
from headgate.tables.errors import LogGapError
from headgate.tables.table import Table, TableOf
from headgate.tables.table_schema import TableSchema


class PipelineRuntime:
    """Bronze, silver and gold of one pipeline; ``layers`` says which of them this job writes.

    While tables are rebuilt there are two sets of stages: one over the living tables, as they were
    declared when they were made, and one over the rebuilds, as they are declared now.
    """

    def __init__(
        self, spark: SparkSession, pipeline: Pipeline, layout: Layout, layers: Sequence[str]
    ) -> None:
        self._spark, self._layout = spark, layout
        source, storage, name = pipeline.source, layout.storage, pipeline.name
        self.pipeline, self.graph = pipeline, graph_of(pipeline)
        self.layers = tuple(layers)
        self.kept = connector_of(source).tables(Place(storage, name, source))
        self._living = {p: Table(storage, p, pipeline=name) for p in pipeline.definitions}
        self.bronze = BronzeStage(spark, self.table(BRONZE.path(source.name)), source)
        self._declared = self._stages(self.table, pipeline.silver.values(), pipeline.gold.values())
        self.stages = self._declared
        self._rebuilt: Stages | None = None
        self.rebuild: Rebuild | None = None
        self._rebuilt_tables: dict[str, Table] = {}
        published = (PublishStage(spark, storage, pipeline, p) for p in pipeline.publish.values())
        self.publications = tuple(stage for stage in published if stage.layer in layers)
        self.resets = Resets(self.table(BRONZE.path(source.name)))
        self._generation = 0
        self._waits_for: frozenset[str] = frozenset()
        own = [*self._living.values(), *(stage.table for stage in self.publications)]
        own += [shape.table for shape in self.kept]
        by_path = {table.name: table for table in own}
        written = self.graph.written_by(layers)
        self._written = {node.path: by_path[node.path] for node in written}

    def table(self, path: str) -> Table:
        """The living table: what readers see."""
        return self._living[path]

    def create(self) -> None:
        """Make the tables that are missing, of every layer: each is made empty, by whoever comes
        first."""
        for shape in self.shapes():
            shape.create(self._definition(shape.table))
        for publication in self.publications:
            publication.create()

    def shapes(self) -> tuple[TableSchema, ...]:
        """Every table as it is declared."""
        stages = self._declared
        gold = (
            shape
            for name, stage in stages.gold.items()
            for shape in stage.shapes(stages.silver.type_of(self.pipeline.gold[name].silver))
        )
        bronze = TableSchema(
            self.resets.bronze, self.bronze.shape.schema, self.bronze.shape.time_column
        )
        return (*self.kept, bronze, *stages.silver.shapes, *gold)

    def require_declared(self) -> None:
        """Raises DefinitionChangedError if a table was made from another declaration."""
        for table in self.changed():
            raise DefinitionChangedError(self.pipeline, table.name)

    def changed(self) -> tuple[Table, ...]:
        """The tables that were made from another declaration, are not rebuilt, and are not about to
        be reset by the job that owns them."""
        rebuilt: Collection[str] = self.rebuild.tables if self.rebuild else ()
        return tuple(
            table
            for table in (shape.table for shape in self.shapes())
            if table.name not in rebuilt
            and table.refresh().definition != self._definition(table)
            and not self.resets.awaits(table)
        )

    def _definition(self, table: Table) -> str:
        # What a source keeps stays through changes of the declaration.
        return self.pipeline.definitions.get(table.name) or kind_of(table.name).name

    def open(self, epoch: int, now: datetime) -> None:
        """Shut out every older driver from every table of this job, before any stage runs; see
        that their logs are whole, and finish a reset that was left open.

        Raises FencedError, LogGapError.
        """
        self.create()
        for table in self.owned():
            table.fence(epoch)
            table.require_intact()
        self._reset(now)

    def _reset(self, now: datetime) -> None:
        """Finish what a reset asks of this job's tables. One that is asked for later ends the job:
        the generation is read first."""
        self._generation = self.resets.bronze.refresh().generation
        self.resets.carry_out(self.owned(), now)
        followed = self.graph.read_by(self.layers)
        self._waits_for = frozenset(node.path for node in followed)

    def begin(self, rebuild: Rebuild, epoch: int) -> None:
        """Build some tables beside the living ones from here on, or go on with it."""
        shapes = {shape.table.name: shape for shape in self.shapes()}
        for path, definition in rebuild.tables.items():
            table = rebuild.table(self._layout, self.pipeline.name, path)
            shape = shapes[path]
            table.create(
                shape.schema,
                definition,
                time_column=shape.time_column,
                generation=rebuild.generation,
            )
            if path in self._written:
                table.fence(epoch)
                table.require_intact()
            self._rebuilt_tables[path] = table
        self.rebuild = rebuild
        self.stages = self._as_made(rebuild)
        declared, built = self.pipeline, self._rebuilt_tables
        silver = (t for name, t in declared.silver.items() if SILVER.path(name) in built)
        gold = (t for name, t in declared.gold.items() if GOLD.path(name) in built)
        self._rebuilt = self._stages(self._newest, silver, gold)
        if (bronze := self._rebuilt_tables.get(self.resets.bronze.name)) is not None:
            self.bronze.write_to(bronze)

    def _stages(
        self,
        table: TableOf,
        silver: Iterable[SilverTable],
        gold: Iterable[GoldTable],
    ) -> Stages:
        return Stages(self._spark, table, self.graph, self.pipeline.source, silver, gold)

    def _newest(self, path: str) -> Table:
        return self._rebuilt_tables.get(path) or self.table(path)

    def _as_made(self, rebuild: Rebuild) -> Stages:
        """The stages that go on feeding the living tables: each as it was declared when it was
        made, if that declaration is kept.

        Where bronze is rebuilt, the living tables have all there is. Where layers have jobs of
        their own, the tables that are rebuilt stand still: they would go on while bronze's job
        asks for the rebuild as of an earlier batch, and readers would see them go back.
        """
        if self.resets.bronze.name in rebuild.tables:
            return self._stages(self.table, (), ())
        pipelines = [self.pipeline, *all_kept(self._layout)]
        stands_still = () if set(self.layers) == set(LAYERS) else rebuild.tables
        made_as = {
            path: table.refresh().definition
            for path, table in self._living.items()
            if path not in stands_still
        }

        def is_as_made(pipeline: Pipeline, path: str) -> bool:
            return path in made_as and pipeline.definitions.get(path) == made_as[path]

        silver = {
            name: before.silver[name]
            for before in pipelines
            for name in self.pipeline.silver
            if is_as_made(before, SILVER.path(name))
        }
        # The table above has to be as declared, too: a new table may need what it has not.
        gold = {
            name: before.gold[name]
            for before in pipelines
            for name in self.pipeline.gold
            if is_as_made(before, GOLD.path(name))
            and is_as_made(before, SILVER.path(before.gold[name].silver))
        }
        return self._stages(self.table, silver.values(), gold.values())

    def owned(self) -> tuple[Table, ...]:
        """The living tables that this job writes, side tables before the tables that count them."""
        return tuple(self._written.values())

    def upstream(self) -> tuple[Table, ...]:
        """Readers of their own for the tables from which this job's layers are fed."""
        followed = self.graph.read_by(self.layers)
        return tuple(self.table(node.path).reader() for node in followed)

    def intend(self, operation: str, document: Document, now: datetime) -> None:
        """Ask for an operation, as ``operations.carrying_out.intend``."""
        intend(self.bronze.table, self.graph, operation, document, now)

    def catch_up(self, now: datetime, *, beside: bool = False) -> bool:
        """Bring the silver and gold tables of this job to where the table above them is, carry out
        the operations on the way, and publish a rebuild that is ready. Returns whether nothing of
        that is left to do.

        ``beside``: a table that is far behind takes one step only, so that it does not hold up the
        others. Raises ResetAskedError if tables went back behind this job.
        """
        if self._generation_moved():
            self._take_over(now)
        waits_for = self._still_awaited()
        try:
            level = self.stages.catch_up(self.layers, now, _most(beside), waits_for)
            if self._rebuilt is None:
                return level
            self._rebuilt.catch_up(self.layers, now, _most(beside), waits_for)
        except LogGapError as error:
            if self._generation_moved():  # what is missing went back
                raise ResetAskedError(self.pipeline) from error
            raise
        return self._publish(now) and self.catch_up(now, beside=beside)

    def _generation_moved(self) -> bool:
        """Whether a reset was asked for since this job's tables were opened."""
        return self.resets.bronze.refresh().generation != self._generation

    def _take_over(self, now: datetime) -> None:
        """Put this job's part of a rebuild that bronze's job has published into place.

        Raises ResetAskedError where tables go back. A restore fences every job, but it may be
        paused behind its fences for longer than its lease, while this job begins.
        """
        intent = self.resets.intent
        if intent is None or not intent.is_publication:
            raise ResetAskedError(self.pipeline)
        self._reset(now)
        self._end_rebuild()

    def _still_awaited(self) -> Collection[str]:
        """The tables above this job's that other jobs have still to reset."""
        awaited = (path for path in self._waits_for if self.resets.awaits(self.table(path)))
        self._waits_for = frozenset(awaited)
        return self._waits_for

    def _publish(self, now: datetime) -> bool:
        """Put the rebuild into the place of the living tables if it is ready. Bronze's job asks for
        that. Returns whether it was done."""
        assert self.rebuild is not None
        if "bronze" not in self.layers:
            return False
        if not rebuilds.publish(self._layout, self.pipeline, self.rebuild, self.resets, now):
            return False
        self._reset(now)
        self._end_rebuild()
        return True

    def _end_rebuild(self) -> None:
        """From here on the living tables are what is declared."""
        self.bronze.write_to(self.resets.bronze)
        self.rebuild, self._rebuilt, self._rebuilt_tables = None, None, {}
        self.stages = self._declared


def _most(beside: bool) -> int | None:
    return 1 if beside else None
