"""Every record judged, every outcome counted: tables and ledger that an engine must equal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tests.oracle.gold import GoldTable
from tests.oracle.rules import Closing, Floor, Row, Rules, SourceRecord
from tests.oracle.silver import conform
from tests.oracle.stamps import Stamped, closing_clock, stamp


@dataclass(frozen=True)
class Tables:
    """What each table holds once all records are absorbed; ``clock`` is C."""

    bronze: list[Row]
    quarantine: list[Row]
    silver: dict[str, list[Row]]
    late: dict[str, list[Row]]
    gold: dict[str, list[Row]]
    counts: dict[str, Any]
    clock: datetime | None


def judge(
    records: Iterable[SourceRecord],
    rules: Rules,
    closed_through: Mapping[str, datetime] | None = None,
    *,
    drains: Sequence[Closing] = (),
    partitions: Iterable[int] = (),
    floors: Sequence[Floor] = (),
) -> Tables:
    """The tables that ``rules`` prescribe for ``records``, in whatever batches they came.

    ``closed_through`` closes windows after the last record; ``drains`` say it for drains in
    between, in their order. ``partitions`` names those the source lists but sent nothing from.
    ``floors`` are the closing clocks that bronze recorded, where partitions idled or joined.
    """
    stamped = stamp(records, rules, floors)
    clock = floors[-1].clock if floors else closing_clock(stamped, partitions)
    if closed_through is not None:
        everything = {one.source.partition: one.source.offset for one in stamped}
        drains = [*drains, Closing(everything, closed_through)]
    conformed = [one for one in stamped if not one.duplicate and not one.reason]
    offered = {
        name: [conform(one, table) for one in conformed] for name, table in rules.silver.items()
    }
    silver = {name: [row for row in rows if row is not None] for name, rows in offered.items()}
    gold = {name: GoldTable(name, table) for name, table in rules.gold.items()}
    for table in gold.values():
        table.judge(silver[table.rules.silver], drains)
    rows = {name: table.rows(clock) for name, table in gold.items()}
    return Tables(
        bronze=[bronze_row(one) for one in stamped],
        quarantine=[quarantine_row(one) for one in stamped if one.reason and not one.duplicate],
        silver=silver,
        late={name: table.late for name, table in gold.items()},
        gold=rows,
        counts=record_counts(stamped)
        | {
            "silver": {name: len(rows) for name, rows in silver.items()},
            "filtered": {name: len(conformed) - len(rows) for name, rows in silver.items()},
            "gold": {
                name: {"rows": len(rows[name]), "folded": table.folded, "late": len(table.late)}
                for name, table in gold.items()
            },
        },
        clock=clock,
    )


def record_counts(stamped: list[Stamped]) -> dict[str, Any]:
    """read = duplicate + quarantined + conformed."""
    return {
        "read": len(stamped),
        "duplicate": sum(one.duplicate for one in stamped),
        "differing": sum(one.differing for one in stamped),
        "corrected": sum(one.corrected for one in stamped),
        "quarantined": sum(bool(one.reason) and not one.duplicate for one in stamped),
        "conformed": sum(not one.reason and not one.duplicate for one in stamped),
    }


def bronze_row(record: Stamped) -> Row:
    return {
        "partition": record.source.partition,
        "offset": record.source.offset,
        "value": record.source.value,
        "event_id": record.event_id,
        "event_time": record.event_time,
        "clock": record.clock,
        "duplicate": record.duplicate,
        "reason": record.reason,
        "column": record.column,
    }


def quarantine_row(record: Stamped) -> Row:
    """``table`` is null: the record failed before any silver table was asked."""
    return {
        "partition": record.source.partition,
        "offset": record.source.offset,
        "reason": record.reason,
        "column": record.column,
        "table": None,
        "value": record.source.value,
    }
