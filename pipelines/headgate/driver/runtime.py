"""The tables of a pipeline that one job owns, and the stages that update them together."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import chain
from typing import TypeVar

from pyspark.sql import SparkSession

from headgate.declaration.contracts.operation import Document
from headgate.declaration.contracts.source import connector_of
from headgate.declaration.graph import Node, graph_of
from headgate.declaration.kinds import (
    BRONZE,
    GOLD,
    INPUTS,
    NUMBERING,
    SILVER,
    Kind,
    kind_of,
    name_of,
)
from headgate.declaration.model import GoldTable, Pipeline, SilverTable
from headgate.driver.damaged_tables import DamagedTables
from headgate.driver.errors import DefinitionChangedError, ResetAskedError
from headgate.driver.source_hold import SourceHold
from headgate.driver.stages import Stages
from headgate.failpoints import failpoint
from headgate.flow.bronze.input_log import InputLog
from headgate.flow.bronze.stage import BronzeStage
from headgate.flow.gates.gate import gate_of
from headgate.flow.operations.carrying_out import decide_operation
from headgate.flow.operations.idle import idle_document
from headgate.flow.publish.stages import stage_of_publication
from headgate.flow.sources.deployed_source import DeployedSource
from headgate.history.savepoints import rebuilds
from headgate.history.savepoints.declarations import kept_declarations
from headgate.history.savepoints.rebuilds import Rebuild
from headgate.history.savepoints.resets import Resets
from headgate.lake.control.ownership import LAYERS
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.decisions import IDLE, NO_DECISIONS, ControlTable, Position, position_of
from headgate.lake.tables.errors import LogGapError
from headgate.lake.tables.payloads.inputs import InputsPayload
from headgate.lake.tables.table import Table, TableOf
from headgate.lake.tables.table_schema import TableSchema

Decided = TypeVar("Decided")


class PipelineRuntime:
    """Bronze, silver and gold of one pipeline. ``layers`` are the layers that this job writes.

    During a rebuild there are two sets of stages. One updates the current tables by the declaration
    that they were made from, the other updates the rebuilds by the current declaration.
    """

    def __init__(
        self, spark: SparkSession, pipeline: Pipeline, layout: Layout, layers: Sequence[str]
    ) -> None:
        self._spark, self._layout = spark, layout
        storage, name = layout.storage, pipeline.name
        self.pipeline, self.graph = pipeline, graph_of(pipeline)
        self.layers = tuple(layers)
        self.damaged = DamagedTables(pipeline, layers)
        self._held: dict[str, SourceHold] = {}
        self.kept = {
            source.name: connector_of(source).tables(DeployedSource(storage, name, source))
            for source in pipeline.sources.values()
        }
        self._current = {p: Table(storage, p, pipeline=name) for p in pipeline.definitions}
        self.bronze_lock = threading.RLock()
        self.bronze = {
            name: BronzeStage(spark, self.table(BRONZE.path(name)), source, self.bronze_lock)
            for name, source in pipeline.sources.items()
        }
        declared = pipeline.silver.values(), pipeline.gold.values(), pipeline.gold
        self._declared = self._stages(self.table, *declared)
        self.stages = self._declared
        self._rebuilt: Stages | None = None
        self.rebuild: Rebuild | None = None
        self._rebuilt_tables: dict[str, Table] = {}
        published = (
            stage_of_publication(spark, storage, pipeline, p) for p in pipeline.publish.values()
        )
        self.publications = tuple(stage for stage in published if stage.layer in layers)
        self.control = ControlTable.of(storage, name)
        self.resets = Resets(ControlTable.of(storage, name))
        # Readers of their own: stages use the tables on other threads.
        numbering = self.graph.of(*NUMBERING)
        self._numbering = {node.name: self.table(node.path).reader() for node in numbering}
        self.inputs = {
            node.name: InputLog(self.table(node.path), self._read_by(node, self.table))
            for node in self.graph.of(INPUTS)
        }
        self._generation = 0
        self._waits_for: frozenset[str] = frozenset()
        own = [*self._current.values(), *(stage.table for stage in self.publications)]
        own += [shape.table for kept in self.kept.values() for shape in kept]
        own += [self.control.table]
        by_path = {table.name: table for table in own}
        written = self.graph.written_by(layers)
        self._written = {node.path: by_path[node.path] for node in written}

    def table(self, path: str) -> Table:
        """The current table, which readers see."""
        return self._current[path]

    @staticmethod
    def _read_by(log: Node, table: TableOf) -> dict[str, Table]:
        """Readers of the bronze tables of an input log, by source."""
        return {name_of(path): table(path).reader() for path in log.upstream}

    def create(self) -> None:
        """Create the missing tables of every layer, empty. The first job that starts does this. A
        damaged table that has lost its log is not created again."""
        for shape in self.shapes():
            if shape.table.name not in self.damaged:
                shape.create(self._definition(shape.table))
        for publication in self.publications:
            if publication.table.name not in self.damaged:
                with self.damaged.found_in(publication.table.name):
                    publication.create()

    def shapes(self) -> tuple[TableSchema, ...]:
        """The declared schema of every table."""
        stages = self._declared
        gold = (
            shape
            for name, stage in stages.gold.items()
            for shape in stage.shapes(
                {each: stages.type_of(each) for each in self.pipeline.gold[name].inputs}
            )
        )
        bronze = (
            TableSchema(self.table(BRONZE.path(name)), stage.shape.schema, stage.shape.time_column)
            for name, stage in self.bronze.items()
        )
        silver = chain.from_iterable(stage.shapes for stage in stages.silver.values())
        kept = chain.from_iterable(self.kept.values())
        inputs = (
            replace(log.shape, table=self.table(INPUTS.path(name)))
            for name, log in self.inputs.items()
        )
        return (self.control.shape, *kept, *bronze, *inputs, *silver, *gold)

    def require_declared(self) -> None:
        """Raises DefinitionChangedError if a table was made from another declaration."""
        for table in self.changed():
            raise DefinitionChangedError(self.pipeline, table.name)

    def changed(self) -> tuple[Table, ...]:
        """The tables that were made from another declaration, and for which neither a rebuild nor
        a reset is under way."""
        rebuilt: Collection[str] = self.rebuild.tables if self.rebuild else ()
        return tuple(
            table
            for table in (shape.table for shape in self.shapes())
            if table.name not in rebuilt
            and table.name not in self.damaged
            and table.refresh().definition != self._definition(table)
            and not self.resets.awaits(table)
        )

    def _definition(self, table: Table) -> str:
        # The tables of a source survive changes of the declaration.
        return self.pipeline.definitions.get(table.name) or kind_of(table.name).name

    def open(self, epoch: int, now: datetime) -> None:
        """Fence every table of this job against older drivers, check that the logs are complete,
        and finish an interrupted reset. Call this before any stage runs. Damaged tables are left
        as they are.

        Raises FencedError, LogGapError.
        """
        self.create()
        for table in self.owned():
            with self.damaged.found_in(table.name):
                table.fence(epoch)
                table.require_intact()
        if self.damaged and any(map(self.resets.awaits, self.owned())):
            self.damaged.require_none()
        self._reset(now)

    def hold_damaged(self, now: datetime) -> None:
        """Hold the sources whose tables were found damaged, from ``now`` on."""
        self._held = {n: SourceHold(error, now) for n, error in self.damaged.errors.items()}
        self._declared.leave_out(self.damaged.held)
        self.publications = tuple(
            stage for stage in self.publications if stage.table.name not in self.damaged.held
        )

    def _reset(self, now: datetime) -> None:
        """Finish a reset of this job's tables. The generation is read first, so a later reset ends
        the job."""
        self._generation = self.resets.generation
        self.resets.carry_out(self.owned(), now)
        self._waits_for = frozenset(table.name for table in self._followed())

    def begin(self, rebuild: Rebuild, epoch: int) -> None:
        """Begin or continue to rebuild some tables beside the current ones."""
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
        anew = [node.name for node in self.graph.of(*NUMBERING) if node.path in built]
        built_from = silver, gold, declared.gold
        self._rebuilt = self._stages(self.newest, *built_from, is_visible=False, anew=anew)
        for stage in self._rebuilt_bronze():
            stage.write_to(self._rebuilt_tables[stage.table.name])
        self._write_inputs()

    def _write_inputs(self) -> None:
        """Continue the input logs that this job continues, from the bronze tables that it does."""
        for node in self.graph.of(INPUTS):
            self.inputs[node.name].write_to(
                self.newest(node.path), self._read_by(node, self.newest)
            )

    def _stages(
        self,
        table: TableOf,
        silver: Iterable[SilverTable],
        gold: Iterable[GoldTable],
        above: Mapping[str, GoldTable],
        *,
        is_visible: bool = True,
        replaced: Collection[str] = (),
        anew: Collection[str] = (),
    ) -> Stages:
        gate = partial(gate_of, self._spark, self._layout, is_visible=is_visible)
        places = table, self.graph, self.pipeline.sources
        control = ControlTable.of(self._layout.storage, self.pipeline.name)
        stages = Stages(
            *(self._spark, *places, silver, gold, above, gate),
            replaced=replaced,
            layout=self._layout,
            control=control,
            anew=anew,
            waits_for_steps=is_visible,
        )
        stages.leave_out(self.damaged.held)
        return stages

    def newest(self, path: str) -> Table:
        """The table that this job continues: the rebuild, if there is one."""
        return self._rebuilt_tables.get(path) or self.table(path)

    def _as_made(self, rebuild: Rebuild) -> Stages:
        """The stages that continue to update the current tables. Each table goes on by the last
        kept declaration that it was made from. Declarations may differ in rules alone.

        If bronze is rebuilt, no stage updates the tables of its source: they have all batches. If
        layers have separate jobs, tables that are being rebuilt are not updated. Otherwise bronze's
        job could publish the rebuild at an earlier batch, and readers would see the tables go back.
        """
        pipelines = [*kept_declarations(self._layout), self.pipeline]  # the newest last
        not_updated = () if set(self.layers) == set(LAYERS) else rebuild.tables
        made_as = {
            path: table.refresh().definition
            for path, table in self._current.items()
            if path not in not_updated and path not in self.damaged
        }

        def is_as_made(pipeline: Pipeline, path: str) -> bool:
            return path in made_as and pipeline.definitions.get(path) == made_as[path]

        # The upstream table must match the same declaration: a table of a newer one may need new
        # columns, and a table of an older one cannot read a record with new fields.
        silver = {
            name: before.silver[name]
            for before in pipelines
            for name in self.pipeline.silver
            if is_as_made(before, SILVER.path(name))
            and is_as_made(before, above := BRONZE.path(before.silver[name].source))
            and above not in rebuild.tables
        }
        made: dict[str, Pipeline] = {}
        for before in pipelines:
            graph = graph_of(before)
            for name in self.pipeline.gold:
                if is_as_made(before, path := GOLD.path(name)):
                    node = graph[path]
                    # A table that becomes a rollup loses its late table, and stands still.
                    has_sides = self._current.keys() >= {*node.sides.values()}
                    if has_sides and all(is_as_made(before, each) for each in node.upstream):
                        made[name] = before
        gold = {name: before.gold[name] for name, before in made.items()}
        read = {t.reads: made[n].gold[t.reads] for n, t in gold.items() if t.reads}
        tables = silver.values(), gold.values(), read
        return self._stages(self.table, *tables, replaced=rebuild.tables)

    def owned(self) -> tuple[Table, ...]:
        """The current tables that this job writes, without damaged ones. Each side table comes
        before the table that counts its rows."""
        return tuple(t for path, t in self._written.items() if path not in self.damaged)

    def upstream(self) -> tuple[Table, ...]:
        """Separate readers of the upstream tables that other jobs write."""
        return tuple(table.reader() for table in self._followed())

    def _followed(self) -> Iterator[Table]:
        """The tables of other jobs that this job follows, without damaged ones."""
        followed = self.graph.read_by(self.layers)
        return (self.table(node.path) for node in followed if node.path not in self.damaged)

    def position(self) -> Position:
        """The position of every source and input log now, without those whose bronze is damaged.
        Call it inside of ``decide``, or on one thread."""
        readable = self._sound(*NUMBERING)
        return position_of({node.name: self._numbering[node.name] for node in readable})

    def _sound(self, *kinds: Kind) -> tuple[Node, ...]:
        """The tables of these kinds that no damage holds, their own or that of a table above."""
        return tuple(n for n in self.graph.of(*kinds) if n.path not in self.damaged.held)

    @property
    def readable(self) -> tuple[str, ...]:
        """The sources whose bronze tables are not held because of damage."""
        return tuple(node.name for node in self._sound(BRONZE))

    @property
    def reread(self) -> frozenset[str]:
        """The sources that are read again from the beginning, for a rebuild of their bronze."""
        rebuilt = self.rebuild.tables if self.rebuild else ()
        return frozenset(s for s in self.bronze if BRONZE.path(s) in rebuilt)

    @property
    def undecidable(self) -> frozenset[str]:
        """The sources for whose tables nothing may be decided now. What is decided during a rebuild
        of bronze has a place among batches that the publication removes, so it would be lost for
        the tables of the source. While bronze or an input log is damaged, there is no place."""
        logs = (node for node in self.graph.of(INPUTS) if node.path in self.damaged)
        of_logs = {source for node in logs for source in self.graph.sources_of(node.path)}
        return self.reread | (self.bronze.keys() - set(self.readable)) | of_logs

    def decide(self, decide: Callable[[Position], Decided]) -> Decided:
        """Call ``decide`` with the position of every source. Until it returns, this process, which
        must write bronze, commits to no bronze table: no stage can pass the position of the
        decision before the decision is there."""
        with self.bronze_lock:
            self.control.refresh()
            self.advance_inputs()
            return decide(self.position())

    def advance_inputs(self) -> None:
        """Commit to the input logs what bronze has. This process must write bronze.

        Raises CommitRefusedError, FencedError.
        """
        if not self.inputs:
            return
        with self.bronze_lock:
            built = self._rebuilt_tables
            for node in self._sound(INPUTS):
                log, is_anew = self.inputs[node.name], node.path in built
                # What is decided during a rebuild of bronze would be lost.
                known = NO_DECISIONS if is_anew else self.control.refresh()
                log.advance(known.idle(node.name), partial(self._decide_idle, node.name))

    def _decide_idle(self, log: str, idle: Collection[str], now: datetime) -> None:
        self.control.append(IDLE, idle_document(log, idle), self.position(), now)
        failpoint("idle.decided")

    def decide_idle(self, log: str, idle: Collection[str], now: datetime) -> bool:
        """Decide which sources of an input log are idle from now on, and raise its watermark.
        Returns whether it was decided: one that delivers meanwhile is not idle.

        Raises CommitRefusedError, FencedError.
        """
        with self.bronze_lock:
            self.control.refresh()
            before = InputsPayload.of(self._numbering[log].refresh()).inputs
            self.advance_inputs()
            after = InputsPayload.of(self._numbering[log].refresh()).inputs
            known = self.control.known.idle(log)
            # One of them may have delivered since it was looked at.
            silent = {s for s in idle if s in known or before.get(s, 0) == after[s]}
            if not silent > {*known}:
                return False
            self._decide_idle(log, sorted(silent), now)
            self.advance_inputs()
            return True

    def records_read(self) -> dict[str, int]:
        """The number of records that bronze has of each source now."""
        with self.bronze_lock:
            found = {name: self._numbering[name].refresh().total for name in self.readable}
        return {name: total.get("read", 0) for name, total in found.items()}

    def decide_operation(
        self, operation: str, document: Document, now: datetime, request: str | None = None
    ) -> None:
        """Decide on an operation (``flow.operations.carrying_out.decide_operation``)."""
        self.decide(
            lambda position: decide_operation(
                self.control, self.graph, operation, document, position, now, request
            )
        )

    def catch_up(self, now: datetime, *, one_step: bool = False) -> bool:
        """Bring the silver and gold tables of this job up to their upstream tables, carry out the
        operations on the way, and publish a rebuild that is ready. Returns whether all is done.

        With ``one_step``, a table that is far behind takes only one step, so that it does not delay
        the others, and a gold table waits until its step is due. Raises ResetAskedError if tables
        of this job must be reset.
        """
        if self._generation_moved():
            self._take_over(now)
        if "bronze" in self.layers:
            self.advance_inputs()
        most_steps = 1 if one_step else None
        how = self.layers, now, most_steps, self._still_awaited(), self._generation
        try:
            level = self.stages.catch_up(*how)
            if self._rebuilt is None:
                return level
            self._rebuilt.catch_up(*how)
        except LogGapError as error:
            if self._generation_moved():  # a reset has discarded the missing batches
                raise ResetAskedError(self.pipeline) from error
            raise
        return self._publish(now) and self.catch_up(now, one_step=one_step)

    @property
    def held(self) -> dict[str, SourceHold]:
        """The sources some of whose tables cannot go on, by name. Any thread may read it."""
        return self._held_by_stages() | self._held

    def _held_by_stages(self) -> dict[str, SourceHold]:
        rebuilt = self._rebuilt
        return (rebuilt.held if rebuilt else {}) | self.stages.held

    def _generation_moved(self) -> bool:
        """Whether a reset was decided since this job opened its tables."""
        return self.resets.generation != self._generation

    def _take_over(self, now: datetime) -> None:
        """Take over this job's tables of a rebuild that bronze's job has published.

        Raises ResetAskedError if tables must be reset. A restore fences every job. But if it stands
        still after its fences until its lease expires, this job may have started since. A rebuild
        may have been published after the restore. A source that is held may miss just the batches
        that the reset has discarded.
        """
        if self._held_by_stages() or not all(
            each.is_publication for each in self.resets.after(self._generation)
        ):
            raise ResetAskedError(self.pipeline)
        self._reset(now)
        self._end_rebuild()

    def _still_awaited(self) -> Collection[str]:
        """The upstream tables that other jobs have not reset yet."""
        awaited = (path for path in self._waits_for if self.resets.awaits(self.table(path)))
        self._waits_for = frozenset(awaited)
        return self._waits_for

    def _publish(self, now: datetime) -> bool:
        """Replace the current tables by the rebuild if it is ready. Bronze's job requests that.
        Returns whether it was done."""
        assert self.rebuild is not None
        if "bronze" not in self.layers:
            return False
        rebuild = self.rebuild
        if not self.damaged.held.isdisjoint(rebuild.tables):
            return False

        def publish(position: Position) -> bool:
            place = self._layout, self.pipeline, rebuild, self.control
            return rebuilds.publish_rebuild(*place, self.resets, position, now)

        with ExitStack() as locks:
            for stage in self._rebuilt_bronze():
                # A batch that is being read would be lost: the publication waits for its end.
                if not stage.lock.acquire(blocking=False):
                    return False
                locks.callback(stage.lock.release)
            if not self.decide(publish):
                return False
            self._reset(now)
            self._end_rebuild()
            return True

    def _rebuilt_bronze(self) -> Iterator[BronzeStage]:
        """The bronze stages that write to a rebuild."""
        built = self._rebuilt_tables
        return (stage for name, stage in self.bronze.items() if BRONZE.path(name) in built)

    def _end_rebuild(self) -> None:
        """Continue with the current tables, which match the declaration now."""
        for stage in self._rebuilt_bronze():
            stage.write_to(self.table(stage.table.name))
        self.rebuild, self._rebuilt, self._rebuilt_tables = None, None, {}
        self._write_inputs()
        self.stages = self._declared
