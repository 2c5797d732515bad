"""The bronze stage: one source range in, one commit out. That commit is the checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from headgate.bronze.copies import MendedCopies
from headgate.bronze.dedup_index import DEDUP_ROWS, DedupIndex, Span
from headgate.bronze.hashes import HASHES, hashes
from headgate.bronze.reasons import UNREADABLE, Reason
from headgate.bronze.record import RecordParser
from headgate.bronze.schema import bronze_type
from headgate.bronze.sequencer_input import KEY_COLUMNS, sequencer_input
from headgate.bronze.sequencing import Sequenced, sequence, sequence_copies
from headgate.bronze.validation import RESULTS, RESULTS_DDL, validate_batches
from headgate.declaration.model import Source
from headgate.declaration.sources import kind_of_source
from headgate.sources.micro_batches import BatchEnd
from headgate.tables.data_file import DataFile
from headgate.tables.frames import Rows, arrow_schema, held_in_memory, micros, row_type
from headgate.tables.history import Footers
from headgate.tables.live_files import latest_time, overlapping_files
from headgate.tables.payloads.bronze import BronzePayload
from headgate.tables.projection import Projection
from headgate.tables.record_shape import record_shape
from headgate.tables.replay import Replay
from headgate.tables.staging import stage
from headgate.tables.state import State
from headgate.tables.table import Table
from headgate.tables.table_schema import TableSchema

VALIDATED_ON_DRIVER = 1 << 20
"""Up to this many bytes of flagged records are validated on the driver."""


class BronzeStage:
    """The only writer of ``bronze/<source>``."""

    def __init__(
        self,
        spark: SparkSession,
        table: Table,
        source: Source,
    ) -> None:
        self._spark = spark
        self._source, self._kind = source, kind_of_source(source)
        self.type = bronze_type(source)
        self.table = table
        self._parser = RecordParser(source)
        # Expressions are built once: building them for every batch costs more than a small batch.
        self._key_columns = Projection(*_key_columns(self._parser.text))
        self._dedup_index: DedupIndex | None = None
        self._footers = Footers(self.table)

    def write_to(self, table: Table) -> None:
        """Write to another table from now on: the rebuild, or the live table that replaced it."""
        self.table, self._footers = table, Footers(table)

    @property
    def shape(self) -> TableSchema:
        return TableSchema(self.table, arrow_schema(self.type), "event_time")

    def absorb(
        self,
        records: DataFrame,
        reached: BatchEnd,
        now: datetime,
        verify: Callable[[], None] = lambda: None,
    ) -> State:
        """As ``BronzeWriter``."""
        held = self.table.refresh()
        payload = BronzePayload.of(held)
        with held_in_memory(self._parser.parse(records)) as rows:
            ordered = self._ordered(rows)
            sequenced = sequence(
                ordered,
                payload.clocks,
                payload.watermark,
                reached.partitions,
                self._open_dedup_index(payload),
            )
            payload = replace(
                payload,
                offsets=dict(reached.offsets),
                topics=tuple(reached.topics),
                gaps=(*payload.gaps, *reached.gaps),
                clocks=dict(sequenced.clocks),
                watermark=sequenced.watermark,
            )
            counts, changed = _counts(ordered, sequenced), ordered.num_rows > 0
            state = held.absorbing(held.n + 1, now, payload).counting(counts, changed=changed)
            stamped = self._stamped(rows, sequenced)
            files = stage(self.table, state, stamped, time_column="event_time")
        verify()
        return self._commit(state, files, ordered)

    def replay(
        self,
        copies: MendedCopies,
        id_: str,
        reason: str,
        now: datetime,
        verify: Callable[[], None] = lambda: None,
    ) -> State:
        """Commit mended copies of records as the next batch; the source stays where it is.
        ``verify`` is called before the commit. Raises CommitRefusedError or FencedError."""
        held = self.table.refresh()
        payload = BronzePayload.of(held)
        with held_in_memory(self._parser.parse(copies.records(self._spark))) as rows:
            ordered = self._ordered(rows)
            sequenced = self._sequenced_copies(ordered, copies, payload)
            replay = Replay(id_, held.n + 1, len(ordered), reason)
            payload = replace(payload, replays=(*payload.replays, replay))
            counts = {**_counts(ordered, sequenced), "replayed": len(ordered)}
            # ``changed_at`` stays: it says when the source last had a record.
            state = held.absorbing(replay.n, now, payload).counting(counts)
            moved = copies.moved(self._stamped(rows, sequenced), held.total.get("replayed", 0))
            files = stage(self.table, state, moved, time_column="event_time")
        verify()
        return self._commit(state, files, ordered)

    @contextmanager
    def judged(self, copies: MendedCopies) -> Iterator[DataFrame]:
        """The rows that bronze would get of mended copies, at the positions of the records that
        they mend. Nothing is written."""
        payload = BronzePayload.of(self.table.refresh())
        with held_in_memory(self._parser.parse(copies.records(self._spark))) as rows:
            sequenced = self._sequenced_copies(self._ordered(rows), copies, payload)
            yield self._stamped(rows, sequenced)

    def _commit(self, state: State, files: Sequence[DataFile], ordered: pa.Table) -> State:
        committed = self.table.commit(state, add=files)
        if self._dedup_index is not None:
            self._dedup_index.add(ordered)
        return committed

    def _sequenced_copies(
        self, ordered: pa.Table, copies: MendedCopies, payload: BronzePayload
    ) -> Sequenced:
        unique = self._source.record.one_copy_within is not None
        index = self._open_dedup_index(payload) if unique else None
        return sequence_copies(ordered, copies.was_valid, payload.watermark, index)

    def skip(self, now: datetime) -> State:
        """Commit the next batch without a record; the source stays where it is. Raises
        CommitRefusedError or FencedError."""
        held = self.table.refresh()
        nothing = dict.fromkeys(("read", "duplicate", "differing", "corrected"), 0)
        return self.table.commit(held.absorbing(held.n + 1, now).counting(nothing))

    def no_records(self) -> DataFrame:
        """As ``BronzeWriter``."""
        return self._spark.createDataFrame([], record_shape(self._kind.place))

    def _ordered(self, rows: DataFrame) -> pa.Table:
        """``SEQUENCER_INPUT`` of parsed records."""
        keys = self._read_key_columns(rows)
        future_after = micros(self._source.record.future_after)
        return sequencer_input(keys, self._validated(rows, keys), future_after)

    def _read_key_columns(self, rows: DataFrame) -> pa.Table:
        return self._key_columns.of(rows).toArrow().cast(KEY_COLUMNS)

    def _validated(self, rows: DataFrame, keys: pa.Table) -> pa.Table:
        """``RESULTS`` of the flagged records. A few of them are validated on the driver: Spark's
        Python workers take a tenth of a second to start."""
        size = pc.sum(keys.filter(pc.field("needs_validation")).column("size")).as_py()
        if size is None:
            return RESULTS.empty_table()
        flagged = self._parser.to_validate(rows.where("needs_validation"))
        validate = validate_batches(self._source.record, self._kind.format(self._source.reads))
        if size > VALIDATED_ON_DRIVER:
            return flagged.mapInArrow(validate, RESULTS_DDL).toArrow().cast(RESULTS)
        return pa.Table.from_batches(validate(iter(flagged.toArrow().to_batches())), RESULTS)

    def _stamped(self, rows: DataFrame, sequenced: Sequenced) -> DataFrame:
        """Bronze's rows: the parsed records joined with the columns that ``sequence`` computed."""
        places, stamps = ["partition", "offset"], sequenced.stamps
        if not self._kind.is_partitioned:
            # A hash of one number is looked up faster than one of two.
            places, stamps = ["offset"], stamps.drop_columns("partition")
        known = F.broadcast(self._spark.createDataFrame(stamps))
        return self._columns.of(rows.join(known, places, "left"))

    @cached_property
    def _columns(self) -> Projection:
        """The columns that the table has. A table made by an older version lacks newer ones."""
        stamped = zip(self.type.fieldNames(), self._stamped_columns(), strict=True)
        held = row_type(self.table).fieldNames()
        return Projection(*(column for name, column in stamped if name in held))

    def _stamped_columns(self) -> list[Column]:
        record = self._source.record
        unreadable = F.coalesce(F.col("reason").isin(*(r.value for r in UNREADABLE)), F.lit(False))
        no_id = F.coalesce(F.col("reason") == Reason.MISSING_ID.value, F.lit(False))
        # A truncated document may have given fields before it ended. They do not count.
        readable = {
            "event_id": (~unreadable & ~no_id) | F.lit(not record.event_id),
            "event_time": ~unreadable,
            "record": ~unreadable,
        }
        computed = {name: F.when(where, F.col(name)) for name, where in readable.items()}
        computed["value"] = F.col("value").cast("binary")
        computed["duplicate"] = F.coalesce("duplicate", F.lit(False))
        if record.duplicates and record.duplicates.differing == "quarantine":
            # This reason has the lowest priority: any other one means the record is invalid.
            differs = F.when(F.col("differing"), Reason.DIFFERING_DUPLICATE.value)
            computed["reason"] = F.coalesce("reason", differs)
        names = self.type.fieldNames()
        return [computed.get(name, F.col(name)).alias(name) for name in names]

    def _open_dedup_index(self, payload: BronzePayload) -> DedupIndex | None:
        rule = self._source.record.duplicates
        if rule is None or not self._source.record.event_id:
            return None
        if self._dedup_index is None:
            newest = max(payload.clocks.values(), default=None)
            if payload.replays:  # copies move no clock, and may be after all of them
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
        if not files:
            return DEDUP_ROWS.empty_table()
        rows = Rows(self._spark, self.table).of(files)
        time = F.unix_micros("event_time")
        wanted = F.lit(False)
        for first, last in spans:
            low = F.timestamp_micros(F.lit(first))
            wanted |= F.col("event_time").between(low, F.timestamp_micros(F.lit(last)))
        reason = F.coalesce("reason", F.lit(Reason.DIFFERING_DUPLICATE.value))
        future = reason == Reason.FUTURE.value
        known = rows.where(wanted & ~future & F.col("event_id").isNotNull())
        # A copy belongs to the log of the record that it mends.
        copied = F.col("partition") < 0
        log = F.when(copied, F.bitwise_not("partition")).otherwise(F.col("partition"))
        conforms = (reason == Reason.DIFFERING_DUPLICATE.value).alias("conforms")
        columns = [log.alias("partition"), time.alias("time"), *hashes(F.col("event_id")), conforms]
        return known.select(*columns).toArrow().cast(DEDUP_ROWS)


def _key_columns(text: Column) -> list[Column | str]:
    """The columns of ``KEY_COLUMNS``: everything that sequencing needs."""
    # A CSV line that cannot be split has no text to validate.
    size = F.coalesce(F.octet_length(text), F.lit(0)).alias("size")
    time, seen_at = F.unix_micros("event_time").alias("time"), F.unix_micros("seen_at")
    return [
        "partition",
        "offset",
        time,
        seen_at.alias("seen_at"),
        *HASHES,
        "needs_validation",
        size,
    ]


def _counts(ordered: pa.Table, sequenced: Sequenced) -> dict[str, int]:
    return {
        "read": ordered.num_rows,
        "duplicate": sequenced.duplicates,
        "differing": sequenced.differing,
        "corrected": sequenced.corrected,
    }
