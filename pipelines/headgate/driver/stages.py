"""Silver and gold stages over the bronze tables, and how they catch up together."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TypeGuard

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from headgate.commands import rendered
from headgate.declaration.contracts.operation import is_rejected
from headgate.declaration.graph import Graph
from headgate.declaration.kinds import BRONZE, GOLD, NUMBERING, kind_of, name_of
from headgate.declaration.model import GoldTable, SilverTable, Source
from headgate.driver.error_translation import translate_error
from headgate.driver.source_hold import SourceHold
from headgate.driver.step_schedule import StepSchedule
from headgate.errors import joined_messages
from headgate.flow.gates.gate import TableGate
from headgate.flow.gold.stage import GoldStage, gold_stage_of
from headgate.flow.operations.carrying_out import REJECTION, Operations
from headgate.flow.silver.rules import RuleStopsError
from headgate.flow.silver.stage import SilverStage
from headgate.lake.control.requests import send_request
from headgate.lake.storage.documents import encoded
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.decisions import ControlTable
from headgate.lake.tables.errors import DamagedFileError, HeldError, LogGapError
from headgate.lake.tables.staging import side_by_side
from headgate.lake.tables.table import Table, TableOf

HELD = (RuleStopsError, DamagedFileError, LogGapError)
"""Errors that concern the tables of one source alone, and that a restart does not mend."""


class Stages:
    """The stages of some tables of some sources. ``table`` returns the table of a path, ``graph``
    contains all declared tables, ``above`` the gold tables that rollups read, by their names.
    ``gate_of`` returns the gate of a gold table. ``replaced`` are the paths of tables that a
    rebuild will replace: if a gold table among them cannot go on because of damage, it stays as it
    is, and the rebuild continues. ``anew`` are the sources whose bronze is rebuilt, and the rebuilt
    input logs: no operation has a place in them. ``control`` is a reader of this object alone.
    ``waits_for_steps``: a gold table takes steps as declared (``GoldTable.step``), and not with
    every batch.

    With several sources, an error of ``HELD`` holds the stage that has raised it, until a new
    driver starts. The other stages go on, apart from those that are left out.
    """

    def __init__(
        self,
        spark: SparkSession,
        table: TableOf,
        graph: Graph,
        sources: Mapping[str, Source],
        silver: Iterable[SilverTable],
        gold: Iterable[GoldTable],
        above: Mapping[str, GoldTable],
        gate_of: Callable[[GoldTable, TableOf], TableGate | None],
        replaced: Collection[str],
        layout: Layout,
        control: ControlTable,
        anew: Collection[str] = (),
        *,
        waits_for_steps: bool = True,
    ) -> None:
        self._replaced, self._layout, self._anew = replaced, layout, anew
        self._control = control
        self._damaged: dict[str, str] = {}
        self._left_out: frozenset[str] = frozenset()
        self._held: dict[str, tuple[str, SourceHold]] = {}  # by stage, with its source
        declared, self._graph = tuple(silver), graph
        self.bronze = {name: table(BRONZE.path(name)).reader() for name in sources}
        self.silver = {
            name: SilverStage(spark, table, source, tuple(t for t in declared if t.source == name))
            for name, source in sources.items()
        }
        self.gold: dict[str, GoldStage] = {}
        self._gates: dict[str, TableGate | None] = {}
        self._schedules: dict[str, StepSchedule] = {}
        for each in gold:
            self.gold[each.name] = gold_stage_of(spark, table, each, above.get(each.reads or ""))
            self._gates[each.name] = gate_of(each, table)
            if each.step is not None and waits_for_steps:
                self._schedules[each.name] = StepSchedule(each.step)

    def leave_out(self, tables: Collection[str]) -> None:
        """Let the stages alone that write some tables, by their paths: they are held."""
        self._left_out = frozenset(tables)

    def _is_left_out(self, *stage: Table) -> bool:
        return any(table.name in self._left_out for table in stage)

    @property
    def trouble(self) -> str | None:
        """A message about the gold tables that cannot go on until a rebuild replaces them."""
        return joined_messages(self._damaged.values())

    @property
    def held(self) -> dict[str, SourceHold]:
        """The sources some of whose tables cannot go on, by name, and the input logs of tables of
        several sources. Any thread may read it."""
        found: dict[str, SourceHold] = {}
        for source, hold in tuple(self._held.values()):
            found.setdefault(source, hold)
        return found

    def type_of(self, silver: str) -> StructType:
        """The row type of a silver table."""
        return next(s for s in self.silver.values() if silver in s.silver).type_of(silver)

    def catch_up(
        self,
        layers: Collection[str],
        now: datetime,
        most_steps: int | None,
        waits_for: Collection[str],
        generation: int,
    ) -> bool:
        """Bring the tables of ``layers`` up to their upstream tables, and carry out the operations
        on the way. Returns whether all tables are up to date. With ``most_steps``, a gold table
        goes on only if a step of it is due, or for an operation. ``waits_for`` are tables that
        other jobs have not reset yet: tables that read them do not continue. ``generation`` is that
        of the last reset as the caller knows it: if there was another one since, nothing is done.

        Raises CommitRefusedError, FencedError or UnknownOperationError, and with one source the
        errors of ``HELD``.
        """
        level = True
        if "silver" in layers:
            for bronze in self.bronze.values():
                if not self._is_left_out(bronze):
                    bronze.refresh()
            # Read the decisions after the positions, so that none that lies before them is missed.
            if self._control.refresh().generation != generation:
                return False
            for name, silver in self.silver.items():
                waits = self.bronze[name].name in waits_for
                if waits or self._is_left_out(*silver.silver.values()):
                    level = False
                    continue
                how = name, now, partial(self._catch_up_silver, name, now, most_steps)
                level &= self._unless_held(f"silver of {name}", *how)
        if "gold" in layers:
            level &= self._catch_up_gold(now, most_steps, waits_for, generation)
        return level

    def _catch_up_silver(self, source: str, now: datetime, most_steps: int | None) -> bool:
        """Returns whether the silver tables of a source are up to date."""
        silver, n = self.silver[source], self.bronze[source].state.n
        silver.catch_up(n, self._operations(source), now, most_steps)
        return silver.has_processed(n)

    def _unless_held(
        self, stage: str, source: str, now: datetime, catch_up: Callable[[], bool]
    ) -> bool:
        """Bring the tables of a stage up, and return what ``catch_up`` returns; False if the stage
        is held, before or afterwards."""
        if stage in self._held:
            return False
        try:
            return catch_up()
        except Exception as error:
            if len(self.bronze) == 1:
                raise
            cause = translate_error(error, self._layout) or error
            if not isinstance(cause, HELD):
                raise
            self._held[stage] = source, SourceHold(cause, now)
            return False

    def _catch_up_gold(
        self,
        now: datetime,
        most_steps: int | None,
        waits_for: Collection[str],
        generation: int,
    ) -> bool:
        """Returns whether all gold tables are up to date. A table comes after the one that it
        reads."""
        level = True
        for names in self._ranks():
            level &= self._catch_up_rank(names, now, most_steps, waits_for, generation)
        return level

    def _ranks(self) -> Iterator[list[str]]:
        """The gold tables that read silver, then those that read these, and so on."""
        rank: dict[str, int] = {}
        for name, gold in self.gold.items():
            above = name_of(gold.upstream[0].name)
            rank[name] = 1 + rank.get(above, 0) if _is_rollup(gold) else 0
        for number in range(max(rank.values(), default=-1) + 1):
            yield [name for name in rank if rank[name] == number]

    def _catch_up_rank(
        self,
        names: Sequence[str],
        now: datetime,
        most_steps: int | None,
        waits_for: Collection[str],
        generation: int,
    ) -> bool:
        ready = {
            name: gold
            for name in names
            if not _waits(gold := self.gold[name], waits_for)
            and not self._is_left_out(*(place.table for place in gold.places))
        }
        upto = dict[str, int]()

        def ask(name: str, gold: GoldStage) -> bool:
            upto[name] = gold.reached()
            return True

        numbered = {name: self._graph.numbered_by(GOLD.path(name)).name for name in ready}
        for name, gold in ready.items():
            self._unless_held(f"gold {name}", numbered[name], now, partial(ask, name, gold))
        # Read the decisions after upstream, so that none that it has passed is missed.
        if self._control.refresh().generation != generation:
            return False

        numbering = self._graph.of(*NUMBERING)
        operations = {node.name: self._operations(node.name) for node in numbering}

        def catch_up(name: str) -> bool:
            if name not in upto:  # it is held
                return False
            source = numbered[name]
            how = upto[name], name, operations[source], now, most_steps
            return self._unless_held(f"gold {name}", source, now, partial(self._step_to, *how))

        # Validate in one thread only: the context of Great Expectations is global.
        ungated = [partial(catch_up, name) for name in ready if self._gates[name] is None]
        done = side_by_side(ungated)
        done += [catch_up(name) for name in ready if self._gates[name] is not None]
        return all(done) and len(ready) == len(names)

    def _step_to(
        self,
        upto: int,
        name: str,
        operations: Operations,
        now: datetime,
        most_steps: int | None,
    ) -> bool:
        """As ``_catch_up_to``, if a step of the table is due, or must not wait: for an operation,
        or because all steps are taken."""
        gold, step = self.gold[name], partial(self._catch_up_to, upto, name, operations, now)
        if (schedule := self._schedules.get(name)) is None:
            return step(most_steps)
        for place in gold.places:
            place.table.refresh()
        asked = _open_operations(gold, operations).asked
        if gold.gold.state.n >= upto and not asked:
            return step(most_steps)
        if most_steps is not None and not asked and not schedule.is_due:
            return False
        return schedule.take(partial(step, most_steps))

    def _catch_up_to(
        self,
        upto: int,
        name: str,
        operations: Operations,
        now: datetime,
        most_steps: int | None,
    ) -> bool:
        """Returns whether a gold table is at batch ``upto``. A table that its gate holds is not. It
        is tried again, also between batches, on request or after a pause: it may meet its rules by
        then."""
        if name in self._damaged:
            return False
        gold, gate = self.gold[name], self._gates[name]
        gold.gold.gate = gate
        if gate is not None and not gate.is_due(upto):
            return False
        its_own = _open_operations(gold, operations)
        if gate is not None and self._waits_for_rejection(gate, its_own):
            return False
        watermarks = operations.watermarks
        ends = gate.stops(upto) if gate is not None else ()
        try:
            for stop in sorted({*its_own.stops(upto), *ends}):
                gold.catch_up(stop, now, most_steps, watermarks)
                if (n := gold.gold.refresh().n) < stop:
                    return False
                its_own.carry_out(gold.places, n, now)
        except HeldError:
            return False
        except Exception as error:
            if (path := GOLD.path(name)) not in self._replaced:
                raise
            cause = translate_error(error, self._layout) or error
            if not self._is_replaced(cause):
                raise
            said = f"{path} stays as it is until its rebuild is published: {cause.message}"
            self._damaged[name] = rendered(said)
            return False
        if gate is not None:
            gate.passed()
        return True

    def _waits_for_rejection(self, gate: TableGate, operations: Operations) -> bool:
        """Whether a table is held by an operation that a person has rejected, and bronze does not
        say so yet. The operation is not tried any more, and bronze's job is asked to say it."""
        if (given := gate.rejection()) is None:
            return False
        path, asked = GOLD.path(given.table), {each.number: each for each in operations.asked}
        operation = asked.get(given.operation)
        if operation is None or is_rejected(operation.document, path):
            return False
        if path not in self._replaced:
            document = encoded(given)
            send_request(self._layout, REJECTION, document, given.at, given.id)
        return True

    def _is_replaced(self, error: BaseException) -> TypeGuard[LogGapError | DamagedFileError]:
        """Whether what is damaged ends with the rebuild: a gap, or a file of a replaced table."""
        if isinstance(error, DamagedFileError):
            tables = (self._layout.storage.uri(f"{path}/") for path in self._replaced)
            return any(f"{error.at}/".startswith(table) for table in tables)
        return isinstance(error, LogGapError)

    def _operations(self, source: str) -> Operations:
        """The operations for the tables of a source, or of an input log, as of the last refresh of
        the decisions."""
        if source in self._anew:
            return Operations((), self._graph)
        known = self._control.known
        replays = frozenset(each.n for each in known.replays_of(source))
        asked = known.operations_of(source)
        return Operations(asked, self._graph, replays, known.read_by_logs(source))


def _waits(gold: GoldStage, waits_for: Collection[str]) -> bool:
    return any(table.name in waits_for for table in gold.upstream)


def _is_rollup(gold: GoldStage) -> bool:
    return kind_of(gold.upstream[0].name) == GOLD


def _open_operations(gold: GoldStage, operations: Operations) -> Operations:
    """The operations that the tables of a stage have not carried out. A rollup follows only those
    that the table which it reads has carried out."""
    found = operations.of(place.table for place in gold.places)
    return found.up_to(gold.upstream[0].state.operation) if _is_rollup(gold) else found
