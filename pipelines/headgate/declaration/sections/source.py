"""The `sources` part of a declaration: what names and formats mean together."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from headgate.declaration.errors import Invalid
from headgate.declaration.expressions.inference import Scope
from headgate.declaration.expressions.literals import check_zone
from headgate.declaration.expressions.typed import shown, with_article
from headgate.declaration.model import Column, Duplicates, EventTime, Record, Source
from headgate.declaration.names import RESCUED, in_other_case
from headgate.declaration.nearest import nearest
from headgate.declaration.patterns import check_read_pattern, has_offset
from headgate.declaration.reading.checked import Field, Partial, Report, Section, built, partial
from headgate.declaration.sources import SOURCES
from headgate.declaration.types import (
    BIGINT,
    DOUBLE,
    FLOAT,
    INT,
    STRING,
    TIMESTAMP,
    DataType,
    is_nested,
)

NAMED_FORMATS: dict[str, tuple[DataType, ...]] = {
    "iso": (TIMESTAMP, STRING),
    "epoch_seconds": (BIGINT, INT),
    "epoch_millis": (BIGINT,),
}


def build_source(section: Section, name: str, report: Report, project: Path) -> Source | None:
    """The source, or None after reporting what is wrong with it."""
    given = {kind: of for kind in SOURCES.names() if (of := section.section(kind))}
    made = {kind: SOURCES[kind].build(of, report, project) for kind, of in given.items()}
    record = _record(section.section("record"), report)
    read = [(kind, reads) for kind, reads in made.items() if reads is not None]
    if record is None or not read:
        return None
    kind, reads = read[0]
    if SOURCES[kind].format(reads) == "csv":
        _check_flat(record, section, report)
    expected = section.values("expect_input_every", "expect_event_time_within")
    return Source(name, record, kind, SOURCES[kind].with_record(reads, record), **expected)


def _check_flat(record: Record, section: Section, report: Report) -> None:
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
    types = {name: field.value for name, field in record.entries("schema").items()}
    return partial(types, missing=record.reported("schema"))


def _record(section: Section | None, report: Report) -> Record | None:
    if section is None:
        return None
    _check_cases(section.entries("schema"), report)
    types = _types(section)
    columns = tuple(Column(name, type_) for name, type_ in types.items() if type_ is not None)
    event_id = _event_id(section.get("event_id"), types, report)
    event_time = _event_time(section.section("event_time"), types, report)
    duplicates = section.section("duplicates")
    if duplicates and section.get("event_id") is None and not section.reported("event_id"):
        report.at(duplicates, "needs event_id: duplicates share their id")
    if event_time is None or not columns:
        return None
    return Record(
        event_id=event_id,
        event_time=event_time,
        schema=columns,
        duplicates=built(Duplicates, duplicates),
        **section.values("future_after", "unknown_fields"),
    )


def _check_cases(schema: Mapping[str, Field], report: Report) -> None:
    above: list[str] = []
    for name, field in schema.items():
        if (twin := in_other_case(name, above)) is not None:
            report.at(field, f"differs only in case from {twin!r}, and a table cannot hold both")
        above.append(name)


def _event_id(field: Field | None, types: Scope, report: Report) -> tuple[str, ...]:
    if field is None:
        return ()
    if not field.items:
        report.at(field, "is empty; name the columns, or remove the key")
    for item in field.items:
        if item.text not in types:
            report.at(item, f"the schema has no column {item.text!r}", nearest(item.text, types))
        elif types[item.text] in (FLOAT, DOUBLE):
            message = f"{item.text!r} is a {types[item.text]}, which has no exact text to be an id"
            report.at(item, message)
        elif is_nested(types[item.text] or STRING):
            message = f"{item.text!r} has parts, and an id is one value; use fields of one value"
            report.at(item, message)
    return tuple(item.text for item in field.items)


def _event_time(section: Section | None, types: Scope, report: Report) -> EventTime | None:
    if section is None:
        return None
    column, zone = section.get("column"), section.get("zone")
    format_ = _format(section, zone, report)
    if zone and not section.reported("format"):
        _check_zone(zone, section.get("format"), report)
    if column is None:
        return None
    if column.text not in types:
        report.at(column, f"the schema has no column {column.text!r}", nearest(column.text, types))
    elif format_:
        _check_column(column, format_, types[column.text], report)
    return EventTime(**section.values("column", "format", "zone"))


def _format(section: Section, zone: Field | None, report: Report) -> str | None:
    """The format of event times, or None if it is wrong."""
    at = section.get("format")
    if at is None or at.text in NAMED_FORMATS:
        return at.text if at else None if section.reported("format") else EventTime.format
    try:
        _check_pattern(at.text, zone, needs_zone=not section.reported("zone"))
    except Invalid as error:
        report.invalid(at, error)
        return None
    return at.text


def _check_pattern(pattern: str, zone: Field | None, *, needs_zone: bool) -> None:
    guess = nearest(pattern, NAMED_FORMATS)
    try:
        check_read_pattern(pattern)
    except Invalid as error:
        names = ", ".join(NAMED_FORMATS)
        raise Invalid(f"{error.message}; a format is {names} or a date pattern", guess) from None
    if has_offset(pattern) and zone:
        raise Invalid(f"the pattern {pattern!r} reads an offset, so a zone cannot apply")
    if not has_offset(pattern) and not zone and needs_zone:
        raise Invalid(
            f"the pattern {pattern!r} reads no offset; add the key zone, such as zone: UTC"
        )


def _check_zone(zone: Field, format_: Field | None, report: Report) -> None:
    if format_ is None or format_.text in NAMED_FORMATS:
        report.at(zone, "has no effect here; remove zone, or give a format without an offset")
        return
    try:
        check_zone(zone.text)
    except Invalid as error:
        report.invalid(zone, error)


def _check_column(column: Field, format_: str, type_: DataType | None, report: Report) -> None:
    wanted = NAMED_FORMATS.get(format_, (STRING,))
    if type_ is not None and type_ not in wanted:
        what, reads = with_article(type_), with_article(wanted[0])
        message = f"{column.text!r} is {what}, and the format {format_} reads {reads}"
        report.at(column, f"{message}; change one of them")
