"""The stage of a publication of gate events: versions held, released, passed.

The events come from documents, not from a table. The position stores the name of the last event
that was sent. It also follows the log of the gold table, although no rows of the table are sent.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from datetime import datetime
from functools import cached_property, partial

import pyarrow as pa
from pyspark.sql import SparkSession

from headgate.commands import pipeline_command
from headgate.declaration.kinds import name_of
from headgate.failpoints import failpoint
from headgate.gates.events import GateEvent, events
from headgate.publish.background import BRIEFLY, Background
from headgate.publish.identity import log_id
from headgate.publish.position import Position
from headgate.sinks.contract import (
    KEY,
    Difference,
    Mirror,
    Outgoing,
    SinkRefusalError,
    Version,
    Writer,
)
from headgate.storage.files import Storage
from headgate.storage.layout import Layout

MOST_UNSENT = 1000
"""The number of commits of gold after which the position is moved."""
_SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("table", pa.string()),
        ("event", pa.string()),
        ("batch", pa.int64()),
        ("rebuild", pa.bool_()),
        ("at", pa.timestamp("us", "UTC")),
        ("rules", pa.list_(pa.string())),
        ("by", pa.string()),
        ("reason", pa.string()),
    ]
)
_MESSAGES = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
    ]
)


class GateEventStage:
    """A ``Stage`` (``publish.stages``)."""

    def __init__(
        self, spark: SparkSession, storage: Storage, position: Position, writer: Writer | Mirror
    ) -> None:
        self._spark, self._layout = spark, Layout(storage)
        self._position, self._writer = position, writer
        self.publication, self.layer = position.publication, position.layer
        self.source, self.table = position.source, position.table
        self._begun: tuple[Outgoing, str] | None = None
        self._background: Background[str] = Background(f"mirror {position.table.name}")

    def create(self) -> None:
        self._position.create()

    def close(self) -> None:
        self._background.close(self._writer.close)

    def failure(self, error: Exception) -> str | None:
        if isinstance(error, SinkRefusalError):
            return str(error)
        return self._writer.failure(error)

    def catch_up(self, now: datetime) -> bool:
        """Send the events after the position. Returns whether all were sent. Raises as
        ``Stage.catch_up``."""
        self.source.refresh()
        version, sent = self.source.version, self._position.event
        found = events(self._layout, name_of(self.source.name), sent)
        if isinstance(self._writer, Mirror):
            newest = self._mirrored(self._writer, sent, found)
        else:
            newest = self._send(self._writer, sent, found)
        if newest is None:
            return False
        if newest != sent or version - self._position.version >= MOST_UNSENT:
            failpoint("publish.sent")
            self._position.move(version, now, event=newest)
            failpoint("publish.committed")
        return not found or newest == found[-1].name  # new ones may exist since the call began

    def _send(self, writer: Writer, sent: str, found: Sequence[GateEvent]) -> str | None:
        """The name of the last event that was sent; None while the sink still sends events."""
        if self._begun is None:
            if not found:
                return sent
            frame = self._spark.createDataFrame(_messages(found))
            rows = self._spark.createDataFrame(_rows(found))
            after, upto = (_number(name) for name in (sent, found[-1].name))
            self._begun = Outgoing(rows, frame, after, upto), found[-1].name
        outgoing, newest = self._begun
        if not writer.send(outgoing):
            return None
        self._begun = None
        return newest

    def _mirrored(self, mirror: Mirror, sent: str, found: Sequence[GateEvent]) -> str | None:
        """The name of the last event that the mirror has; None while a call is under way."""
        within = 0.0
        if not self._background.is_busy:
            if not found:
                return sent
            self._background.begin(partial(self._mirror, mirror, found, self._log_id))
            within = BRIEFLY
        return self._background.take() if self._background.has_ended(within) else None

    @cached_property
    def _log_id(self) -> str:
        return log_id(self.source)

    def _mirror(self, mirror: Mirror, found: Sequence[GateEvent], log: str) -> str:
        """Add the new events; no event is ever removed. Returns the name of the last one. Raises
        SinkRefusalError."""
        held, own = mirror.held(), f"gates of {log}"
        if held is not None and held.table != own:
            raise SinkRefusalError(
                f"it has events of another copy of {self.source.name}. To replace them by those of "
                f"this table: {pipeline_command('publication reset', self.publication.name)}"
            )
        new = [event for event in found if held is None or event.name > held.files]
        if not new:
            return found[-1].name
        last = new[-1]
        rows = _rows(new)
        hashes = [hashlib.sha256(event.id.encode()).digest() for event in new]
        rules = pa.array([json.dumps(list(event.rules)) for event in new])
        rows = rows.set_column(_SCHEMA.get_field_index("rules"), "rules", rules)
        rows = rows.add_column(0, KEY, pa.array(hashes, pa.binary()))
        gone = pa.table({KEY: pa.array([], pa.binary())})
        upto = Version(own, _number(last.name), last.name, last.n)
        mirror.apply(Difference([_once(rows)], gone, _SCHEMA, ("id",), held, upto))
        return last.name


def _once(rows: pa.Table) -> pa.Table:
    """The last row of each key."""
    keys = rows.column(KEY).to_pylist()
    last = {key: place for place, key in enumerate(keys)}
    return rows.take(sorted(last.values()))


def _number(name: str) -> int:
    """The first part of an event's name: microseconds since 1970."""
    return int(name.partition("-")[0] or 0)


def _rows(found: Sequence[GateEvent]) -> pa.Table:
    return pa.Table.from_pylist([{"id": e.id, **e.as_row()} for e in found], schema=_SCHEMA)


def _messages(found: Sequence[GateEvent]) -> pa.Table:
    """The events of a table have one key, so that they arrive in order."""
    rows = []
    for event in found:
        row = event.as_row()
        headers = {
            "headgate-id": event.id,
            "headgate-table": f"gate.{event.table}",
            "headgate-event": event.event,
        }
        value = json.dumps({**row, "at": event.at.isoformat(timespec="microseconds")})
        pairs = [{"key": name, "value": text.encode()} for name, text in headers.items()]
        key = json.dumps({"table": row["table"]})
        rows.append({"key": key.encode(), "value": value.encode(), "headers": pairs})
    return pa.Table.from_pylist(rows, schema=_MESSAGES)
