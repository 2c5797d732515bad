"""The bronze stage: one source range in, one commit out. That commit is the checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from headgate.bronze.dedup_index import SEEN, DedupIndex, Span
from headgate.bronze.fitness import KEY_COLUMNS, in_log_order
from headgate.bronze.hashes import HASHES, hashes
from headgate.bronze.reasons import UNREADABLE, Reason
from headgate.bronze.record import RecordParser
from headgate.bronze.schema import bronze_type
from headgate.bronze.sequencing import Sequenced, sequence
from headgate.bronze.validation import RESULTS, RESULTS_DDL, validate_batches
from headgate.declaration.model import Source
from headgate.declaration.sources import kind_of_source
from headgate.sources.micro_batches import Reached
from headgate.tables.frames import Rows, arrow_schema, held_in_memory, micros, row_type
from headgate.tables.history import Footers
from headgate.tables.live_files import overlapping_files
from headgate.tables.projection import Projection
from headgate.tables.record_shape import record_shape
from headgate.tables.staging import stage
from headgate.tables.state import State
from headgate.tables.table import Table
from headgate.tables.table_schema import TableSchema

JUDGED_HERE = 1 << 20
"""Bytes of suspect records that are fetched and judged by the driver itself."""


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
        # Expressions are made once: building them anew for every batch costs more than a small
        # batch's rows.
        self._key_columns = Projection(*_key_columns(self._parser.text))
        self._seen: DedupIndex | None = None
        self._footers = Footers(self.table)

    def write_to(self, table: Table) -> None:
        """Go on in another table: bronze's rebuild, or the living one that took it over."""
        self.table, self._footers = table, Footers(table)

    @property
    def shape(self) -> TableSchema:
        return TableSchema(self.table, arrow_schema(self.type), "event_time")

    def absorb(
        self,
        records: DataFrame,
        reached: Reached,
        now: datetime,
        verify: Callable[[], None] = lambda: None,
    ) -> State:
        """As ``BronzeWriter``."""
        held = self.table.refresh()
        with held_in_memory(self._parser.parse(records)) as rows:
            thin = self._thin(rows)
            future_after = micros(self._source.record.future_after)
            ordered = in_log_order(thin, self._verdicts(rows, thin), future_after)
            sequenced = sequence(
                ordered, held.clocks, held.watermark, reached.partitions, self._index(held)
            )
            state = held.absorbing(
                held.n + 1,
                now,
                offsets=dict(reached.offsets),
                topics=tuple(reached.topics),
                gaps=(*held.gaps, *reached.gaps),
                clocks=dict(sequenced.clocks),
                watermark=sequenced.watermark,
            ).counting(_counts(ordered, sequenced), changed=ordered.num_rows > 0)
            stamped = self._stamped(rows, sequenced)
            files = stage(self.table, state, stamped, time_column="event_time")
        verify()
        committed = self.table.commit(state, add=files)
        if self._seen is not None:
            self._seen.add(ordered)
        return committed

    def no_records(self) -> DataFrame:
        """As ``BronzeWriter``."""
        return self._spark.createDataFrame([], record_shape(self._kind.place))

    def _thin(self, rows: DataFrame) -> pa.Table:
        return self._key_columns.of(rows).toArrow().cast(KEY_COLUMNS)

    def _verdicts(self, rows: DataFrame, thin: pa.Table) -> pa.Table:
        """What is wrong with the suspect records. A few are judged here: Spark's Python workers
        take a tenth of a second to begin."""
        size = pc.sum(thin.filter(pc.field("suspect")).column("size")).as_py()
        if size is None:
            return RESULTS.empty_table()
        unclear = self._parser.unclear(rows.where("suspect"))
        validate = validate_batches(self._source.record, self._kind.format(self._source.reads))
        if size > JUDGED_HERE:
            return unclear.mapInArrow(validate, RESULTS_DDL).toArrow().cast(RESULTS)
        return pa.Table.from_batches(validate(iter(unclear.toArrow().to_batches())), RESULTS)

    def _stamped(self, rows: DataFrame, sequenced: Sequenced) -> DataFrame:
        """Bronze's rows: what was parsed, with the stamps of those that are not plain."""
        places, stamps = ["partition", "offset"], sequenced.stamps
        if not self._kind.is_partitioned:
            # A hash of one number is looked up faster than one of two.
            places, stamps = ["offset"], stamps.drop_columns("partition")
        known = F.broadcast(self._spark.createDataFrame(stamps))
        return self._columns.of(rows.join(known, places, "left"))

    @cached_property
    def _columns(self) -> Projection:
        """Those that the table has: one that an older version made lacks the later ones."""
        stamped = zip(self.type.fieldNames(), self._stamped_columns(), strict=True)
        held = row_type(self.table).fieldNames()
        return Projection(*(column for name, column in stamped if name in held))

    def _stamped_columns(self) -> list[Column]:
        record = self._source.record
        unreadable = F.coalesce(F.col("reason").isin(*(r.value for r in UNREADABLE)), F.lit(False))
        no_id = F.coalesce(F.col("reason") == Reason.MISSING_ID.value, F.lit(False))
        # Half a document may have given fields before it broke off: they do not count.
        readable = {
            "event_id": (~unreadable & ~no_id) | F.lit(not record.event_id),
            "event_time": ~unreadable,
            "record": ~unreadable,
        }
        computed = {name: F.when(where, F.col(name)) for name, where in readable.items()}
        computed["value"] = F.col("value").cast("binary")
        computed["duplicate"] = F.coalesce("duplicate", F.lit(False))
        if record.duplicates and record.duplicates.differing == "quarantine":
            # Last of all: the reason tells whether the record by itself conforms.
            differs = F.when(F.col("differing"), Reason.DIFFERING_DUPLICATE.value)
            computed["reason"] = F.coalesce("reason", differs)
        names = self.type.fieldNames()
        return [computed.get(name, F.col(name)).alias(name) for name in names]

    def _index(self, held: State) -> DedupIndex | None:
        rule = self._source.record.duplicates
        if rule is None or not self._source.record.event_id:
            return None
        if self._seen is None:
            newest = max(held.clocks.values(), default=None)
            self._seen = DedupIndex(micros(rule.within), rule.differing, self._load_seen, newest)
        return self._seen

    def _load_seen(self, spans: Sequence[Span]) -> pa.Table:
        """The ids of bronze whose event times lie in ``spans``. One that differs from its copies
        conforms by itself."""
        # On the handle of this step: refreshing here would take the fence away.
        handle = self.table.handle
        files = overlapping_files(handle, "event_time", spans)
        files = self._footers.of(handle.version(), files)
        if not files:
            return SEEN.empty_table()
        rows = Rows(self._spark, self.table).of(files)
        time = F.unix_micros("event_time")
        wanted = F.lit(False)
        for first, last in spans:
            low = F.timestamp_micros(F.lit(first))
            wanted |= F.col("event_time").between(low, F.timestamp_micros(F.lit(last)))
        reason = F.coalesce("reason", F.lit(Reason.DIFFERING_DUPLICATE.value))
        future = reason == Reason.FUTURE.value
        known = rows.where(wanted & ~future & F.col("event_id").isNotNull())
        conforms = (reason == Reason.DIFFERING_DUPLICATE.value).alias("conforms")
        columns = [F.col("partition"), time.alias("time"), *hashes(F.col("event_id")), conforms]
        return known.select(*columns).toArrow().cast(SEEN)


def _key_columns(text: Column) -> list[Column | str]:
    """The columns of ``KEY_COLUMNS``: all that clocks and duplicates are decided from."""
    # A CSV line that cannot be split has no text to be judged by.
    size = F.coalesce(F.octet_length(text), F.lit(0)).alias("size")
    time, seen_at = F.unix_micros("event_time").alias("time"), F.unix_micros("seen_at")
    return ["partition", "offset", time, seen_at.alias("seen_at"), *HASHES, "suspect", size]


def _counts(ordered: pa.Table, sequenced: Sequenced) -> dict[str, int]:
    return {
        "read": ordered.num_rows,
        "duplicate": sequenced.duplicates,
        "differing": sequenced.differing,
        "corrected": sequenced.corrected,
    }
