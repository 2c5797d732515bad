"""The `sources` part of a declaration: what names and formats mean together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from headgate.declaration.contracts.source import CONNECTORS
from headgate.declaration.errors import Invalid
from headgate.declaration.expressions.inference import Scope
from headgate.declaration.expressions.literals import check_zone
from headgate.declaration.expressions.patterns import check_read_pattern, has_offset
from headgate.declaration.expressions.typed import shown, with_article
from headgate.declaration.model import Column, Duplicates, EventTime, Record, Source, TimeForm
from headgate.declaration.names import RESCUED, column_like, in_other_case, nearest
from headgate.declaration.reading.checked import (
    Field,
    Partial,
    ProblemReport,
    Section,
    built,
    partial,
)
from headgate.declaration.types import (
    BIGINT,
    DOUBLE,
    FLOAT,
    INT,
    STRING,
    TIMESTAMP,
    DataType,
    Struct,
    is_nested,
    parts,
)

_KEYS = ("format", "zone", "ambiguous")
_NAMED: dict[str, tuple[DataType, ...]] = {
    "iso": (TIMESTAMP, STRING),
    "epoch_seconds": (BIGINT, INT, TIMESTAMP),
    "epoch_millis": (BIGINT, TIMESTAMP),
    "epoch_micros": (BIGINT, TIMESTAMP),
    "epoch_nanos": (BIGINT, TIMESTAMP),
}
_BY_PATTERN = (STRING, TIMESTAMP)


def build_times(column: Section, type_: DataType | None, report: ProblemReport) -> TimeForm:
    """The form of the timestamps in a column, whose keys are checked."""
    if type_ is not None and TIMESTAMP not in parts(type_):
        for key in column.values(*_KEYS):
            message = f"is for timestamps, and the column is {with_article(type_)}"
            report.at(column.fields[key], f"{message}; remove {key}")
        return TimeForm()
    _check_form(column, report)
    return TimeForm(**column.values(*_KEYS))


def build_event_time(
    section: Section, type_: DataType | None, column: Section | None, report: ProblemReport
) -> EventTime | None:
    """``type_`` is that of the value at the path ``column``, None if it is not known. ``column`` is
    the section of the column in `schema`, which may have keys of its own."""
    given, path = _check_form(section, report), section.text("column")
    if path is None:
        return None
    if type_ == TIMESTAMP and column is not None:
        for key in section.values(*_KEYS):
            if "." in path:
                message = f"belongs to the column {path.partition('.')[0]!r}: write it in schema"
                report.at(section.fields[key], message)
            elif column.values(*_KEYS):
                message = f"is a part of the column {path!r} in schema, too; remove one of them"
                report.at(section.fields[key], message)
        return EventTime(path, **{**column.values(*_KEYS), **section.values(*_KEYS)})
    wanted = _NAMED.get(given or "", _BY_PATTERN)
    if given and type_ is not None and type_ not in wanted:
        what, reads = with_article(type_), with_article(wanted[0])
        message = f"{path!r} is {what}, and the format {given} reads {reads}; change one of them"
        report.at(section.fields["column"], message)
    return EventTime(path, **section.values(*_KEYS))


def _check_form(section: Section, report: ProblemReport) -> str | None:
    """The format of times, or None if it is wrong."""
    zone, ambiguous = section.get("zone"), section.get("ambiguous")
    format_ = _format(section, zone, report)
    if zone:
        _check_zone(zone, format_, report)
    elif ambiguous and not section.reported("zone"):
        report.at(ambiguous, "has no effect without zone; remove ambiguous, or add zone")
    return format_


def _format(section: Section, zone: Field | None, report: ProblemReport) -> str | None:
    at = section.get("format")
    if at is None or at.text in _NAMED:
        return at.text if at else None if section.reported("format") else TimeForm.format
    try:
        _check_pattern(at.text, zone, needs_zone=not section.reported("zone"))
    except Invalid as error:
        report.invalid(at, error)
        return None
    return at.text


def _check_pattern(pattern: str, zone: Field | None, *, needs_zone: bool) -> None:
    guess = nearest(pattern, _NAMED)
    try:
        check_read_pattern(pattern)
    except Invalid as error:
        names = ", ".join(_NAMED)
        raise Invalid(f"{error.message}; a format is {names} or a date pattern", guess) from None
    if has_offset(pattern) and zone:
        raise Invalid(f"the pattern {pattern!r} reads an offset, so a zone cannot apply")
    if not has_offset(pattern) and not zone and needs_zone:
        raise Invalid(
            f"the pattern {pattern!r} reads no offset; add the key zone, such as zone: UTC"
        )


def _check_zone(zone: Field, format_: str | None, report: ProblemReport) -> None:
    if format_ in _NAMED and format_ != "iso":
        report.at(zone, f"has no effect: {format_} counts from 1970 in UTC; remove zone")
        return
    try:
        check_zone(zone.text)
    except Invalid as error:
        report.invalid(zone, error)


def build_source(
    section: Section, name: str, report: ProblemReport, project: Path, *, is_only: bool
) -> Source | None:
    """The source, or None after reporting what is wrong with it."""
    given = {kind: of for kind in CONNECTORS.names() if (of := section.section(kind))}
    made = {kind: CONNECTORS[kind].build(of, report, project) for kind, of in given.items()}
    record = _record(section.section("record"), report)
    read = [(kind, reads) for kind, reads in made.items() if reads is not None]
    if record is None or not read:
        return None
    kind, reads = read[0]
    if CONNECTORS[kind].format(reads) == "csv":
        _check_flat(record, section, report)
    record = replace(record, ignores_tombstones=CONNECTORS[kind].ignores_tombstones(reads))
    expected = section.values("expect_input_every", "expect_event_time_within", "idle_after")
    reads = CONNECTORS[kind].with_record(reads, record)
    return Source(name, record, kind, reads, is_only, **expected)


def _check_flat(record: Record, section: Section, report: ProblemReport) -> None:
    """Reports fields of nested types: the fields of a line of CSV are texts, which have no
    parts."""
    schema = section.section("record")
    fields = schema.entries("schema") if schema else {}
    for column in record.schema:
        if is_nested(column.type):
            at = fields[column.name]
            report.at(at, f"the format csv has no {shown(column.type)}; use json")


class SourceColumns(NamedTuple):
    """What silver tables can use of a source: the declared ``fields`` of its record, with None as
    the type of one that is wrong; the columns that Headgate has ``added``; and the name of the
    field that event times are read from, None if it is not known."""

    fields: Scope
    added: Scope
    time: str | None

    @classmethod
    def of(cls, source: Section) -> SourceColumns:
        record = source.section("record")
        if record is None:
            return UNKNOWN
        rescues = record.text("unknown_fields") == "rescue" or record.reported("unknown_fields")
        event_time = record.section("event_time")
        time = event_time.text("column") if event_time else None
        return cls(_types(record), {RESCUED: STRING} if rescues else {}, time)


UNKNOWN = SourceColumns(Partial(), {}, None)


def _types(record: Section) -> Scope:
    types = {name: column.values("type").get("type") for name, column in _columns(record).items()}
    return partial(types, missing=record.reported("schema"))


def _columns(record: Section) -> dict[str, Section]:
    return {name: Section.of(field) for name, field in record.entries("schema").items()}


def _record(section: Section | None, report: ProblemReport) -> Record | None:
    if section is None:
        return None
    declared = _columns(section)
    _check_cases(declared, report)
    _check_fields(declared, report)
    types = _types(section)
    columns = tuple(
        column
        for name, type_ in types.items()
        if (column := _column(name, type_, declared, report)) is not None
    )
    event_id = _event_id(section.get("event_id"), types, report)
    event_time = _event_time(section.section("event_time"), types, declared, report)
    duplicates = section.section("duplicates")
    if duplicates and section.get("event_id") is None and not section.reported("event_id"):
        report.at(duplicates, "needs event_id: duplicates share their id")
    if event_time is None or not columns:
        return None
    columns = tuple(_without_times(each, event_time) for each in columns)
    return Record(
        event_id=event_id,
        event_time=event_time,
        schema=columns,
        duplicates=built(Duplicates, duplicates),
        **section.values("future_after", "unknown_fields"),
    )


def _column(
    name: str, type_: DataType | None, schema: Mapping[str, Section], report: ProblemReport
) -> Column | None:
    section = schema[name]
    times = build_times(section, type_, report)
    if type_ is None:
        return None
    field = section.text("field")
    return Column(name, type_, None if field == name else field, times)


def _without_times(column: Column, event_time: EventTime) -> Column:
    """The form of the event time is a part of that, wherever it is written."""
    is_time = column.name == event_time.column and column.type == TIMESTAMP
    return replace(column, times=TimeForm()) if is_time else column


def _event_time(
    section: Section | None, types: Scope, schema: Mapping[str, Section], report: ProblemReport
) -> EventTime | None:
    if section is None:
        return None
    at = section.get("column")
    type_ = type_at(at, types, report) if at else None
    column = schema.get(at.text.partition(".")[0]) if at else None
    return build_event_time(section, type_, column, report)


def _check_cases(schema: Mapping[str, Section], report: ProblemReport) -> None:
    above: list[str] = []
    for name, column in schema.items():
        if (twin := in_other_case(name, above)) is not None:
            report.at(column, f"differs only in case from {twin!r}, and a table cannot hold both")
        above.append(name)


def _check_fields(schema: Mapping[str, Section], report: ProblemReport) -> None:
    """Reports a second column of a field. Two columns of one value, such as in two types, are made
    by silver."""
    readers: dict[str, str] = {}
    for name, column in schema.items():
        field = column.text("field", name) or ""
        if (other := readers.setdefault(field, name)) != name:
            message = f"reads the field {field!r}, as {other} does; make one of them in silver"
            report.at(column, message)


def _event_id(field: Field | None, types: Scope, report: ProblemReport) -> tuple[str, ...]:
    if field is None:
        return ()
    if not field.items:
        report.at(field, "is empty; name the columns, or remove the key")
    for item in field.items:
        type_ = type_at(item, types, report)
        if type_ in (FLOAT, DOUBLE):
            message = f"{item.text!r} is a {type_}, which has no exact text to be an id"
            report.at(item, message)
        elif is_nested(type_ or STRING):
            message = f"{item.text!r} has parts, and an id is one value; use fields of one value"
            report.at(item, message)
    return tuple(item.text for item in field.items)


def type_at(at: Field, types: Scope, report: ProblemReport) -> DataType | None:
    """The type of the column, or of the field inside of structs, that ``at`` names. None if it is
    not known, or does not exist, which is reported."""
    name, *steps = at.text.split(".")
    if name not in types:
        # A field that was declared as if it were a column is reported with the name to give it.
        guess = column_like(at.text) if at.text in types else nearest(at.text, types)
        report.at(at, f"the schema has no column {name!r}", guess)
        return None
    type_, path = types[name], name
    for step in steps:
        if type_ is None:
            return None
        fields = dict(type_.fields) if isinstance(type_, Struct) else {}
        if step not in fields:
            what = f"has no field {step!r}" if fields else f"is {with_article(type_)}, not a struct"
            guess = nearest(step, fields)
            report.at(at, f"{path!r} {what}", f"{path}.{guess}" if guess else None)
            return None
        type_, path = fields[step], f"{path}.{step}"
    return type_
