"""What `status` shows beside the jobs: backlog, freshness, checkpoints, and what waits for a person
or is not done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import typer
from rich.table import Table

from headgate.cli.options import command
from headgate.cli.output import console, grid
from headgate.cli.rows import cells, shown
from headgate.cli.sources import SourceLabels
from headgate.cli.undone import show_undone, undone_loads
from headgate.commands import rendered
from headgate.declaration.kinds import name_of
from headgate.declaration.quantities import plural, size_text
from headgate.errors import HeadgateError
from headgate.lake.storage.documents import encoded

if TYPE_CHECKING:
    from headgate.declaration.model import Pipeline
    from headgate.flow.gates.documents import Hold
    from headgate.history.loads.requests import LoadState
    from headgate.insight.status.checkpoints import Checkpoints
    from headgate.insight.status.freshness import Freshness
    from headgate.insight.status.set_aside import SetAside
    from headgate.insight.status.trend import Trend
    from headgate.lake.control.driver_reports import Backlog, PartitionBacklog
    from headgate.lake.storage.layout import Layout
    from headgate.supervision.job_state import JobState


SHOWN = 10


def furthest(partitions: Mapping[str, PartitionBacklog]) -> list[tuple[str, PartitionBacklog]]:
    """The partitions, those with the largest backlog first; the sort is stable."""
    return sorted(partitions.items(), key=lambda item: (-item[1].records, -item[1].seconds))


def partitions_table(partitions: Mapping[str, PartitionBacklog], title: str = "") -> Table:
    ordered = furthest(partitions)
    rows = [(name, p.records, f"{p.seconds:,.0f} s") for name, p in ordered[:SHOWN]]
    if rest := ordered[SHOWN:]:
        rows.append((f"{len(rest):,} more", sum(p.records for _, p in rest), ""))
    return grid(title, "partition", "unread:", "for:", rows=rows)


def waiting_for(backlog: Backlog) -> str | None:
    """A sentence about the partition that holds the watermark back; None for one partition."""
    if len(backlog.partitions) < 2:
        return None
    if backlog.holding is None:
        return "no partition holds the watermark: all of them are idle"
    clock = backlog.partitions[backlog.holding].clock
    if clock is None:
        return f"the watermark waits for {backlog.holding}: it has no record with a valid time yet"
    return f"the watermark waits for {backlog.holding}, at {datetime.fromisoformat(clock):%F %T}Z"


def trends_of(job: JobState) -> dict[str, Trend]:
    """The trends of the backlogs of a running job by source, without sources that have not enough
    samples."""
    from headgate.insight.status.trend import trend_of

    sources = job.sources if job.state == "running" else {}
    found = {name: trend_of(source.samples) for name, source in sources.items()}
    return {name: trend for name, trend in found.items() if trend is not None}


def describe_freshness(
    layout: Layout, declared: Pipeline, now: datetime
) -> tuple[str, dict[str, Any] | None]:
    """The freshness as text and as plain values. If a table is damaged, the text is a message, so
    that the jobs are still shown."""
    from headgate.insight.status.freshness import freshness

    try:
        fresh = freshness(layout, declared)
    except HeadgateError as error:
        return f"how fresh gold is cannot be read: {error}", None
    return freshness_in_words(fresh, now), fresh.document(now)


def freshness_in_words(fresh: Freshness, now: datetime) -> str:
    """When gold changed (per table if there are several; nothing if there is none), then of each
    source the watermark's lag and the last record; a line for each table with steps, and for those
    that wait for one of several sources."""
    from headgate.declaration.quantities import span

    def ago(at: datetime | None) -> str:
        return "not known" if at is None else f"{span(now - at)} ago"

    gold = ago(fresh.changed)
    if len(fresh.gold) > 1:
        gold += f" ({', '.join(f'{table} {ago(at)}' for table, at in fresh.gold.items())})"
    told = [f"gold changed {gold}"] if fresh.gold else []
    for name, source in fresh.sources.items():
        clock = "not known"
        if source.clock is not None:
            way = "ahead" if source.clock > now else "behind"
            clock = f"{span(abs(now - source.clock))} {way}"
        said = f"watermark {clock}", f"last record {ago(source.arrived)}"
        told += said if len(fresh.sources) == 1 else [f"{name}: {', '.join(said)}"]
    return "\n".join(["; ".join(told), *_steps_in_words(fresh, now), *_waits_in_words(fresh, now)])


def _steps_in_words(fresh: Freshness, now: datetime) -> Iterator[str]:
    """How old the results of each table with steps may be."""
    from headgate.declaration.quantities import format_step, span

    for table, each in fresh.steps.items():
        since, age = each.lacks_since, "up to date"
        if since is not None:
            age = f"up to {span(now - since)} old"
        yield f"{table}: step {format_step(each.step)}, results {age}"


def _waits_in_words(fresh: Freshness, now: datetime) -> Iterator[str]:
    """For which source tables wait that read several."""
    from headgate.declaration.quantities import span

    for each in fresh.inputs:
        tables = ", ".join(each.tables)
        if each.holds and each.clock is None:
            yield f"{tables}: nothing is final before {each.holds} has delivered"
        elif each.holds and each.behind:
            arrived = fresh.sources[each.holds].arrived
            last = "" if arrived is None else f", last record {span(now - arrived)} ago"
            behind = f"{span(each.behind)} behind in event time"
            yield f"{tables}: results wait for {each.holds}, {behind}{last}"
        if each.idle:
            idle = ", ".join(each.idle)
            yield f"{tables}: results do not wait for {idle}, which is idle"


def checkpoints_document(found: Checkpoints) -> dict[str, Any]:
    of_sources = {
        source: {
            "n": found.n[source],
            "history": [
                asdict(c) | {"committed": c.committed.isoformat(), "took": c.took.total_seconds()}
                for c in checkpoints
            ],
        }
        for source, checkpoints in found.history.items()
    }
    return {
        **SourceLabels(of_sources).facts(of_sources),
        "generation": found.generation,
        "replay": [asdict(r) for r in found.replay],
        "operations": [asdict(o) for o in found.operations],
        "windows": [
            {"table": w.table, **_times(w.span), "rows": w.rows, "bytes": w.bytes}
            for w in found.windows
        ],
    }


def _times(span: tuple[datetime, ...]) -> dict[str, str]:
    return dict(zip(("start", "end"), (time.isoformat() for time in span), strict=False))


def show_checkpoints(found: Checkpoints) -> None:
    out, now = console(), datetime.now(UTC)
    is_one = len(found.n) == 1
    for source, checkpoints in found.history.items():
        title = "checkpoints" if is_one else f"checkpoints of {source}"
        table = grid(title, "batch:", "committed", "age:", "took:", "rows:", "size:")
        for each in checkpoints:
            age = f"{(now - each.committed).total_seconds():,.0f} s"
            took = f"{each.took.total_seconds():.2f} s"
            row = (each.n, each.committed, age, took, each.rows, size_text(each.bytes))
            table.add_row(*cells(*row))
        out.print(table)
    place = " and ".join(
        f"from batch {n:,}" if is_one else f"from batch {n:,} of {source}"
        for source, n in found.n.items()
    )
    out.print(f"\nafter a crash now, {place}:", markup=False)
    for lag in found.replay:
        message = f"{lag.table} processes {plural(lag.batches, 'batch')}, {plural(lag.rows, 'row')}"
        out.print(f"  {message}", markup=False)
    if not found.replay:
        out.print("  no table has anything to do again; a batch that runs is read again")
    for operation in found.operations:
        tables = ", ".join(operation.tables)
        after = f"operation {operation.number}, after batch {operation.n:,}"
        message = f"{after}: {tables} must {operation.what}"
        out.print(f"  {message}", markup=False)
    windows = (
        (w.table, " to ".join(f"{time:%F %T}Z" for time in w.span), w.rows, size_text(w.bytes))
        for w in found.windows
    )
    out.print(grid("\nopen windows", "table", "window", "rows:", "state:", rows=windows))
    for name in sorted({name_of(w.table) for w in found.windows}):
        # The layer is included: a table's name may be a keyword of SQL, such as "order".
        line = command("query", f"SELECT * FROM gold.{name} WHERE NOT final")
        out.print(line, style="dim", markup=False, soft_wrap=True)


@dataclass(frozen=True)
class Waiting:
    aside: Sequence[SetAside]
    held: Sequence[Hold]
    refused: Mapping[str, int]
    loads: Sequence[LoadState]
    labels: SourceLabels

    def document(self) -> dict[str, Any]:
        return {
            "set_aside": {each.source: [asdict(f) for f in each.files] for each in self.aside},
            "held": [encoded(hold) for hold in self.held],
            "dead_letters": self.refused,
            "open_loads": [self.labels.fields(e) for e in self.loads if e.state != "stopped"],
            "stopped_loads": [self.labels.fields(e) for e in self.loads if e.state == "stopped"],
        }

    def show(self) -> None:
        for files in self.aside:
            _red(f"{files.source}: {files}")
            typer.echo(rendered(files.remedy))
        for hold in self.held:
            _red(f"{hold.title} is held since {hold.since:%F %T}Z: {hold.why}")
        if self.held:
            typer.echo(command("gate status"))
        for name, count in self.refused.items():
            if count:
                _red(f"dead letters of {name}, rows that its sink refuses: {count:,}")
                typer.echo(command("publication letters", name))
        show_undone(self.loads)


def waiting(layout: Layout, declared: Pipeline) -> Waiting:
    """Raises HeadgateError if a table or a document is damaged."""
    from headgate.flow.gates.documents import holds
    from headgate.flow.publish.sinks.letters import dead_letters
    from headgate.insight.status.set_aside import set_aside

    return Waiting(
        tuple(set_aside(layout, declared)),
        holds(layout, declared),
        dead_letters(declared, layout),
        undone_loads(layout, declared),
        SourceLabels(declared.sources),
    )


def _red(text: str) -> None:
    console().print(shown(text), style="red", markup=False, soft_wrap=True)
