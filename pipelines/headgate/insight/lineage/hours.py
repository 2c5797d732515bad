"""Which hours of event time are due: final in all gold tables, and not sent yet."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from headgate.declaration.model import Pipeline
from headgate.insight.final_periods.finality import final_up_to
from headgate.insight.final_periods.periods import HOUR
from headgate.lake.storage.documents import read_document, write_document
from headgate.lake.storage.layout import Layout

MOST = 24
"""The most hours that are sent one by one; older hours that are due are sent as one range."""
_SENT = Layout.document("lineage")

Range = tuple[datetime, datetime]


def final_hour(layout: Layout, declared: Pipeline) -> datetime | None:
    """The end of the last hour that is final in all gold tables; None if none is. Raises
    HeadgateError if a table is damaged."""
    ends = [final_up_to(layout, declared, name) for name in declared.gold]
    found = [end for end in ends if end is not None]
    return HOUR.whole(min(found)) if found and len(found) == len(ends) else None


def due(sent: datetime | None, final: datetime) -> Sequence[Range]:
    """The ranges to send, the oldest first. ``sent`` is the end of the last one; without it, only
    the last hour is due."""
    begin = final - HOUR.length if sent is None else sent
    count = (final - begin) // HOUR.length
    ends = [final - HOUR.length * n for n in reversed(range(min(count, MOST)))]
    alone = [(end - HOUR.length, end) for end in ends]
    older = [(begin, alone[0][0])] if alone and begin < alone[0][0] else []
    return [*older, *alone]


def sent_up_to(layout: Layout) -> datetime | None:
    document = read_document(layout.storage, _SENT)
    return None if document is None else datetime.fromisoformat(document["sent"])


def record_sent(layout: Layout, end: datetime) -> None:
    write_document(layout.storage, _SENT, {"sent": end.isoformat()})
