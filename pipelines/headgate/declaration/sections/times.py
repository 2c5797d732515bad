"""How times are read: what the keys of a column and of the event time mean together."""

from __future__ import annotations

from headgate.declaration.errors import Invalid
from headgate.declaration.expressions.literals import check_zone
from headgate.declaration.expressions.typed import with_article
from headgate.declaration.nearest import nearest
from headgate.declaration.patterns import check_read_pattern, has_offset
from headgate.declaration.reading.checked import Field, Report, Section
from headgate.declaration.time_forms import EventTime, TimeForm
from headgate.declaration.types import BIGINT, INT, STRING, TIMESTAMP, DataType, parts

_KEYS = ("format", "zone", "ambiguous")
_NAMED: dict[str, tuple[DataType, ...]] = {
    "iso": (TIMESTAMP, STRING),
    "epoch_seconds": (BIGINT, INT, TIMESTAMP),
    "epoch_millis": (BIGINT, TIMESTAMP),
    "epoch_micros": (BIGINT, TIMESTAMP),
    "epoch_nanos": (BIGINT, TIMESTAMP),
}
_BY_PATTERN = (STRING, TIMESTAMP)


def build_times(column: Section, type_: DataType | None, report: Report) -> TimeForm:
    """The form of the timestamps in a column, whose keys are checked."""
    if type_ is not None and TIMESTAMP not in parts(type_):
        for key in column.values(*_KEYS):
            message = f"is for timestamps, and the column is {with_article(type_)}"
            report.at(column.fields[key], f"{message}; remove {key}")
        return TimeForm()
    _check_form(column, report)
    return TimeForm(**column.values(*_KEYS))


def build_event_time(
    section: Section, type_: DataType | None, column: Section | None, report: Report
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


def _check_form(section: Section, report: Report) -> str | None:
    """The format of times, or None if it is wrong."""
    zone, ambiguous = section.get("zone"), section.get("ambiguous")
    format_ = _format(section, zone, report)
    if zone:
        _check_zone(zone, format_, report)
    elif ambiguous and not section.reported("zone"):
        report.at(ambiguous, "has no effect without zone; remove ambiguous, or add zone")
    return format_


def _format(section: Section, zone: Field | None, report: Report) -> str | None:
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


def _check_zone(zone: Field, format_: str | None, report: Report) -> None:
    if format_ in _NAMED and format_ != "iso":
        report.at(zone, f"has no effect: {format_} counts from 1970 in UTC; remove zone")
        return
    try:
        check_zone(zone.text)
    except Invalid as error:
        report.invalid(zone, error)
