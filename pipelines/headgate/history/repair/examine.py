"""Examines a whole pipeline, running or stopped: what is damaged, and what repairs it.

Only copies of logs are written, in a scratch folder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from deltalake.exceptions import DeltaError

from headgate.commands import pipeline_command
from headgate.declaration.contracts.source import connector_of
from headgate.declaration.graph import graph_of
from headgate.declaration.kinds import FILES, PUBLICATION
from headgate.declaration.model import Pipeline
from headgate.history.repair.describe import describe
from headgate.history.repair.documents import UNFINISHED, DamagedDocument, damaged_documents
from headgate.history.repair.files_log import Filling, filling
from headgate.history.repair.findings import Damage
from headgate.history.repair.logs import Log, examine_log
from headgate.history.repair.lost_intent import perhaps_asked
from headgate.history.repair.plan import Plan
from headgate.history.repair.recovery_point import Choice, TableCondition, choose
from headgate.history.repair.version_history import TableVersion, VersionHistory
from headgate.history.savepoints.resets import Resets, Target, is_built
from headgate.history.savepoints.undeclared import undeclared_targets
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.agreement import disagreements
from headgate.lake.tables.damage import is_of_machine
from headgate.lake.tables.errors import LogGapError
from headgate.lake.tables.history import lineage
from headgate.lake.tables.payloads.publication import PublicationPayload
from headgate.lake.tables.snapshot import tables_of

_BACKUP = "only a backup of bronze brings them back"
_NOTHING_LEFT = (
    "nothing of its log is there, and everything is built from it; only a backup brings it back. "
    f"If the source had another name before: {pipeline_command('plan')}"
)

SourceHolds = Callable[[Mapping[str, int], Sequence[str]], str | None]
"""Returns why a source no longer has all records after some offsets (of some topics); None if it
has them."""


def examine(layout: Layout, pipeline: Pipeline, scratch: Path, source_holds: SourceHolds) -> Plan:
    """What is damaged, and what repairs it. Reads every page of every live file; asks the source
    only if bronze has to be read again. Raises OSError if the machine does not let a file be read:
    it may be intact."""
    return _Examination(layout, pipeline, scratch, source_holds).plan()


class _Examination:
    def __init__(
        self, layout: Layout, pipeline: Pipeline, scratch: Path, source_holds: SourceHolds
    ) -> None:
        self._layout = layout
        self._pipeline = pipeline
        self._graph = graph_of(pipeline)
        self._source_holds = source_holds
        head = self._graph.head
        self._bronze, self._source = head.path, pipeline.sources[head.name]
        # Includes undeclared tables: a log that cannot be read stops every start.
        self._logs = {
            table.name: examine_log(layout.storage, table.name, pipeline.name, scratch)
            for table in tables_of(layout, pipeline.name)
        }
        self._states = {
            path: (log.newest, log.table.state)
            for path, log in self._logs.items()
            if not log.is_lost
        }
        self._awaiting, self._intent_lost = self._open_resets()

    def plan(self) -> Plan:
        documents = damaged_documents(self._layout)
        choice = choose(self._graph, self._conditions, self._to_rebuild())
        filled = self._filling(choice)
        targets = self._targets(choice)
        reread = None
        if choice.goes_back:
            reread = choice.bronze.target if choice.bronze else Target()
        plan = Plan(
            findings=(
                *(document.finding for document in documents),
                *(f for log in self._logs.values() for f in self._of_log(log, choice)),
                *(
                    Damage(f"{path}/{file}", what, "file")
                    for path, condition in self._conditions.items()
                    for file, what in condition.bad.items()
                ),
                *self._lost_ends(),
                *(filled.findings if filled else ()),
            ),
            documents=documents,
            logs=tuple(g for g in self._logs.values() if g.is_cut or g.is_lost or g.aside),
            targets=targets,
            reread=reread,
            above=self._unknown_generation,
            is_open=bool(self._awaiting),
            resets=bool(targets or reread or self._intent_lost or self._unknown_generation),
            positions={path: self._position(s) for path, s in self._unsent.items()},
            filling=filled if filled and filled.is_needed else None,
            refusal=self._half(documents) or self._refusal(choice, filled),
        )
        return describe(plan, self._bronze, self._pipeline.definitions, self._of_events, choice.n)

    @cached_property
    def _unknown_generation(self) -> int:
        """The highest generation of a table, if bronze has lost the commit that requested it; else
        0."""
        highest = max((state.generation for _, state in self._states.values()), default=0)
        known = self._states[self._bronze][1].generation if self._bronze in self._states else 0
        return highest if highest > known else 0

    @cached_property
    def _conditions(self) -> dict[str, TableCondition]:
        return {
            node.path: self._condition(node.path)
            for node in self._graph
            if node.path == self._bronze or node.kind.is_built
        }

    def _condition(self, path: str) -> TableCondition:
        log, target = self._logs.get(path), self._awaiting.get(path)
        if log is None:
            # Bronze cannot be new if something was built from it.
            built = any(s.n for p, (_, s) in self._states.items() if is_built(p))
            return TableCondition(is_lost=path == self._bronze and built)
        if log.is_lost:
            return TableCondition(is_lost=True)
        if target and (target.version is None or target.rebuilt):
            return TableCondition()
        history = VersionHistory(log.table)
        try:
            at = TableVersion(log.table.version, log.table.state, is_newest=True)
            if target and target.version is not None:
                state = next(lineage(log.table, target.version)).state
                at = TableVersion(target.version, state)
            bad = history.bad_files(at.version)
        except (LogGapError, DeltaError, OSError) as error:
            if is_of_machine(error):
                raise  # the table may be intact
            return TableCondition(is_lost=True)
        return TableCondition(at, history, log.broken, bad)

    def _open_resets(self) -> tuple[Mapping[str, Target], bool]:
        """The targets of the tables that have not carried out the last intent, and whether the
        intent is lost although some tables need it."""
        if self._bronze not in self._states:
            return {}, False
        top = self._states[self._bronze][1].generation
        states = {path: state for path, (_, state) in self._states.items()}
        behind = {
            path: state.generation
            for path, state in states.items()
            if is_built(path) and state.generation < top
        }
        if not behind:
            return {}, False
        bronze = self._logs[self._bronze].table
        try:
            intent = Resets(bronze).intent
        except LogGapError:
            return perhaps_asked(self._graph, bronze, states, behind), True
        asked = {path: intent.asks(path, at) for path, at in behind.items()} if intent else {}
        return {path: target for path, target in asked.items() if target}, False

    def _to_rebuild(self) -> Iterator[str]:
        """Tables that are rebuilt although they are not damaged."""
        if self._unknown_generation:
            # Bronze may have been reset in between: their rows may come from other batches.
            yield from (node.path for node in self._graph if node.kind.is_built)
        yield from self._unsent.values()

    def _targets(self, choice: Choice) -> dict[str, Target]:
        """The targets of an intent that replaces an unfinished or lost one."""
        changed = dict.fromkeys(choice.rebuilt & self._states.keys(), Target())
        bronze = self._logs.get(self._bronze)
        again = set(choice.rebuilt)
        if choice.goes_back or (bronze and bronze.is_cut):
            again.add(self._bronze)
        if not again and not self._intent_lost:
            return {}
        undeclared = self._states.keys() - self._pipeline.definitions.keys()
        left = undeclared_targets(filter(is_built, undeclared), again)
        return {**self._awaiting, **left, **changed}

    def _of_log(self, log: Log, choice: Choice) -> Iterator[Damage]:
        """The damage of a log. A broken entry that is not needed to read the log is harmless only
        if no table or publication needs it, and if it is not a lost intent."""
        unread = log.path in choice.unread or log.path in self._unsent.values()
        intent_lost = self._intent_lost and log.path == self._bronze
        for finding in log.findings():
            yield replace(finding, harmless=finding.harmless and not (unread or intent_lost))

    def _lost_ends(self) -> Iterator[Damage]:
        """Disagreements between tables. Those of a table with a truncated or lost log are left out,
        because the damaged log explains them."""
        known = {path for path, log in self._logs.items() if log.is_cut or log.is_lost}
        for found in disagreements(self._pipeline, self._states, self._awaiting):
            if found.table not in known:
                yield Damage(found.table, f"its log has lost its end: {found.what}", "position")

    @cached_property
    def _unsent(self) -> dict[str, str]:
        """Publications that cannot continue from their position in their table's log, each with the
        table. The table is rebuilt, and they send its commits from then on."""
        found = {}
        for node in self._graph.of(PUBLICATION):
            source = node.upstream[0]
            if node.path in self._states and (log := self._logs.get(source)):
                sent = PublicationPayload.of(self._states[node.path][1]).version
                reads = node.path not in self._of_events
                unread = reads and any(sent < v <= (log.stands or 0) for v in log.broken)
                if log.is_lost or unread or sent > log.newest:
                    found[node.path] = source
        return found

    @property
    def _of_events(self) -> frozenset[str]:
        """The publications of gate events. Events are documents, so these read no entry of the
        table's log; only the position must not be ahead of it."""
        gates = (name for name, each in self._pipeline.publish.items() if each.layer == "gate")
        return frozenset(map(PUBLICATION.path, gates))

    def _position(self, source: str) -> int:
        log = self._logs[source]
        return 0 if log.is_lost else log.newest

    def _filling(self, choice: Choice) -> Filling | None:
        files = FILES.path(self._source.name)
        if files not in self._graph or self._bronze not in self._states:
            return None
        log = self._logs.get(files)
        bronze = self._logs[self._bronze].table
        return filling(self._layout, self._source, log, bronze, choice.read)

    def _half(self, documents: Sequence[DamagedDocument]) -> str | None:
        """The refusal if the document of an unfinished copy is damaged: the copy may be
        incomplete."""
        if all(document.path != UNFINISHED for document in documents):
            return None
        return (
            f"{self._layout.storage.root}: it is a copy of a savepoint, perhaps not a whole one: "
            "remove the folder and restore the savepoint into it again"
        )

    def _refusal(self, choice: Choice, filled: Filling | None) -> str | None:
        """Why bronze cannot be read again although it has to be; None otherwise."""
        if self._bronze not in self._states:
            return f"{self._bronze}: {_NOTHING_LEFT}" if choice.goes_back else None
        n = choice.n
        declared = self._states.keys() & self._pipeline.definitions.keys()
        upto = max(self._states[path][1].n for path in declared)
        if not choice.goes_back and not self._logs[self._bronze].is_cut and upto <= n:
            return None
        batches = f"batches {n + 1:,} to {upto:,}" if upto > n else "the newest batch"
        lost = f"{self._bronze}: {batches} are damaged or missing"
        if n == 0 and not connector_of(self._source).has_known_start:
            return f"{lost}, and with them the offsets where reading began; {_BACKUP}"
        if filled is not None and filled.is_needed:
            return f"{lost}, and so is the log of the files they came from; {_BACKUP}"
        why = self._source_holds(choice.read.offsets, choice.read.topics)
        return None if why is None else f"{lost}; {why}; {_BACKUP}"
