"""The reports of backfills, documents below the pipeline's own folder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace

from headgate.errors import HeadgateError
from headgate.history.backfill.publication import published_by
from headgate.history.backfill.report import Report
from headgate.history.backfill.selection import BACKFILL, in_force
from headgate.history.savepoints.holds import FOLDER
from headgate.lake.storage.documents import ids_in, read_value, write_document
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.operation import Operation

KEPT = 50
"""The number of reports that are kept."""


def write_report(layout: Layout, report: Report) -> None:
    """Write a report, and remove the oldest ones."""
    write_document(layout.storage, f"{FOLDER}/{report.id}.json", report.document())
    for id_ in ids_in(layout.storage, FOLDER)[:-KEPT]:
        layout.storage.remove(f"{FOLDER}/{id_}.json")


def reports(layout: Layout) -> Iterator[Report]:
    """The reports that are kept and can be read, newest first."""
    for id_ in reversed(ids_in(layout.storage, FOLDER)):
        with suppress(HeadgateError):
            found = read_value(layout.storage, f"{FOLDER}/{id_}.json", Report)
            if found is not None:
                yield found


def as_published(
    layout: Layout, pipeline: str, found: Iterable[Report], operations: Iterable[Operation]
) -> tuple[Report, ...]:
    """The reports with what is published of them now: a command that was killed, or did not wait,
    has not recorded it. ``operations`` are all operations of bronze. Raises HeadgateError."""
    asked = {str(o.document["backfill"]): o for o in operations if o.name == BACKFILL}

    def now(report: Report) -> Report:
        operation, said = asked.get(report.id), report.published
        if operation is None or (said is not None and not said.waiting):
            return report
        return replace(report, published=published_by(layout, pipeline, operation))

    return tuple(map(now, found))


def taken_back(found: Iterable[Report], operations: Iterable[Operation]) -> frozenset[str]:
    """The ids of the reports whose backfill was published and then undone by a restore.
    ``operations`` are all operations of bronze."""
    ids = {each.document["backfill"] for each in in_force(operations)}
    return frozenset(each.id for each in found if each.published and each.id not in ids)
