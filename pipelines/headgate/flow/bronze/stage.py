"""The bronze stage: one source range in, one commit out. That commit is the checkpoint."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from datetime import datetime

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from headgate.declaration.contracts.source import connector_of
from headgate.declaration.kinds import BRONZE
from headgate.declaration.model import Source
from headgate.failpoints import failpoint
from headgate.flow.bronze.arrivals import arrivals, arrivals_of_copies, arrivals_of_history
from headgate.flow.bronze.batches import (
    IN_DRIVER,
    DecodedBatch,
    Decoding,
    InDriver,
    InWorkers,
)
from headgate.flow.bronze.copies import CorrectedCopies
from headgate.flow.bronze.dedup_index import DedupIndex, Span, dedup_rows
from headgate.flow.bronze.rows import RowShape, bronze_type, write_rows
from headgate.flow.bronze.sequencing import Sequenced, counts_of, sequence, sequence_beside
from headgate.flow.sources.micro_batches import SourceBatch
from headgate.flow.sources.records import Records
from headgate.lake.tables.arrow import attempt_folder
from headgate.lake.tables.data_file import DataFile
from headgate.lake.tables.frames import arrow_schema, micros
from headgate.lake.tables.history import Footers
from headgate.lake.tables.live_files import latest_time, overlapping_files
from headgate.lake.tables.load import Load
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.state import State, commit_time
from headgate.lake.tables.table import Table
from headgate.lake.tables.table_schema import TableSchema


class BronzeStage:
    """The only writer of ``bronze/<source>``, by a handle of its own: other threads read the table
    by other ones. A thread holds ``lock`` while it uses the stage. ``commit_lock`` is held during
    each commit."""

    def __init__(
        self,
        spark: SparkSession,
        table: Table,
        source: Source,
        commit_lock: AbstractContextManager[object] | None = None,
    ) -> None:
        self.lock = threading.RLock()
        self._commit_lock = commit_lock or nullcontext()
        self._spark = spark
        self._source = source
        self.type = bronze_type(source)
        self._row_shape = RowShape(source.record, tuple(self.type.fieldNames()))
        format = connector_of(source).format(source.reads)
        self._decoding = Decoding(source.record, format, f"headgate/{uuid.uuid4().hex[:12]}")
        self._dedup_index: DedupIndex | None = None
        self.write_to(table)

    def write_to(self, table: Table) -> None:
        """Write to another table from now on: the rebuild, or the live table that replaced it."""
        self._fenced, self.table = table, table.reader()
        self._footers = Footers(self.table)

    def refresh(self) -> State:
        """The newest state. Raises FencedError."""
        self.table.epoch = self._fenced.epoch
        return self.table.refresh()

    def position(self, state: State) -> BronzePayload:
        """Where the source continues."""
        return BronzePayload.of(state)

    @property
    def shape(self) -> TableSchema:
        return TableSchema(self.table, arrow_schema(self.type), "event_time")

    def ingest(self, batch: SourceBatch, now: datetime) -> State:
        """Commit the records of a source range as the next batch. Raises CommitRefusedError,
        FencedError, ScratchLostError, and what ``SourceBatch.verify`` raises."""
        held = self.refresh()
        payload, reached = BronzePayload.of(held), batch.end
        decoded = self._decoded(batch.records)
        sequenced = sequence(
            decoded.ordered,
            payload.clocks,
            payload.watermark,
            reached.partitions,
            self._open_dedup_index(payload),
        )
        arrived = arrivals(
            decoded.ordered,
            payload.arrival_clocks,
            payload.arrival_watermark,
            reached.partitions,
        )
        payload = replace(
            payload,
            offsets=dict(reached.offsets),
            topics=tuple(reached.topics),
            gaps=(*payload.gaps, *reached.gaps),
            clocks=dict(sequenced.clocks),
            watermark=sequenced.watermark,
            arrival_clocks=dict(arrived.clocks),
            arrival_watermark=arrived.watermark,
        )
        counts, changed = self._counts(decoded, sequenced), len(decoded.ordered) > 0
        state = held.advanced_to(held.n + 1, now, payload).counting(counts, changed=changed)
        if changed and reached.arrived is not None:
            state = replace(state, payload=replace(payload, arrived=commit_time(reached.arrived)))
        stamps = arrived.added_to(sequenced.stamps)
        return self._written(state, decoded, stamps, batch.verify)

    def load(self, load: Load, batch: SourceBatch, now: datetime) -> State:
        """Commit records of a load as the next batch. The load then continues at the end of the
        batch, and the source's offsets stay the same. Raises as ``ingest``."""
        held = self.refresh()
        payload = BronzePayload.of(held)
        decoded = self._decoded(batch.records)
        index = self._open_dedup_index(payload)
        sequenced = sequence_beside(decoded.ordered, payload.watermark, index)
        rows = len(decoded.ordered)
        load = replace(load, n=held.n + 1, offsets=dict(batch.end.offsets), rows=load.rows + rows)
        counts = {**self._counts(decoded, sequenced), "loaded": rows}
        # ``changed_at`` stays the same: it is the time of the source's last record.
        state = held.advanced_to(load.n, now, payload.with_load(load)).counting(counts)
        arrived = arrivals_of_history(decoded.ordered, payload.arrival_watermark)
        stamps = arrived.added_to(sequenced.stamps)
        return self._written(state, decoded, stamps, batch.verify)

    def _written(
        self,
        state: State,
        batch: DecodedBatch,
        stamps: pa.Table,
        verify: Callable[[], None],
    ) -> State:
        storage, folder = self.table.storage, attempt_folder(state)
        files = batch.write(storage, folder, self._row_shape, stamps)
        verify()
        return self._commit(state, files, batch.ordered)

    def _counts(self, batch: DecodedBatch, sequenced: Sequenced) -> dict[str, int]:
        return counts_of(batch.ordered, sequenced, self._source.record)

    def _decoded(self, records: Records) -> DecodedBatch:
        if records.size <= IN_DRIVER:
            return InDriver(self._decoding, records.blocks())
        return InWorkers(self._decoding, records, self._spark)

    def replay(
        self,
        copies: CorrectedCopies,
        decide: Callable[[], int],
        now: datetime,
    ) -> State:
        """Commit corrected copies of records as the next batch. ``decide`` is called just before
        the commit, and returns the number of the decision that this carries out. The source's
        offsets stay the same. Raises CommitRefusedError, FencedError, and what ``decide``
        raises."""
        held = self.refresh()
        payload = BronzePayload.of(held)
        batch = InDriver(self._decoding, iter([copies.records()]))
        sequenced = self._sequenced_copies(batch.ordered, copies, payload)
        counts = {**self._counts(batch, sequenced), "replayed": len(batch.ordered)}
        # ``changed_at`` stays the same: it is the time of the source's last record.
        state = held.advanced_to(held.n + 1, now, payload).counting(counts)
        rows = batch.stamped(self._row_shape, _stamps_of_copies(batch, sequenced, payload))
        moved = [copies.moved(each, held.total.get("replayed", 0)) for each in rows]
        path = f"{attempt_folder(state)}/part-0.parquet"
        files = write_rows(self.table.storage, path, moved)
        return self._commit(replace(state, operation=decide()), files, batch.ordered)

    @contextmanager
    def decoded(self, copies: CorrectedCopies) -> Iterator[DataFrame]:
        """The rows that bronze would have for corrected copies, at the positions of the source's
        records. Nothing is written."""
        payload = BronzePayload.of(self.refresh())
        batch = InDriver(self._decoding, iter([copies.records()]))
        sequenced = self._sequenced_copies(batch.ordered, copies, payload)
        stamps = _stamps_of_copies(batch, sequenced, payload)
        (rows,) = batch.stamped(self._row_shape, stamps)
        yield self._spark.createDataFrame(rows)

    def _commit(self, state: State, files: Sequence[DataFile], ordered: pa.Table) -> State:
        failpoint(f"{BRONZE.name}.staged")
        with self._commit_lock:
            committed = self.table.commit(state, add=files)
        if self._dedup_index is not None:
            self._dedup_index.add(ordered)
        return committed

    def _sequenced_copies(
        self, ordered: pa.Table, copies: CorrectedCopies, payload: BronzePayload
    ) -> Sequenced:
        unique = self._source.record.one_copy_within is not None
        index = self._open_dedup_index(payload) if unique else None
        return sequence_beside(ordered, payload.watermark, index, copies.was_valid)

    def _open_dedup_index(self, payload: BronzePayload) -> DedupIndex | None:
        rule = self._source.record.duplicates
        if rule is None or not self._source.record.event_id:
            return None
        if self._dedup_index is None:
            newest = max(payload.clocks.values(), default=None)
            total = self.table.state.total
            if total.get("replayed") or total.get("loaded"):
                # They advance no watermark, and may be later.
                newest = latest_time(self.table.handle, "event_time")
            self._dedup_index = DedupIndex(
                micros(rule.within), rule.differing, self._load_dedup_rows, newest
            )
        return self._dedup_index

    def _load_dedup_rows(self, spans: Sequence[Span]) -> pa.Table:
        """``DEDUP_ROWS`` of bronze whose event times lie in ``spans``. A differing duplicate counts
        as valid."""
        # This step's handle is kept: a refresh here would disable the fencing check of the commit.
        handle = self.table.handle
        files = overlapping_files(handle, "event_time", spans)
        files = self._footers.of(handle.version(), files)
        return dedup_rows(self.table.storage, files, spans)


def _stamps_of_copies(
    batch: DecodedBatch, sequenced: Sequenced, payload: BronzePayload
) -> pa.Table:
    arrived = arrivals_of_copies(batch.ordered, payload.arrival_watermark)
    return arrived.added_to(sequenced.stamps)
