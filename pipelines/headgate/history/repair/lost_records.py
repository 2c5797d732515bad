"""Which records bronze has lost with damaged files, as far as other tables know them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

import pyarrow.compute as pc

from headgate.declaration.kinds import FILES, name_of
from headgate.declaration.names import SILVER_POSITION
from headgate.declaration.quantities import plural
from headgate.errors import HeadgateError
from headgate.flow.sources.excerpts import some_of
from headgate.flow.sources.files.log import FilesLog
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.damage import read_sound
from headgate.lake.tables.data_file import DataFile
from headgate.lake.tables.history import commit_at, with_footers
from headgate.lake.tables.live_files import live_files
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.record_shape import POSITION_BITS
from headgate.lake.tables.table import Table

_SHOWN = 10


class OffsetRange(NamedTuple):
    """The offsets [first, end) of a partition."""

    partition: int
    first: int
    end: int


def lost_records(
    layout: Layout, pipeline: str, bronze: Table, bad: Collection[DataFile], silver: Iterable[Table]
) -> str:
    """A message: how many records of which batches are in the ``bad`` files of ``bronze``, what the
    batches have read, and the ids of these batches in the ``silver`` tables."""
    batches = {n for f in bad if f.is_ours for n in range(f.merged_from or f.n, f.n + 1)}
    spans = [span for n in sorted(batches) for span in _spans(bronze, n)]
    numbers = some_of([f"{n:,}" for n in sorted(batches)], _SHOWN)
    said = plural(sum(file.rows for file in bad), "record")
    if batches:
        said += f" of batch{'es' * (len(batches) > 1)} {numbers}"
    if names := list(_names(layout, pipeline, bronze, spans)):
        said += f" ({some_of(names, _SHOWN)})"
    for table in silver:
        if ids := sorted(set(_ids(table, spans, min(batches, default=0)))):
            said += f"; {table.name} has these ids of the same batches: {some_of(ids, _SHOWN)}"
    return said


def _spans(bronze: Table, n: int) -> Iterator[OffsetRange]:
    """What a batch has read; nothing if bronze's log no longer has its commit, or if the batch has
    no records of the source."""
    with suppress(HeadgateError):
        before, upto = (BronzePayload.of(commit_at(bronze, at).state) for at in (n - 1, n))
        if upto.sequence > before.sequence:
            first, end = (each.sequence + 1 << POSITION_BITS for each in (before, upto))
            yield OffsetRange(0, first, end)
        elif not upto.sequence:
            for at, end in upto.offsets.items():
                if (first := before.offsets.get(at, 0)) < end:
                    yield OffsetRange(int(at), first, end)


def _names(
    layout: Layout, pipeline: str, bronze: Table, spans: Iterable[OffsetRange]
) -> Iterator[str]:
    """The landing files, or the offsets in the partitions of topics."""
    if (source := name_of(bronze.name)) not in layout.storage.folders(FILES.folder):
        yield from (f"partition {s.partition}: {s.first:,} to {s.end - 1:,}" for s in spans)
        return
    with suppress(HeadgateError):
        files = FilesLog.of(layout.storage, pipeline, source)
        files.load()
        for span in spans:
            first, end = span.first >> POSITION_BITS, span.end >> POSITION_BITS
            yield from (file.path for file in files.between(first - 1, end - 1))


def _ids(silver: Table, spans: Collection[OffsetRange], n: int) -> Iterator[str]:
    """The ids of a silver table from some offsets of batch id ``n`` and later."""
    for file in with_footers(silver, silver.version, live_files(silver.handle)):
        if spans and (not file.is_ours or file.n >= n):
            with suppress(HeadgateError):  # a damaged file
                rows = read_sound(silver.storage, file, ["_event_id", *SILVER_POSITION])
                for span in spans:
                    is_in = pc.equal(rows["_partition"], span.partition)
                    is_in = pc.and_(is_in, pc.greater_equal(rows["_offset"], span.first))
                    is_in = pc.and_(is_in, pc.less(rows["_offset"], span.end))
                    yield from rows.filter(is_in)["_event_id"].to_pylist()
