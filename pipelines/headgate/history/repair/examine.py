"""Examines a whole pipeline, running or stopped: what is damaged, and what repairs it.

A damaged table that is built from bronze is rebuilt, with everything that is built from it. Bronze
and the files log are built from no table, so damage in them is refused, with a way back. Only
copies of logs are written, in a scratch folder.
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
from headgate.declaration.kinds import FILES, PUBLICATION, SILVER, kind_of
from headgate.declaration.model import Pipeline
from headgate.declaration.quantities import plural
from headgate.history.repair.documents import UNFINISHED, damaged_documents
from headgate.history.repair.logs import Log, examine_log
from headgate.history.repair.lost_records import lost_records
from headgate.history.repair.plan import Damage, Plan
from headgate.history.repair.rebuilding import rebuilt
from headgate.history.repair.way_back import SourceHolds, way_back
from headgate.history.savepoints.resets import Resets, ResetTarget, is_built, undeclared_targets
from headgate.lake.storage.layout import CONTROL, Layout
from headgate.lake.tables.agreement import disagreements
from headgate.lake.tables.checksum import digest_of
from headgate.lake.tables.damage import damage_of, is_of_machine
from headgate.lake.tables.data_file import DataFile
from headgate.lake.tables.errors import LogGapError
from headgate.lake.tables.history import batches, lineage, with_footers
from headgate.lake.tables.live_files import live_files
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.payloads.publication import PublicationPayload
from headgate.lake.tables.snapshot import tables_of
from headgate.lake.tables.state import State

_LOADS = f"{CONTROL}/loads/"
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
        self._bronze = self._graph.head.path
        self._source = pipeline.sources[self._graph.head.name]
        # Includes undeclared tables: a log that cannot be read stops every start.
        self._logs = {
            table.name: examine_log(layout.storage, table.name, pipeline.name, scratch)
            for table in tables_of(layout, pipeline.name)
        }
        self._tables = {path: log.table for path, log in self._logs.items() if not log.is_lost}
        self._states = {p: (self._logs[p].newest, t.state) for p, t in self._tables.items()}
        self._awaiting, self._is_intent_lost = self._open_resets()
        self._at: dict[str, State] = {}
        self._bad: dict[str, list[DataFile]] = {}
        self._found: list[Damage] = []
        self._damaged = {path for path, log in self._logs.items() if log.is_lost}
        for path in self._tables:
            self._examine_files(path)
        if self._unknown_generation:
            # Bronze may have been reset in between: their rows may come from other batches.
            self._damaged |= {node.path for node in self._graph}
        damaged = {*self._damaged, *self._unsent.values()}
        damaged = {path for path in damaged if is_built(path) and path in self._graph}
        self._rebuilt, unread = rebuilt(self._graph, self._at, damaged, self._can_feed)
        self._needed = {*unread, *self._unsent.values(), *([self._bronze] * self._is_intent_lost)}

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
            positions={path: self._position(of) for path, of in self._unsent.items()},
        )
        if any(document.path == UNFINISHED for document in documents):
            # The copy may be incomplete.
            refusal = f"{self._layout.storage.root}: it is an unfinished copy of a savepoint"
            return replace(plan, refusal=refusal, way_back=_COPY_AGAIN)
        if reasons := list(self._refusals()):
            way = self._way_back()
            # A restore reads the requests of loads.
            if loads := [d.path for d in documents if d.path.startswith(_LOADS)]:
                places = ", ".join(map(self._layout.storage.uri, loads))
                way = f"first move away {places}, which is damaged, too; then, {way}"
            return replace(plan, refusal="; ".join(reasons), way_back=way)
        return replace(plan, descriptions=tuple(self._descriptions(plan)))

    def _open_resets(self) -> tuple[dict[str, ResetTarget], bool]:
        """The targets of the tables that have not carried out the last intent, and whether the
        intent is lost although some tables may need it."""
        if self._bronze not in self._states:
            return {}, False
        top = self._states[self._bronze][1].generation
        behind = {
            path: state.generation
            for path, (_, state) in self._states.items()
            if is_built(path) and state.generation < top
        }
        if not behind:
            return {}, False
        try:
            intent = Resets(self._tables[self._bronze]).intent
        except LogGapError:
            return {}, True
        asked = {path: intent.asks(path, at) for path, at in behind.items()} if intent else {}
        return {path: target for path, target in asked.items() if target}, False

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
        """The highest generation of a table, if bronze has lost the commit that requested it; else
        0."""
        highest = max((state.generation for _, state in self._states.values()), default=0)
        known = self._states[self._bronze][1].generation if self._bronze in self._states else 0
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
        again = {*self._rebuilt, *([self._bronze] if self._goes_back else [])}
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

    @cached_property
    def _reached(self) -> int:
        """The highest batch id that a declared table has processed."""
        declared = self._at.keys() & self._pipeline.definitions.keys()
        return max((self._at[path].n for path in declared), default=0)

    @cached_property
    def _goes_back(self) -> bool:
        """Whether bronze has lost its newest commits, and reads the source again from there."""
        if self._bronze not in self._states:
            return False
        is_behind = self._reached > self._at[self._bronze].n or self._unknown_generation > 0
        return is_behind or self._logs[self._bronze].is_torn

    def _refusals(self) -> Iterator[str]:
        """What is lost that no table has; it says what that means."""
        if self._bronze not in self._states:
            if self._bronze in self._logs:
                yield (
                    f"{self._bronze}: its log cannot be read past the damage. Tables that are "
                    "built from it stay right, but can neither continue nor be rebuilt"
                )
            elif self._reached:
                yield (
                    f"{self._bronze}: it is not there, and everything is built from it. If the "
                    f"source had another name before: {pipeline_command('plan')}"
                )
            return
        if bad := self._bad[self._bronze]:
            silver = [
                self._tables[n.path] for n in self._graph.of(SILVER) if n.path in self._tables
            ]
            place = self._layout, self._pipeline.name, self._tables[self._bronze]
            yield (
                f"{self._bronze}: {lost_records(*place, bad, silver)}. Tables that have processed "
                "them stay right, but cannot be rebuilt"
            )
        elif self._bronze in self._needed:
            yield (
                f"{self._bronze}: its log has lost entries that other tables need. These tables "
                "can neither continue nor be rebuilt"
            )
        if reason := self._files_lost:
            yield reason
        elif self._goes_back and (gone := self._gone_from_source()):
            yield gone

    @cached_property
    def _files_lost(self) -> str | None:
        """Why the files log cannot be used; None if it can, or if the source has none."""
        path = FILES.path(self._graph.head.name)
        if path not in self._graph:
            return None
        read = BronzePayload.of(self._at[self._bronze]).sequence
        last = self._at[path].n if path in self._at else 0
        if path in self._at and not self._bad[path] and last >= read:
            return None
        return (
            f"{path}: it no longer has every landing file that was read, skipped or set aside, "
            "and without it no file can be read. The other tables stay right"
        )

    def _gone_from_source(self) -> str | None:
        """Why the batches that bronze has lost cannot be read again; None if they can."""
        state = self._at[self._bronze]
        upto, read = self._reached, BronzePayload.of(state)
        which = f"batches {state.n + 1:,} to {upto:,}" if upto > state.n else "the newest batch"
        lost = (
            f"{self._bronze}: {which} are lost"
            if upto > state.n
            else f"{self._bronze}: {which} is lost"
        )
        if state.n == 0 and not connector_of(self._source).has_known_start:
            return f"{lost}, and with it the offsets where reading began"
        why = self._source_holds(read.offsets, read.topics)
        return None if why is None else f"{lost}, and the source no longer has all of it: {why}"

    def _way_back(self) -> str:
        logs = self._logs.values()
        here = all(log.can_be_opened for log in logs) and self._bronze in self._states
        known = self._bronze not in self._states or self._files_lost is None
        bronze = self._tables[self._bronze] if here and known else None
        bad = {path: {file.path for file in files} for path, files in self._bad.items()}
        place = self._layout, self._pipeline, self._source_holds
        return way_back(*place, bronze, bad, are_files_known=known)

    def _descriptions(self, plan: Plan) -> Iterator[str]:
        n = self._at[self._bronze].n if self._bronze in self._at else 0
        for document in plan.documents:
            yield document.description
        for log in plan.logs:
            yield from self._of_log(log)
        if plan.goes_back and not self._logs[self._bronze].is_torn:
            yield f"{self._bronze}: the batches after {n:,} are read again from the source{_ALSO}"
        gone = {finding.place for finding in plan.findings} - self._logs.keys()
        for path in sorted(gone & self._pipeline.definitions.keys()):
            yield f"{path}: created again, and filled from bronze at the next run"
        for path, target in plan.targets.items():
            if target.keep:
                yield f"{path}: stays as it is; if it is declared again, it is rebuilt"
            elif path not in self._rebuilt:
                yield f"{path}: goes back as an unfinished reset asks"
            else:
                yield f"{path}: rebuilt: {plural(n, 'batch')} of bronze again at the next run"
        for path, position in plan.positions.items():
            yield f"{path}: continues after version {position:,} of its table, with what is rebuilt"
        if plan.above:
            yield f"resets are numbered from {plan.above + 1:,} on"
        if self._awaiting and not plan.targets:
            yield "an unfinished reset is finished"

    def _of_log(self, log: Log) -> Iterator[str]:
        if log.is_lost:
            again = " and created again; earlier savepoints can no longer be restored"
            if kind_of(log.path) == PUBLICATION:
                again = "; everything is sent again, under the same ids"
            elif log.path not in self._pipeline.definitions:
                again = "; no declaration has it"
            yield f"{log.path}: its log cannot be read: it is put aside{again}"
            return
        for place in log.aside:
            yield f"{log.path}/{place}: put aside; the log is read without it"
        if log.is_torn:
            first, stands = (log.stands or 0) + 1, log.stands or 0
            again = f"; the source is read again from there{_ALSO}" * (log.path == self._bronze)
            yield (
                f"{log.path}: its log goes back to version {stands:,}; entries {first:,} to "
                f"{log.newest:,} are put aside{again}"
            )
