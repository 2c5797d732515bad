"""Examines a whole pipeline, running or stopped: what is damaged, and what repairs it.

A damaged table that is built from bronze is rebuilt, with everything that is built from it. Bronze
and the files log are built from no table, so damage in them is refused, with a way back. If the
decisions are lost, everything that is built from bronze is rebuilt. Only copies of logs are
written, in a scratch folder.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from headgate.commands import pipeline_command
from headgate.declaration.contracts.source import connector_of
from headgate.declaration.graph import graph_of
from headgate.declaration.kinds import BRONZE, FILES, INPUTS, PUBLICATION, SILVER, kind_of
from headgate.declaration.model import Pipeline
from headgate.declaration.quantities import plural
from headgate.history.repair.documents import UNFINISHED, damaged_documents
from headgate.history.repair.logs import Log, examine_log
from headgate.history.repair.lost_records import lost_records
from headgate.history.repair.plan import Damage, Plan
from headgate.history.repair.rebuilding import rebuilt
from headgate.history.repair.way_back import SourceHolds, way_back
from headgate.history.savepoints.resets import (
    ResetTarget,
    is_built,
    reset_intents,
    undeclared_targets,
)
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.agreement import disagreements
from headgate.lake.tables.checksum import digest_of
from headgate.lake.tables.damage import damage_of, is_of_machine
from headgate.lake.tables.data_file import DataFile
from headgate.lake.tables.decisions import DECISIONS, ControlTable
from headgate.lake.tables.errors import DamagedFileError, LogGapError
from headgate.lake.tables.history import batches, lineage, with_footers
from headgate.lake.tables.live_files import live_files
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.payloads.publication import PublicationPayload
from headgate.lake.tables.snapshot import inputs_of, tables_of
from headgate.lake.tables.state import State

_ALSO = "; a replay, drain or backfill since then has to be requested again"
_COPY_AGAIN = "remove the folder and restore the savepoint into it again"


def examine(layout: Layout, pipeline: Pipeline, scratch: Path, source_holds: SourceHolds) -> Plan:
    """What is damaged, and what repairs it. Reads every page of every live file; asks the source
    only if it has to be read again. Raises OSError if the machine does not let a file be read: it
    may be intact."""
    return _Examination(layout, pipeline, scratch, source_holds).plan()


class _Examination:
    """``_states`` has the log version and the state of each table whose log is not lost. ``_at``
    has the states after the open reset, ``_bad`` the damaged files then. ``_damaged`` are tables
    with any damage, ``_needed`` those whose logs have lost an entry that something needs."""

    def __init__(
        self, layout: Layout, pipeline: Pipeline, scratch: Path, source_holds: SourceHolds
    ) -> None:
        self._layout, self._pipeline = layout, pipeline
        self._graph, self._source_holds = graph_of(pipeline), source_holds
        self._bronze = {node.name: node.path for node in self._graph.of(BRONZE)}
        # Includes undeclared tables: a log that cannot be read stops every start.
        self._logs = {
            table.name: examine_log(layout.storage, table.name, pipeline.name, scratch)
            for table in tables_of(layout, pipeline.name)
        }
        self._tables = {path: log.table for path, log in self._logs.items() if not log.is_lost}
        self._states = {p: (self._logs[p].newest, t.state) for p, t in self._tables.items()}
        self._awaiting = self._open_resets()
        self._at: dict[str, State] = {}
        self._bad: dict[str, list[DataFile]] = {}
        self._found: list[Damage] = []
        # An input log without its end is begun again: what was decided after the end that is left
        # would take place at other batches.
        self._damaged = {
            path
            for path, log in self._logs.items()
            if log.is_lost or (log.is_torn and kind_of(path) == INPUTS)
        }
        for path in self._tables:
            self._examine_files(path)
        if self._unknown_generation or DECISIONS in self._damaged:
            # Their rows may come from other batches, or depend on decisions that are lost.
            self._damaged |= {node.path for node in self._graph}
        damaged = {*self._damaged, *self._unsent.values()}
        damaged = {path for path in damaged if is_built(path) and path in self._graph}
        self._rebuilt, unread = rebuilt(self._graph, self._at, damaged, self._can_feed)
        self._needed = {*unread, *self._unsent.values()}

    def plan(self) -> Plan:
        documents = damaged_documents(self._layout)
        plan = Plan(
            findings=(
                *(document.finding for document in documents),
                *(f for p, log in self._logs.items() for f in log.findings(p in self._needed)),
                *self._found,
                *self._lost_ends(),
            ),
            documents=documents,
            logs=tuple(log for log in self._logs.values() if not log.can_be_opened),
            targets=self._targets(),
            above=self._unknown_generation,
            goes_back=self._goes_back,
            replayed=self._replayed,
            positions={path: self._position(of) for path, of in self._unsent.items()},
        )
        if any(document.path == UNFINISHED for document in documents):
            # The copy may be incomplete.
            refusal = f"{self._layout.storage.root}: it is an unfinished copy of a savepoint"
            return replace(plan, refusal=refusal, way_back=_COPY_AGAIN)
        if reasons := list(self._refusals()):
            way = self._way_back()
            return replace(plan, refusal="; ".join(reasons), way_back=way)
        return replace(plan, descriptions=tuple(self._descriptions(plan)))

    def _open_resets(self) -> dict[str, ResetTarget]:
        """The targets of the tables that await a reset. Puts the decisions among the lost logs if
        their files are damaged."""
        if DECISIONS not in self._tables:
            return {}
        try:
            intents = reset_intents(ControlTable(self._tables[DECISIONS]).refresh())
        except (LogGapError, DamagedFileError) as error:
            log = self._logs[DECISIONS]
            self._logs[DECISIONS] = replace(log, stands=None, broken={log.newest: error.message})
            del self._tables[DECISIONS], self._states[DECISIONS]
            return {}
        asked = {
            path: intents[path].asks(path, state.generation)
            for path, (_, state) in self._states.items()
            if path in intents
        }
        return {path: target for path, target in asked.items() if target}

    def _examine_files(self, path: str) -> None:
        """Find the damaged files of a table, and whether it can carry out its reset."""
        table, target = self._tables[path], self._awaiting.get(path)
        self._at[path], self._bad[path] = table.state, []
        if target and (target.version is None or target.keep):
            self._at[path] = State.empty(path)
            return
        if path not in self._graph or kind_of(path) == PUBLICATION:
            return
        version = table.version
        if target is not None and target.version is not None:
            version = target.version
            table = table.with_log(target.rebuilt) if target.rebuilt else table
        try:
            files = live_files(DeltaTable(table.log.uri(), version=version))
            if target is not None:
                self._at[path] = next(lineage(table, version)).state
            is_lost = target is not None and digest_of(files) != target.files
            files = with_footers(table, version, files)
        except (LogGapError, DeltaError, OSError) as error:
            if is_of_machine(error):
                raise  # the table may be intact
            is_lost, files = True, ()
        found = [(file, what) for file in files if (what := damage_of(table.storage, file))]
        self._bad[path] = [file for file, _ in found]
        self._found += [Damage(f"{path}/{file.path}", what, "file") for file, what in found]
        if is_lost:
            what = f"version {version:,}, to which it must be reset, cannot be read"
            self._found.append(Damage(path, what, "log"))
        if found or is_lost:
            self._damaged.add(path)

    def _can_feed(self, path: str, n: int) -> bool:
        table, upto = self._tables[path], self._at[path]
        try:
            if (target := self._awaiting.get(path)) is not None:
                return n == 0 and (bool(target.rebuilt) or all(lineage(table, target.version)))
            return bool(batches(table, n, upto.n))
        except LogGapError:
            return False

    @cached_property
    def _unknown_generation(self) -> int:
        """The highest generation of a table, if the decision on it is lost; else 0."""
        highest = max((state.generation for _, state in self._states.values()), default=0)
        known = self._states[DECISIONS][1].generation if DECISIONS in self._states else 0
        return highest if highest > known else 0

    @cached_property
    def _unsent(self) -> dict[str, str]:
        """Publications that cannot continue from their position in their table's log, each with the
        table. The table is rebuilt, and they send its commits from then on."""
        found = {}
        for node in self._graph.of(PUBLICATION):
            source = node.upstream[0]
            if node.path not in self._states:
                continue
            sent = PublicationPayload.of(self._states[node.path][1]).version
            if (log := self._logs.get(source)) is None:  # the whole table is gone
                is_unsent = sent > 0
            else:
                # Events of gates are documents, so their publications read no entry.
                reads = self._pipeline.publish[node.name].layer != "gate"
                unread = reads and any(sent < v <= (log.stands or 0) for v in log.broken)
                is_unsent = log.is_lost or unread or sent > log.newest
            if is_unsent:
                found[node.path] = source
        return found

    def _position(self, source: str) -> int:
        log = self._logs.get(source)
        return 0 if log is None or log.is_lost else log.newest

    def _targets(self) -> dict[str, ResetTarget]:
        """The targets of an intent that replaces an unfinished one; empty if none is needed."""
        again = {*self._rebuilt, *(self._bronze[source] for source in self._goes_back)}
        if not again:
            return {}
        undeclared = self._states.keys() - self._pipeline.definitions.keys()
        left = undeclared_targets(filter(is_built, undeclared), again)
        return {**self._awaiting, **left, **dict.fromkeys(sorted(self._rebuilt), ResetTarget())}

    def _lost_ends(self) -> Iterator[Damage]:
        """Disagreements between tables. Those of a table with a torn or lost log are left out,
        because the damaged log explains them."""
        known = {path for path, log in self._logs.items() if log.is_torn or log.is_lost}
        for found in disagreements(self._pipeline, self._states, self._awaiting):
            if found.table not in known:
                yield Damage(found.table, f"its log has lost its end: {found.what}", "position")

    def _reached(self, source: str) -> int:
        """The highest batch id of a source that a declared table has processed."""
        declared = self._at.keys() & self._pipeline.definitions.keys()
        own = (path for path in declared if self._graph.numbered_by(path).name == source)
        read = (inputs_of(self._at[path]).get(source, 0) for path in declared)
        return max((*(self._at[path].n for path in own), *read), default=0)

    @cached_property
    def _goes_back(self) -> frozenset[str]:
        """The sources whose bronze has lost its newest commits, and is read again from there."""
        return frozenset(
            source
            for source, path in self._bronze.items()
            if path in self._states
            and (self._reached(source) > self._at[path].n or self._logs[path].is_torn)
        )

    @cached_property
    def _replayed(self) -> frozenset[str]:
        """The sources whose bronze has ingested a replay that no decision is left of."""
        decided = self._states[DECISIONS][1].n if DECISIONS in self._states else 0
        there = ((source, self._at.get(path)) for source, path in self._bronze.items())
        return frozenset(source for source, at in there if at and at.operation > decided)

    def _refusals(self) -> Iterator[str]:
        """What is lost that no table has; it says what that means."""
        for source, path in self._bronze.items():
            if path in self._states:
                yield from self._refusals_of(source, path)
            elif path in self._logs:
                yield (
                    f"{path}: its log cannot be read past the damage. Tables that are built from "
                    "it stay right, but can neither continue nor be rebuilt"
                )
            elif self._reached(source):
                yield (
                    f"{path}: it is not there, and other tables are built from it. If the source "
                    f"had another name before: {pipeline_command('plan')}"
                )

    def _refusals_of(self, source: str, bronze: str) -> Iterator[str]:
        if bad := self._bad[bronze]:
            silver = [
                self._tables[node.path]
                for node in self._graph.of(SILVER)
                if node.path in self._tables and node.upstream == (bronze,)
            ]
            place = self._layout, self._pipeline.name, self._tables[bronze]
            yield (
                f"{bronze}: {lost_records(*place, bad, silver)}. Tables that have processed them "
                "stay right, but cannot be rebuilt"
            )
        elif bronze in self._needed:
            yield (
                f"{bronze}: its log has lost entries that other tables need. These tables can "
                "neither continue nor be rebuilt"
            )
        if reason := self._files_lost(source):
            yield reason
        elif source in self._goes_back and (gone := self._gone_from_source(source)):
            yield gone

    def _files_lost(self, source: str) -> str | None:
        """Why the files log of a source cannot be used; None if it can, or if there is none."""
        path = FILES.path(source)
        if path not in self._graph:
            return None
        read = BronzePayload.of(self._at[self._bronze[source]]).sequence
        last = self._at[path].n if path in self._at else 0
        if path in self._at and not self._bad[path] and last >= read:
            return None
        return (
            f"{path}: it no longer has every landing file that was read, skipped or set aside, "
            "and without it no file can be read. The other tables stay right"
        )

    def _gone_from_source(self, source: str) -> str | None:
        """Why the batches that a bronze table has lost cannot be read again; None if they can."""
        bronze = self._bronze[source]
        state = self._at[bronze]
        upto, read = self._reached(source), BronzePayload.of(state)
        which = f"batches {state.n + 1:,} to {upto:,}" if upto > state.n else "the newest batch"
        lost = f"{bronze}: {which} {'are' if upto > state.n else 'is'} lost"
        has_known_start = connector_of(self._pipeline.sources[source]).has_known_start
        if state.n == 0 and not has_known_start:
            return f"{lost}, and with it the offsets where reading began"
        why = self._source_holds(source, read.offsets, read.topics)
        return None if why is None else f"{lost}, and the source no longer has all of it: {why}"

    def _way_back(self) -> str:
        are_there = all(path in self._states for path in self._bronze.values())
        here = all(log.can_be_opened for log in self._logs.values()) and are_there
        known = not are_there or not any(map(self._files_lost, self._bronze))
        bronze = [self._tables[path] for path in self._bronze.values()] if here and known else None
        bad = {path: {file.path for file in files} for path, files in self._bad.items()}
        place = self._layout, self._pipeline, self._source_holds
        return way_back(*place, bronze, bad, are_files_known=known)

    def _descriptions(self, plan: Plan) -> Iterator[str]:
        for document in plan.documents:
            yield document.description
        for log in plan.logs:
            yield from self._of_log(log)
        yield from self._of_bronze(plan)
        gone = {finding.place for finding in plan.findings} - self._logs.keys()
        for path in sorted(gone & self._pipeline.definitions.keys()):
            yield f"{path}: created again, and filled from bronze at the next run"
        for path, target in plan.targets.items():
            if target.keep:
                yield f"{path}: stays as it is; if it is declared again, it is rebuilt"
            elif path not in self._rebuilt:
                yield f"{path}: goes back as an unfinished reset asks"
            elif kind_of(path) == INPUTS:
                yield (
                    f"{path}: begun again; drains and replays of late rows of the tables that read "
                    "these sources together have to be requested again"
                )
            else:
                above = self._at.get(self._graph.numbered_by(path).path)
                number = plural(above.n if above else 0, "batch")
                yield f"{path}: rebuilt: {number} of bronze again at the next run"
        for path, position in plan.positions.items():
            yield f"{path}: continues after version {position:,} of its table, with what is rebuilt"
        if plan.above:
            yield f"resets are numbered from {plan.above + 1:,} on"
        if self._awaiting and not plan.targets:
            yield "an unfinished reset is finished"

    def _of_bronze(self, plan: Plan) -> Iterator[str]:
        for bronze in (self._bronze[source] for source in sorted(plan.goes_back)):
            if not self._logs[bronze].is_torn:
                n = self._at[bronze].n
                yield f"{bronze}: the batches after {n:,} are read again from the source{_ALSO}"
        for bronze in (self._bronze[source] for source in sorted(plan.replayed)):
            yield (
                f"{bronze}: stays as it is; its newest replay of refused records counts as a batch "
                "of the source from now on"
            )

    def _of_log(self, log: Log) -> Iterator[str]:
        if log.is_lost:
            again = " and created again; earlier savepoints can no longer be restored"
            if log.path == DECISIONS:
                again = (
                    " and begun again. All tables that are built from bronze are rebuilt; drains, "
                    "backfills and replays of late rows have to be requested again, and earlier "
                    "savepoints can no longer be restored"
                )
            elif kind_of(log.path) == PUBLICATION:
                again = "; everything is sent again, under the same ids"
            elif log.path not in self._pipeline.definitions:
                again = "; no declaration has it"
            yield f"{log.path}: its log cannot be read: it is put aside{again}"
            return
        for place in log.aside:
            yield f"{log.path}/{place}: put aside; the log is read without it"
        if log.is_torn:
            first, stands = (log.stands or 0) + 1, log.stands or 0
            again = ""
            if kind_of(log.path) == BRONZE:
                again = f"; the source is read again from there{_ALSO}"
            elif log.path == DECISIONS:
                again = "; what was decided since then has to be requested again"
            yield (
                f"{log.path}: its log goes back to version {stands:,}; entries {first:,} to "
                f"{log.newest:,} are put aside{again}"
            )
