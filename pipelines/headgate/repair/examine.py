"""Looking at everything of a pipeline, running or stopped: a plan of what is to be mended, and how.

Nothing is written here but copies of logs, in a folder of scratch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from headgate.commands import pipeline_command
from headgate.declaration.kinds import BRONZE, FILES, PUBLICATION, RECORDS, kind_of
from headgate.declaration.model import Pipeline
from headgate.graph.graph import graph_of
from headgate.repair.describe import tell
from headgate.repair.documents import UNFINISHED, DamagedDocument, damaged_documents
from headgate.repair.files_log import Filling, filling
from headgate.repair.findings import Finding
from headgate.repair.logs import Log, examine_log
from headgate.repair.lost_intent import perhaps_asked
from headgate.repair.past import Past
from headgate.repair.plan import Plan
from headgate.repair.recovery_point import Bounds, Pick, Picks, View, choose
from headgate.savepoints.resets import Resets, Target, is_built
from headgate.savepoints.store import savepoints
from headgate.savepoints.undeclared import left_behind
from headgate.sources.connector import connector_of
from headgate.storage.layout import Layout
from headgate.tables.agreement import disagreements
from headgate.tables.errors import LogGapError
from headgate.tables.log import entry_path
from headgate.tables.snapshot import tables_of
from headgate.tables.state import State

_BACKUP = "only a backup of bronze brings them back"
_NOTHING_LEFT = (
    "nothing of its log is there, and everything is built from it; only a backup brings it back. "
    f"If the source had another name before: {pipeline_command('plan')}"
)

SourceHolds = Callable[[Mapping[str, int], Sequence[str]], str | None]
"""Why a source no longer holds everything behind some offsets (of some topics); None if it does."""


def examine(layout: Layout, pipeline: Pipeline, scratch: Path, source_holds: SourceHolds) -> Plan:
    """What is damaged, and what mends it. Reads every page of every live file; asks the source
    only where bronze has to be read again."""
    return _Examination(layout, pipeline, scratch, source_holds).plan()


class _Examination:
    def __init__(
        self, layout: Layout, pipeline: Pipeline, scratch: Path, source_holds: SourceHolds
    ) -> None:
        self._layout = layout
        self._pipeline = pipeline
        self._graph = graph_of(pipeline)
        self._source_holds = source_holds
        self._bronze = BRONZE.path(pipeline.source.name)
        self._files = FILES.path(pipeline.source.name)
        # Also of tables that nobody declares any more: a log that cannot be read stops every start.
        self._logs = {
            table.name: examine_log(layout.storage, table.name, pipeline.name, scratch)
            for table in tables_of(layout, pipeline.name)
        }
        self._states = {
            path: (log.newest, log.table.state)
            for path, log in self._logs.items()
            if log.stands is not None
        }
        self._awaiting, self._forgotten = self._open_resets()
        self._bounds = Bounds()

    def plan(self) -> Plan:
        documents = damaged_documents(self._layout)
        views = {path: self._view(path) for path in self._pipeline.definitions}
        positions = dict(self._positions())
        picks = choose(self._pipeline, views, self._bounds)
        filled = self._filling(picks[self._bronze])
        findings = (
            *(document.finding for document in documents),
            *(f for log in self._logs.values() for f in self._of_log(log)),
            *self._bad_files(views),
            *self._lost_ends(),
            *(filled.findings if filled else ()),
        )
        lost = tuple(path for path, log in self._logs.items() if log.is_lost)
        highest = max((s.generation for _, s in self._states.values()), default=0)
        told = self._states[self._bronze][1].generation if self._bronze in self._states else 0
        plan = Plan(
            findings=findings,
            documents=documents,
            logs=tuple(log for log in self._logs.values() if log.is_cut or log.aside),
            lost=lost,
            targets=self._targets(picks),
            reread=None if picks[self._bronze].stays else _target(picks[self._bronze]),
            generation=highest if highest > told else 0,
            is_open=bool(self._awaiting),
            is_forgotten=self._forgotten,
            positions=positions,
            filling=filled if filled and filled.is_needed else None,
            refusal=self._half(documents) or self._refusal(picks[self._bronze], filled),
        )
        return tell(plan, picks, self._states, savepoints(self._layout))

    def _view(self, path: str) -> View:
        log = self._logs.get(path)
        if log is None:
            # Bronze cannot be new where something was built from it.
            built = any(s.n for p, (_, s) in self._states.items() if kind_of(p) in RECORDS)
            return View(path, is_lost=path == self._bronze and built)
        if log.stands is None:
            return View(path, is_lost=True)
        start = None
        if path in self._awaiting:
            start = self._awaiting[path].version
            if start is None or self._awaiting[path].rebuilt:
                return View(path)
        return View(path, Past(log.table, self._layout.storage.at(path), start))

    def _open_resets(self) -> tuple[Mapping[str, Target], bool]:
        """What the last intent asks of tables that have not done it; and whether it can no longer
        be read, though somebody has to."""
        if self._bronze not in self._states:
            return {}, False
        top = self._states[self._bronze][1]
        behind = {
            path: state.generation
            for path, (_, state) in self._states.items()
            if is_built(path) and state.generation < top.generation
        }
        if not behind:
            return {}, False
        try:
            intent = Resets(self._logs[self._bronze].table).intent
        except LogGapError:
            states = {path: state for path, (_, state) in self._states.items()}
            bronze = self._logs[self._bronze].table
            return perhaps_asked(self._pipeline, bronze, states, behind), True
        asked = {path: intent.asks(path, at) for path, at in behind.items()} if intent else {}
        return {path: target for path, target in asked.items() if target}, False

    def _targets(self, picks: Picks) -> dict[str, Target]:
        """Of an intent that takes over what an older one left undone, or cannot say any more."""
        changed = {
            path: _target(pick)
            for path, pick in picks.items()
            if not pick.stays and path != self._bronze and path in self._states
        }
        again = set(changed) | (set() if picks[self._bronze].stays else {self._bronze})
        if not again and not self._forgotten:
            return {}
        undeclared = self._states.keys() - self._pipeline.definitions.keys()
        left = left_behind(filter(is_built, undeclared), again)
        return {**self._awaiting, **left, **changed}

    def _of_log(self, log: Log) -> Iterator[Finding]:
        needed = self._bounds.versions.get(log.path)
        place = "" if needed is None else f"{log.path}/{entry_path(needed)}"
        forgotten = ""
        if self._forgotten and log.path == self._bronze:
            forgotten = f"{log.path}/{entry_path(log.table.state.reset_commit)}"
        for finding in log.findings():
            what = finding.what.partition(";")[0]
            if finding.place == forgotten:
                yield Finding(forgotten, f"{what}; it says which tables are to be reset", "log")
            elif finding.place == place:
                yield Finding(place, f"{what}; a table has still to read its batch", "log")
            else:
                yield finding

    def _bad_files(self, views: Mapping[str, View]) -> Iterator[Finding]:
        for path, view in views.items():
            for file, what in (view.past.bad_files if view.past else {}).items():
                yield Finding(f"{path}/{file}", what, "file")

    def _lost_ends(self) -> Iterator[Finding]:
        """A table whose log is bad anyway explains what does not fit around it."""
        known = {path for path, log in self._logs.items() if log.is_cut or log.is_lost}
        for found in disagreements(self._pipeline, self._states, self._awaiting):
            if found.table not in known:
                yield Finding(found.table, f"its log has lost its end: {found.what}", "position")

    def _positions(self) -> Iterator[tuple[str, int]]:
        """Publications that would look for versions that are gone, or cannot be read."""
        for node in self._graph.of(PUBLICATION):
            path, source = node.path, node.upstream[0]
            if path not in self._states or source not in self._logs:
                continue
            upto, log = int(self._states[path][1].offsets.get("version", 0)), self._logs[source]
            newest = -1 if log.is_lost else log.newest
            unread = [v for v in log.broken if upto < v <= (log.stands or -1)]
            if unread:
                # What was not published yet comes again, behind the newest version.
                self._bounds.versions[source] = upto + 1
            if unread or upto > newest:
                yield path, max(newest, 0)

    def _filling(self, bronze: Pick) -> Filling | None:
        if self._files not in self._graph or self._bronze not in self._states:
            return None
        log = self._logs.get(self._files)
        state = bronze.moment.state if bronze.moment else State()
        return filling(self._layout, self._pipeline, log, self._logs[self._bronze].table, state)

    def _half(self, documents: Sequence[DamagedDocument]) -> str | None:
        """Where the note of an unfinished copy is damaged, nobody knows whether it was finished."""
        if all(document.path != UNFINISHED for document in documents):
            return None
        return (
            f"{self._layout.storage.root}: it is a copy of a savepoint, perhaps not a whole one: "
            "remove the folder and restore the savepoint into it again"
        )

    def _refusal(self, bronze: Pick, filled: Filling | None) -> str | None:
        """Why bronze cannot be read again where it has to be."""
        if self._bronze not in self._states:
            return None if bronze.stays else f"{self._bronze}: {_NOTHING_LEFT}"
        declared = self._states.keys() & self._pipeline.definitions.keys()
        upto = max(self._states[path][1].n for path in declared)
        if bronze.stays and not self._logs[self._bronze].is_cut and upto <= bronze.n:
            return None
        batches = f"batches {bronze.n + 1:,} to {upto:,}" if upto > bronze.n else "the newest batch"
        lost = f"{self._bronze}: {batches} are damaged or gone"
        if bronze.n == 0 and not connector_of(self._pipeline.source).has_known_start:
            return f"{lost}, and with them where the topic was begun; {_BACKUP}"
        if filled is not None and filled.is_needed:
            return f"{lost}, and so is the log of the files they came from; {_BACKUP}"
        state = bronze.moment.state if bronze.moment else State()
        why = self._source_holds(state.offsets, state.topics)
        return None if why is None else f"{lost}; {why}; {_BACKUP}"


def _target(pick: Pick) -> Target:
    return pick.moment.target if pick.moment and pick.n else Target()
