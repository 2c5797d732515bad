"""The events of an hour or a backfill: those of a run of the pipeline, with a child run for each of
its tables."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from typing import TYPE_CHECKING

import pyarrow.dataset as ds
from openlineage.client.event_v2 import (
    InputDataset,
    Job,
    OutputDataset,
    Run,
    RunEvent,
    RunState,
)
from openlineage.client.facet_v2 import (
    JobFacet,
    RunFacet,
    job_type_job,
    nominal_time_run,
    parent_run,
    processing_engine_run,
)

from headgate.declaration.contracts.operator import begin_of
from headgate.declaration.graph import Node, graph_of
from headgate.declaration.kinds import BRONZE, GOLD, PUBLICATION, SILVER, Kind, name_of
from headgate.declaration.model import Pipeline
from headgate.insight.lineage import datasets
from headgate.insight.lineage.datasets import RuleOutcome, rule_outcomes
from headgate.insight.lineage.hours import Range
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.table import Table

if TYPE_CHECKING:
    from headgate.history.backfill.report import BackfillReport, TableReport

PRODUCER = f"pkg:pypi/headgate@{version('headgate')}"


@dataclass(frozen=True)
class Nested:
    """A job and its run, which is the parent of the runs below it."""

    job: Job
    run: Run


@dataclass(frozen=True)
class About:
    """The jobs of a pipeline in a namespace. ``now`` is the time of the events."""

    declared: Pipeline
    layout: Layout
    namespace: str
    now: datetime

    def of_hour(self, source: str, hour: Range) -> Iterator[RunEvent]:
        """An hour that is final in all gold tables of a source. An event that is sent again has the
        same run id.

        Raises HeadgateError if a table is damaged.
        """
        what = "hour" if len(self.declared.sources) == 1 else f"hour of {source}"
        above = self._nested(self.declared.name, "STREAM", hour, what)
        yield self._event(RunState.START, above)
        for node in self._built(source, BRONZE, SILVER, GOLD):
            below = self._below(above, node, "TABLE", hour, what)
            yield self._event(RunState.START, below)
            yield self._event(
                RunState.COMPLETE,
                below,
                datasets.inputs(self.declared, self.layout, node),
                datasets.outputs(self.declared, self.layout, node, self._rows(node, hour)),
            )
            if found := rule_outcomes(self.declared, self.layout, node):
                rules = self._below(below, node, "RULES", hour, what)
                yield self._event(RunState.START, rules)
                validated = datasets.validated(self.layout, node, found)
                yield self._event(RunState.COMPLETE, rules, [validated])
        for node in self._built(source, PUBLICATION):
            below = self._below(above, node, "PUBLICATION", hour, what)
            yield self._event(RunState.START, below)
            inputs = datasets.inputs(self.declared, self.layout, node)
            sent = datasets.sent(self.declared, node)
            yield self._event(RunState.COMPLETE, below, inputs, sent)
        yield self._event(RunState.COMPLETE, above)

    def of_backfill(self, report: BackfillReport) -> Iterator[RunEvent]:
        """A backfill. Its rule ``equal_to_bronze`` is met if no row of the range differs. The rule
        has no result for a table without a final window in the range. A table is an output if rows
        of it were published."""
        of, name = (report.begin, report.end or self.now), f"{self.declared.name}.backfill"
        above = self._nested(name, "BACKFILL", of, report.id)
        yield self._event(RunState.START, above)
        for node in graph_of(self.declared).of(GOLD):
            for table in (each for each in report.tables if name_of(each.table) == node.name):
                below = self._below(above, node, "BACKFILL", of, report.id)
                yield self._event(RunState.START, below)
                inputs = datasets.inputs(self.declared, self.layout, node)
                if table.result != "empty":
                    inputs.append(datasets.validated(self.layout, node, [_parity(table)]))
                is_published = table.table in report.taken_over
                outputs = datasets.outputs(self.declared, self.layout, node, table.differing)
                yield self._event(RunState.COMPLETE, below, inputs, outputs[:1] * is_published)
        yield self._event(RunState.COMPLETE, above)

    def _built(self, source: str, *kinds: Kind) -> Iterator[Node]:
        """The tables and publications of these kinds that are built from a source."""
        graph = graph_of(self.declared)
        return (each for each in graph.of(*kinds) if graph.sources_of(each.path)[0] == source)

    def _rows(self, node: Node, hour: Range) -> int | None:
        """The rows of gold whose results begin in the hour; None for another table, one without
        such times, or one that does not exist."""
        begin = begin_of(self.declared.gold[node.name]) if node.kind == GOLD else ()
        table = Table(self.layout.storage, node.path, pipeline=self.declared.name)
        if not begin or not table.exists:
            return None
        column = ds.field(begin[0])
        is_in = (column >= hour[0]) & (column < hour[1])
        return int(table.handle.to_pyarrow_dataset().count_rows(filter=is_in))

    def _below(self, above: Nested, node: Node, type_: str, of: Range, what: str) -> Nested:
        name = f"{above.job.name}.{node.kind.name}.{node.name}"
        if type_ == "RULES":
            name = f"{above.job.name}.rules"
        parent = parent_run.ParentRunFacet(
            parent_run.Run(above.run.runId), parent_run.Job(self.namespace, above.job.name)
        )
        return self._nested(name, type_, of, what, parent=parent)

    def _nested(self, name: str, type_: str, of: Range, what: str, **facets: RunFacet) -> Nested:
        """``what`` tells the runs of a job over the same range apart."""
        begin, end = (time.isoformat() for time in of)
        id_ = uuid.uuid5(uuid.NAMESPACE_URL, f"{self.namespace}/{name}/{what}/{begin}/{end}")
        about: dict[str, RunFacet] = {
            "nominalTime": nominal_time_run.NominalTimeRunFacet(begin, end),
            "processing_engine": processing_engine_run.ProcessingEngineRunFacet(
                version("headgate"), "headgate"
            ),
        }
        of_job: dict[str, JobFacet] = {
            "jobType": job_type_job.JobTypeJobFacet(
                "BATCH" if type_ == "BACKFILL" else "STREAMING", "HEADGATE", type_
            )
        }
        return Nested(Job(self.namespace, name, of_job), Run(str(id_), about | facets))

    def _event(
        self,
        state: RunState,
        of: Nested,
        inputs: Sequence[InputDataset] = (),
        outputs: Sequence[OutputDataset] = (),
    ) -> RunEvent:
        return RunEvent(
            eventTime=self.now.isoformat(),
            producer=PRODUCER,
            run=of.run,
            job=of.job,
            eventType=state,
            inputs=[*inputs],
            outputs=[*outputs],
        )


def _parity(table: TableReport) -> RuleOutcome:
    description = f"{table.equal} rows equal, {table.differing} differ"
    return RuleOutcome(
        "equal_to_bronze", table.result == "equal", holds=False, description=description
    )
