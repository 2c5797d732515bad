"""Local times that the clocks of a zone show twice, in the night in which they are set back."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import lru_cache
from zoneinfo import ZoneInfo

from headgate.declaration.model import Column, Record
from headgate.declaration.time_forms import TimeForm
from headgate.declaration.types import STRING, TIMESTAMP


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
