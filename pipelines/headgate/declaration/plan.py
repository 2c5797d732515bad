"""What a pipeline would run: the output of ``headgate plan``, before anything starts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

from headgate.declaration.contracts.measure import MEASURES
from headgate.declaration.contracts.operator import gold_columns, late_columns, operator_of
from headgate.declaration.contracts.sink import Sink, sink_of
from headgate.declaration.contracts.source import CONNECTORS, connector_of
from headgate.declaration.expressions.spark import as_written
from headgate.declaration.kinds import BRONZE, GOLD, LATE, QUARANTINE, REJECTED, SILVER
from headgate.declaration.model import (
    Column,
    Derived,
    GoldTable,
    Measure,
    Pipeline,
    Publication,
    Record,
    SilverTable,
    Source,
    TimeForm,
)
from headgate.declaration.quantities import format_duration, format_step
from headgate.declaration.suites.plan import suite_lines, suite_plan
from headgate.declaration.types import STRING, TIMESTAMP, DataType


def same_ids(record: Record) -> Iterator[str]:
    """Warnings about ids with a local time: two events whose times are written alike, but an hour
    apart, have one id, and the second one is a duplicate."""
    if record.one_copy_within is None:
        return
    for path in record.event_id:
        form = _form_at(record, path)
        if form is not None and form.ambiguous != "quarantine" and is_repeated_in(form.zone):
            yield (
                f"{path} is a local time and a part of the id: when the clocks of {form.zone} are "
                "set back, two events of one local time have the same id, and the second one is a "
                "duplicate; send times with an offset, add a column to event_id, or set ambiguous: "
                "quarantine"
            )


def _form_at(record: Record, path: str) -> TimeForm | None:
    """How a local time in an id is read; None if the value is not known to be one."""
    type_, column = record.type_at(path), _column(record, path)
    form = record.times_of(column)
    if path == record.event_time.column and type_ == STRING:
        form = record.event_time.form
    elif type_ != TIMESTAMP:
        return None
    return form if form.zone else None


def _column(record: Record, path: str) -> Column:
    return next(each for each in record.schema if each.name == path.partition(".")[0])


@lru_cache(maxsize=64)
def is_repeated_in(zone: str | None) -> bool:
    """Whether the clocks of a zone were set, or will be, since 1970."""
    there = ZoneInfo(zone or "UTC")
    months = (datetime(year, month, 1, tzinfo=UTC) for year in _YEARS for month in range(1, 13))
    return len({month.astimezone(there).utcoffset() for month in months}) > 1


_YEARS = range(1970, 2038)


def plan(pipeline: Pipeline) -> dict[str, Any]:
    """A document of plain values: sources, tables with schemas, windows, state, what is
    published, jobs."""
    return {
        "pipeline": pipeline.name,
        "file": str(pipeline.file),
        "digest": pipeline.digest,
        "jobs": _jobs(pipeline),
        "sources": {name: _source(s) for name, s in pipeline.sources.items()},
        "bronze": {name: _bronze(name) for name in pipeline.sources},
        "silver": {name: _silver(t, pipeline) for name, t in pipeline.silver.items()},
        "quarantine": {name: _quarantine(s) for name, s in pipeline.sources.items()},
        "gold": {name: _gold(t, pipeline) for name, t in pipeline.gold.items()},
        "publish": {name: _publication(p) for name, p in pipeline.publish.items()},
    }


def _jobs(pipeline: Pipeline) -> dict[str, Any]:
    if pipeline.jobs == "fused":
        return {"mode": "fused", "processes": [["bronze", "silver", "gold"]]}
    return {"mode": "per_layer", "processes": [["bronze"], ["silver"], ["gold"]]}


def _source(source: Source) -> dict[str, Any]:
    record = source.record
    time = record.event_time
    described: dict[str, Any] = {
        source.kind: connector_of(source).plan(source.reads),
        **_expected(source),
        "event_id": list(record.event_id) or "the position in the source",
        "event_time": {"column": time.column, **_times(time.form)},
        "duplicates": None,
        "future_after": format_duration(record.future_after),
        "unknown_fields": record.unknown_fields,
        "schema": _schema(record.types),
        "fields": {c.name: c.field for c in record.schema if c.field is not None},
        "times": {c.name: _times(c.times) for c in record.schema if c.times != TimeForm()},
        "warnings": [*same_ids(record)],
    }
    if record.duplicates:
        described["duplicates"] = {
            "within": format_duration(record.duplicates.within),
            "differing": record.duplicates.differing,
        }
    return described


def _times(form: TimeForm) -> dict[str, str]:
    if form.zone is None:
        return {"format": form.format}
    return {"format": form.format, "zone": form.zone, "ambiguous": form.ambiguous}


def _expected(source: Source) -> dict[str, str]:
    expected = {
        "expect_input_every": source.expect_input_every,
        "expect_event_time_within": source.expect_event_time_within,
        "idle_after": source.idle_after,
    }
    return {name: format_duration(span) for name, span in expected.items() if span is not None}


def _bronze(source: str) -> dict[str, Any]:
    holds = (
        "every record as it was read, with its position, event time, watermark at arrival and "
        "duplicate flag"
    )
    return {"table": BRONZE.path(source), "holds": holds}


def _quarantine(source: Source) -> dict[str, Any]:
    return {"table": QUARANTINE.path(source.name), "reasons": _reasons(source)}


def _reasons(source: Source) -> list[str]:
    record = source.record
    has_tombstones = connector_of(source).has_tombstones and not record.ignores_tombstones
    reasons = ["tombstone"] if has_tombstones else []
    reasons += ["unparsable", "not_an_object"]
    reasons += ["missing_id"] if record.event_id else []
    reasons += ["missing_time", "unparsable_time", "future"]
    reasons.append("wrong_type")
    if record.unknown_fields == "quarantine":
        reasons.append("unknown_field")
    if record.quarantines_differing:
        reasons.append("differing_duplicate")
    return reasons


def _silver(table: SilverTable, pipeline: Pipeline) -> dict[str, Any]:
    record = pipeline.sources[table.source].record
    return {
        "table": SILVER.path(table.name),
        "from": table.source,
        "explode": table.explode and vars(table.explode),
        "columns": _expressions(table.columns),
        "drop": list(table.drop),
        "where": table.where,
        **suite_plan(table.suite, rejected=REJECTED.path(table.name)),
        "schema": _schema(table.row(record)),
    }


def _gold(table: GoldTable, pipeline: Pipeline) -> dict[str, Any]:
    kind, above = operator_of(table), {name: pipeline.silver[name] for name in table.inputs}
    silver = {n: each.row(pipeline.sources[each.source].record) for n, each in above.items()}
    late = {
        "table": LATE.path(table.name),
        "schema": _schema(late_columns(table, silver)),
        "replay": table.late
        and {
            "every": format_duration(table.late.replay_every),
            "within": format_duration(table.late.within),
        },
    }
    has_lateness = kind.ends and kind.is_timed and table.time == "event"
    return {
        "table": GOLD.path(table.name),
        "from": table.reads or ", ".join(table.inputs),
        **kind.plan(table.operator),
        "where": table.where,
        "by": _expressions(table.by),
        "measures": {measure.name: _measure(measure) for measure in table.measures},
        "columns": _expressions(table.columns),
        "time": table.time,
        "allowed_lateness": format_duration(table.allowed_lateness) if has_lateness else None,
        "salt": table.salt,
        "step": table.step and format_step(table.step),
        **({"live": True} if table.live else {}),
        **suite_plan(table.suite),
        "schema": _schema(gold_columns(table)),
        "late": None if table.is_rollup else late,
    }


def _schema(columns: Mapping[str, DataType]) -> dict[str, str]:
    return {name: str(type_) for name, type_ in columns.items()}


def _measure(measure: Measure) -> dict[str, Any]:
    return {
        "function": measure.function,
        "arguments": [argument.text for argument in measure.arguments],
        "filter": measure.filter,
        "type": str(measure.type),
        "state": MEASURES[measure.function].keeps,
    }


def _expressions(derived: tuple[Derived, ...]) -> dict[str, Any]:
    return {item.name: {"expression": item.expression, "type": str(item.type)} for item in derived}


def _publication(publication: Publication) -> dict[str, Any]:
    return {
        "from": f"{publication.layer}.{publication.table}",
        "when": publication.when,
        publication.kind: sink_of(publication).plan(publication.sink),
    }


def describe(pipeline: Pipeline) -> str:
    """The plan as text for a person: one block per part, one line per table, column and measure."""
    return "\n".join(_lines(plan(pipeline), pipeline))


def _lines(document: Mapping[str, Any], pipeline: Pipeline) -> list[str]:
    jobs = document["jobs"]
    processes = ", ".join(" + ".join(layers) for layers in jobs["processes"])
    many = "one process" if len(jobs["processes"]) == 1 else "three processes"
    lines = [f"pipeline {document['pipeline']} ({document['file']})"]
    lines.append(f"  jobs     {jobs['mode']}: {many}, {processes}")
    lines.append(f"  digest   {document['digest'][:16]}")
    for name, source in document["sources"].items():
        lines += ["", f"source {name}", *_source_lines(source)]
    for bronze in document["bronze"].values():
        lines += ["", bronze["table"], f"  {bronze['holds']}"]
    for silver in document["silver"].values():
        lines += ["", f"{silver['table']} from {silver['from']}", *_explode_lines(silver)]
        lines += _table_lines(silver)
        lines += suite_lines(silver)
    several = len(pipeline.sources) > 1
    for quarantine in document["quarantine"].values():
        title = quarantine["table"] if several else QUARANTINE.name
        lines += ["", title, f"  reasons  {', '.join(quarantine['reasons'])}"]
    for name, gold in document["gold"].items():
        lines += ["", f"{gold['table']} from {gold['from']}"]
        lines += _gold_lines(gold, pipeline.gold[name])
        lines += _table_lines(gold)
        lines += suite_lines(gold)
        if gold["late"]:
            lines.append(f"  late     {gold['late']['table']}")
    for name, publication in document["publish"].items():
        lines += [
            "",
            f"publish {name} from {publication['from']}",
        ]
        lines += _publication_lines(publication, sink_of(pipeline.publish[name]))
    return lines


def _explode_lines(silver: Mapping[str, Any]) -> list[str]:
    if (explode := silver["explode"]) is None:
        return []
    empty = {"drop": "no row", "keep": "one row without an item"}[explode["empty"]]
    what = f"{explode['name']} is each item of {explode['array']}"
    return [f"  explode  {what}; a record without items: {empty}"]


def _source_lines(source: Mapping[str, Any]) -> list[str]:
    duplicates, ids = source["duplicates"], source["event_id"]
    same = "duplicates are not detected"
    if duplicates:
        same = f"within {duplicates['within']}, differing: {duplicates['differing']}"
    kind = next(name for name in CONNECTORS.names() if name in source)
    return [
        *CONNECTORS[kind].lines(source[kind]),
        f"  id       {ids if isinstance(ids, str) else ', '.join(ids)}",
        f"  time     {source['event_time']['column']} ({_form(source['event_time'])})",
        *(f"  time     {name} ({_form(times)})" for name, times in source["times"].items()),
        *(f"  field    {name} is {field!r}" for name, field in source["fields"].items()),
        f"  same     {same}",
        f"  future   more than {source['future_after']} ahead",
        f"  unknown  {source['unknown_fields']}",
        *_expected_lines(source),
        *(f"  warning  {warning}" for warning in source["warnings"]),
    ]


_TWICE = {
    "earlier": "the earlier of two instants of a local time",
    "later": "the later of two instants of a local time",
    "quarantine": "a local time of two instants goes to quarantine",
}


def _form(times: Mapping[str, str]) -> str:
    zone = times.get("zone")
    return f"{times['format']}, {zone}: {_TWICE[times['ambiguous']]}" if zone else times["format"]


def _expected_lines(source: Mapping[str, Any]) -> list[str]:
    every, within = (source.get(key) for key in ("expect_input_every", "expect_event_time_within"))
    idle = source.get("idle_after")
    waits = [f"  idle     after {idle}; tables that read several sources go on"] if idle else []
    told = [f"input every {every}"] if every else []
    told += [f"event time within {within} of now"] if within else []
    return [*([f"  expect   {', '.join(told)}"] if told else []), *waits]


def _gold_lines(gold: Mapping[str, Any], table: GoldTable) -> list[str]:
    kind = operator_of(table)
    label, operator = kind.summary(table.operator)
    ends, lateness = kind.ends, f"{gold['allowed_lateness']} allowed lateness"
    lateness = lateness if gold["allowed_lateness"] else "nothing is late"
    lateness = f"by arrival: {lateness}" if table.time == "arrival" else lateness
    lines = [f"  {label:<8} {operator}, {lateness if ends else 'never final'}"]
    lines += [f"  {label:<8} {line}" for label, line in kind.details(table.operator)]
    if not kind.appends:
        alone = f"nothing: one row{' per window' if ends else ''}"
        lines.append(f"  by       {', '.join(gold['by']) or alone}")
    for name, measure in gold["measures"].items():
        arguments = map(as_written, measure["arguments"])
        call = f"{measure['function']}({', '.join(arguments) or '*'})"
        call += f" filter (where {as_written(measure['filter'])})" if measure["filter"] else ""
        lines.append(f"  measure  {name} = {call}; keeps {measure['state']}")
    if gold["late"] and (replay := gold["late"]["replay"]):
        every, within = replay["every"], replay["within"]
        lines.append(f"  late     replayed every {every}, within {within} of the watermark")
    if gold["salt"]:
        lines.append(f"  salt     {gold['salt']} parts of each key in the first step")
    if gold["step"]:
        lines.append(f"  step     {gold['step']}")
    if gold.get("live"):
        lines.append("  live     each step shows the results that are not final, too")
    return lines


def _table_lines(table: Mapping[str, Any]) -> list[str]:
    lines = [f"  where    {as_written(table['where'])}"] if table["where"] else []
    columns = table["columns"].items()
    lines += [f"  column   {name} = {as_written(column['expression'])}" for name, column in columns]
    width = max(map(len, table["schema"]))
    return lines + [f"    {name:<{width}}  {type_}" for name, type_ in table["schema"].items()]


def _publication_lines(publication: Mapping[str, Any], kind: Sink[Any]) -> list[str]:
    when = publication["when"]
    rows = {"final": "of final windows", "update": "of each update of a window"}.get(when, "all")
    where, *more = kind.lines(publication[kind.key.name])
    return [where, f"  rows     {rows}", *more]
