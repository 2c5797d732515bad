"""Health checks of a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import takewhile

from headgate.commands import pipeline_command
from headgate.declaration.kinds import GOLD, SILVER
from headgate.declaration.model import Pipeline
from headgate.declaration.quantities import format_duration, is_above, span
from headgate.errors import HeadgateError
from headgate.flow.gates.documents import holds
from headgate.flow.publish.circuit_breaker import Breaker
from headgate.flow.publish.sinks.letters import dead_letters
from headgate.insight.ledger import balance, deployed
from headgate.insight.status.freshness import source_freshness
from headgate.insight.status.limits import Check, Limits
from headgate.insight.status.set_aside import set_aside
from headgate.lake.control.driver_reports import Failure, SourceProgress, about_source, last_failure
from headgate.lake.control.driver_requests import stop_asked
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.history import lineage, sum_of_counts
from headgate.lake.tables.payloads.silver import records_in
from headgate.lake.tables.state import Counts, commit_time
from headgate.lake.tables.table import Table
from headgate.supervision.job_state import Ended, JobState, how_ended
from headgate.supervision.supervisor import condition_of


@dataclass(frozen=True)
class HealthContext:
    """A pipeline and the state of its jobs at a moment."""

    declared: Pipeline
    layout: Layout
    jobs: Sequence[JobState]
    now: datetime

    @property
    def is_meant_to_run(self) -> bool:
        """The pipeline has run, has not finished (``run --once``), and no person has stopped or
        paused it."""
        if self._condition in ("absent", "resting", "paused"):
            return False
        return self.ended not in ("finished", "stopped")

    @property
    def ended(self) -> Ended | None:
        return how_ended(self.jobs, stop_asked(self.layout), self.failure)

    @property
    def is_running(self) -> bool:
        """Its tables are open, and it processes input."""
        return self._condition == "running"

    @property
    def read_sources(self) -> dict[str, tuple[JobState, SourceProgress]]:
        """The sources that a running job reads now, with this job and what it reports of them."""
        readers = [job for job in self.jobs if "bronze" in job.layers and self.is_running]
        return {
            name: (job, source)
            for job in readers
            for name, source in job.sources.items()
            if source.is_readable and name in self.declared.sources
        }

    @property
    def is_down(self) -> bool:
        return self._condition in ("dead", "ended", "failed")

    @property
    def failure(self) -> Failure | None:
        return last_failure(self.layout)

    @property
    def _condition(self) -> str:
        return condition_of(self.jobs, stop_asked(self.layout), self.failure)

    def recently(self, path: str, within: timedelta) -> Counts:
        """The sum of the counts in a table's commits within a time; empty if there is no table."""
        table = Table(self.layout.storage, path, pipeline=self.declared.name)
        if not table.exists:
            return {}
        since = commit_time(self.now - within)
        return sum_of_counts(takewhile(lambda commit: commit.state.at >= since, lineage(table)))


def violations(check: Check, context: HealthContext, limits: Limits) -> tuple[str, ...]:
    """The violations of one check as text. Raises HeadgateError if the check cannot be made."""
    return tuple(_CHECKS[check](context, limits))


def results(
    checks: Sequence[Check], context: HealthContext, limits: Limits
) -> Mapping[Check, tuple[str, ...]]:
    """The violations by check. A check that cannot be made counts as a violation; the others are
    still made."""
    found: dict[Check, tuple[str, ...]] = {}
    for check in checks:
        try:
            found[check] = violations(check, context, limits)
        except (HeadgateError, OSError) as error:
            found[check] = (f"cannot be checked: {error}",)
    return found


def _freshness(context: HealthContext, limits: Limits) -> Iterator[str]:
    if not context.is_meant_to_run:
        return
    if context.is_down:
        why = f": {context.failure.reason}" if context.failure else ""
        if context.ended == "terminated":
            why = ": a signal has ended it, and nobody has asked it to stop"
        yield f"no driver runs{why}"
    for job in context.jobs:
        age = context.now - (job.updated or job.since)
        if age > limits.freshness:
            yield (
                f"{job.job}: has neither completed a batch nor been up to date with its input for "
                f"{span(age)}"
            )


def _outage(context: HealthContext, limits: Limits) -> Iterator[str]:
    for job in context.jobs:
        outages = [*((each, s.outage) for each, s in job.sources.items()), (None, job.load_outage)]
        for name, outage in outages:
            if job.is_alive and outage and outage.lasts(context.now) > limits.outage:
                yield f"{job.job}: {_about(context, name, outage.said(context.now))}"


def _source(context: HealthContext, limits: Limits) -> Iterator[str]:
    """The sources that wait for a person, while the driver goes on with others."""
    for job in context.jobs:
        for name, source in job.sources.items():
            if job.is_alive and (failure := source.failure) is not None:
                age = span(context.now - failure.since)
                said = _about(context, name, f"{failure.reason}, for {age}")
                yield f"{job.job}: {said}\n{failure.remedy}"


def _backlog(context: HealthContext, limits: Limits) -> Iterator[str]:
    if not context.is_meant_to_run:
        return
    for job in context.jobs:
        for name, source in job.sources.items():
            if (behind := source.backlog) is None:
                continue
            age, said = timedelta(seconds=behind.seconds), f"{behind.number} wait"
            if behind.unit == "files" and behind.count > limits.files:
                said = f"{said}, limit {limits.files:,}"
            elif age > limits.backlog:
                said = f"{said}, the oldest for {span(age)}"
            else:
                continue
            yield f"{job.job}: {_about(context, name, said)}"


def _input(context: HealthContext, limits: Limits) -> Iterator[str]:
    """Unread records count as input. The check applies only while a driver reads the source, so a
    stop, a pause, a crash or an outage is not reported as missing input."""
    for name, (reader, progress) in context.read_sources.items():
        expected, behind = context.declared.sources[name].expect_input_every, progress.backlog
        if expected is None or behind is None or behind.count:
            continue
        arrived = source_freshness(context.layout, name).arrived
        silence = context.now - (arrived or reader.since)
        if silence <= expected:
            continue
        last = f"the last came at {arrived:%F %T}Z" if arrived else "none since the driver began"
        every = format_duration(expected)
        said = f"no record for {span(silence)}, expected every {every}: {last}"
        yield _about(context, name, said)


def _event_time(context: HealthContext, limits: Limits) -> Iterator[str]:
    for name, (_, progress) in context.read_sources.items():
        expected = context.declared.sources[name].expect_event_time_within
        clock = source_freshness(context.layout, name).clock
        if expected is not None and clock is not None and context.now - clock > expected:
            behind = (
                f"{span(context.now - clock)} behind, expected within {format_duration(expected)}"
            )
            unread = progress.backlog is not None and progress.backlog.count
            said = f"the watermark is {behind}" + ("; input is unread" if unread else "")
            yield _about(context, name, said)


def _late(context: HealthContext, limits: Limits) -> Iterator[str]:
    for name in context.declared.gold:
        counted = context.recently(GOLD.path(name), limits.recent)
        pairs = counted.get("late", 0) + counted.get("folded", 0)
        yield from _share(name, counted, "late", pairs, limits.late)


def _quarantine(context: HealthContext, limits: Limits) -> Iterator[str]:
    for name in context.declared.silver:
        counted = context.recently(SILVER.path(name), limits.recent)
        records = records_in(counted)
        yield from _share(name, counted, "quarantined", records, limits.quarantined)
        items = counted.get("items", records)
        yield from _share(name, counted, "rejected", items, limits.quarantined)


def _set_aside(context: HealthContext, limits: Limits) -> Iterator[str]:
    for each in set_aside(context.layout, context.declared):
        yield f"{each.source}: {each}\n{each.remedy}"


def _gate(context: HealthContext, limits: Limits) -> Iterator[str]:
    for hold in holds(context.layout, context.declared):
        yield (
            f"{hold.title} is held at batch {hold.n:,} for "
            f"{span(context.now - hold.since)}: {hold.why}; {pipeline_command('gate status')}"
        )


def _breaker(context: HealthContext, limits: Limits) -> Iterator[str]:
    if context.declared.publish and (why := Breaker(context.layout, context.declared).why_open()):
        yield f"publications pause: {why}; {pipeline_command('quarantine list')}"


def _publications(context: HealthContext, limits: Limits) -> Iterator[str]:
    """The sinks that take no rows, as a running driver reports, and the rows that sinks refused."""
    for job in context.jobs:
        for name, stuck in (job.stuck or {}).items() if job.is_alive else ():
            age = context.now - datetime.fromisoformat(stuck["since"])
            if age <= limits.publication:
                continue
            yield f"publish {name}: nothing is published for {span(age)}: {stuck['why']}"
    for name, count in dead_letters(context.declared, context.layout).items():
        if count:
            look = pipeline_command("publication letters", name)
            yield f"publish {name}: dead letters, rows that its sink refuses: {count:,}; {look}"


def _about(context: HealthContext, source: str | None, message: str) -> str:
    """The message, with the name of its source if the pipeline has several."""
    return message if source is None else about_source(source, message, context.declared.sources)


def _share(table: str, counted: Counts, what: str, total: int, limit: float) -> Iterator[str]:
    found = counted.get(what, 0)
    if total and is_above(found, limit, total):
        yield f"{table}: {found:,} of {total:,} are {what} ({found / total:.1%}, limit {limit:.1%})"


def _ledger(context: HealthContext, limits: Limits) -> Iterator[str]:
    """Tables that are not deployed yet are left out."""
    if context.jobs:
        of = deployed(context.layout, context.declared)
        yield from map(str, balance(context.layout, of).differences)


_CHECKS: Mapping[Check, Callable[[HealthContext, Limits], Iterator[str]]] = {
    "freshness": _freshness,
    "outage": _outage,
    "source": _source,
    "backlog": _backlog,
    "input": _input,
    "event_time": _event_time,
    "late": _late,
    "quarantine": _quarantine,
    "set_aside": _set_aside,
    "gate": _gate,
    "breaker": _breaker,
    "publications": _publications,
    "ledger": _ledger,
}
