"""Which hours of event time are due: final in all gold tables of a source, and not sent yet. A
source that stands still keeps no hour of another one back."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from headgate.declaration.graph import graph_of
from headgate.declaration.kinds import GOLD
from headgate.declaration.model import Pipeline
from headgate.insight.final_periods.finality import final_up_to
from headgate.insight.final_periods.periods import HOUR
from headgate.lake.storage.documents import read_document, write_document
from headgate.lake.storage.layout import Layout

MOST = 24
"""The most hours that are sent one by one; older hours that are due are sent as one range."""
_SENT = Layout.document("lineage")

Range = tuple[datetime, datetime]


def final_hour(layout: Layout, declared: Pipeline, source: str) -> datetime | None:
    """The end of the last hour that is final in all gold tables of a source; None if none is. One
    that reads several sources counts for the first of them.
    Raises HeadgateError if a table is damaged."""
    graph = graph_of(declared)
    gold = [node for node in graph.of(GOLD) if graph.sources_of(node.path)[0] == source]
    ends = [final_up_to(layout, declared, node.name) for node in gold]
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


def sent_up_to(layout: Layout) -> dict[str, datetime]:
    """The end of the last range that was sent, by source."""
    document = read_document(layout.storage, _SENT) or {"sent": {}}
    return {source: datetime.fromisoformat(end) for source, end in document["sent"].items()}


def record_sent(layout: Layout, source: str, end: datetime) -> None:
    sent = sent_up_to(layout) | {source: end}
    content = {"sent": {name: time.isoformat() for name, time in sent.items()}}
    write_document(layout.storage, _SENT, content)
