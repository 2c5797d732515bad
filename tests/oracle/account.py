"""Validates every record and counts every outcome: the tables and ledger that an engine must
equal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tests.oracle.gold import GoldTable
from tests.oracle.rules import Closing, Floor, Happening, Row, Rules, SilverRules, SourceRecord
from tests.oracle.silver import Offered, items_of, offer, replacements
from tests.oracle.stamps import Stamped, closing_clock, stamp


@dataclass(frozen=True)
class Tables:
    """What each table holds when all records are processed. ``clock`` is the watermark of the
    source. ``rejected`` has the silver tables with a suite."""

    bronze: list[Row]
    quarantine: list[Row]
    silver: dict[str, list[Row]]
    rejected: dict[str, list[Row]]
    late: dict[str, list[Row]]
    gold: dict[str, list[Row]]
    counts: dict[str, Any]
    clock: datetime | None


def derive(
    records: Iterable[SourceRecord],
    rules: Rules,
    closed_through: Mapping[str, datetime] | None = None,
    *,
    drains: Sequence[Happening] = (),
    partitions: Iterable[int] = (),
    floors: Sequence[Floor] = (),
) -> Tables:
    """The tables that ``rules`` prescribe for ``records``, whatever their batches were.

    ``closed_through`` closes windows after the last record; ``drains`` are the earlier drains and
    replays of late pairs, in their order. ``partitions`` names partitions that the source lists but
    that have sent nothing. ``floors`` are the watermarks that bronze recorded, needed if partitions
    were idle or joined.
    """
    stamped = stamp(records, rules, floors)
    clock = floors[-1].clock if floors else closing_clock(stamped, partitions)
    if closed_through is not None:
        everything = {
            one.source.partition: one.source.offset for one in stamped if one.source.arrival is None
        }
        drains = [*drains, Closing(everything, closed_through)]
    conformed = [one for one in stamped if not one.duplicate and not one.reason]
    ignored = [one for one in stamped if one.reason == "ignored"]
    offered = {
        name: [each for one in conformed for each in offer(one, table)]
        for name, table in rules.silver.items()
    }
    replaced = {
        name: list(replacements(stamped, table, rules)) for name, table in rules.silver.items()
    }
    silver = {
        name: [each.row for each in (*found, *replaced[name]) if not each.is_rejected]
        for name, found in offered.items()
    }
    suites = {name: table for name, table in rules.silver.items() if table.suite}
    sources = (one.source for one in stamped)
    loaded = {(one.partition, one.offset): one.arrival for one in sources if one.arrival}
    gold = {name: GoldTable(name, table) for name, table in rules.gold.items()}
    for table in gold.values():
        table.fill(silver[table.rules.silver], drains, loaded)
    rows = {name: table.rows(clock) for name, table in gold.items()}
    return Tables(
        bronze=[bronze_row(one) for one in stamped],
        quarantine=[quarantine_row(one) for one in stamped if is_refused(one)],
        silver=silver,
        rejected={
            name: rejected_rows([each for each in offered[name] if each.is_rejected], table)
            for name, table in suites.items()
        },
        late={name: table.late for name, table in gold.items()},
        gold=rows,
        counts=record_counts(stamped)
        | {
            "silver": {name: len(rows) for name, rows in silver.items()},
            "filtered": {
                name: len(ignored) + rows_of(conformed, rules.silver[name]) - len(found)
                for name, found in offered.items()
            },
            "exploded": {
                name: exploded_counts(ignored, conformed, replaced[name], table)
                for name, table in rules.silver.items()
                if table.explode is not None
            },
            "suites": {name: suite_counts(offered[name], replaced[name]) for name in suites},
            "gold": {
                name: {
                    "rows": len(rows[name]),
                    "folded": table.folded,
                    "late": len(table.late),
                    "replayed": table.replayed,
                }
                for name, table in gold.items()
            },
        },
        clock=clock,
    )


def is_refused(one: Stamped) -> bool:
    """Whether a record goes to quarantine. An ignored one is in bronze alone."""
    return one.reason not in (None, "ignored") and not one.duplicate


def record_counts(stamped: list[Stamped]) -> dict[str, Any]:
    """read = duplicate + quarantined + conformed."""
    copies = [one for one in stamped if one.duplicate]
    quarantined = [one for one in stamped if is_refused(one)]
    return {
        "read": len(stamped),
        "duplicate": len(copies),
        "differing": sum(one.differing for one in stamped),
        "corrected": sum(one.corrected for one in stamped),
        "quarantined": len(quarantined),
        "conformed": sum(not one.reason and not one.duplicate for one in stamped),
        "read_bytes": bytes_of(stamped),
        "duplicate_bytes": bytes_of(copies),
        "quarantined_bytes": bytes_of(quarantined),
    }


def bytes_of(stamped: list[Stamped]) -> int:
    return sum(len(one.source.value or b"") for one in stamped)


def suite_counts(offered: list[Offered], replaced: list[Offered]) -> dict[str, int]:
    """How many rows a suite rejects, how many copies replace a rejected row, and how many rows
    break each of its rules."""
    broken = Counter(f"rule:{rule}" for each in (*offered, *replaced) for rule in each.broken)
    rejected = sum(each.is_rejected for each in offered)
    return {"rejected": rejected, "replaced": len(replaced), **broken}


def rows_of(conformed: Iterable[Stamped], table: SilverRules) -> int:
    return sum(len(items_of(one, table)) for one in conformed)


def exploded_counts(
    ignored: list[Stamped], conformed: list[Stamped], replaced: list[Offered], table: SilverRules
) -> dict[str, int]:
    """An ignored record counts as one item. ``replacing`` are the records of ``replaced``."""
    empty = sum(not items_of(one, table) for one in conformed)
    replacing = len({id(each.record) for each in replaced})
    return {
        "empty": empty,
        "exploded": len(ignored) + len(conformed) - empty + replacing,
        "items": len(ignored) + rows_of(conformed, table) + len(replaced),
        "replacing": replacing,
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
    """``table`` is null: the record failed before it reached a silver table."""
    return {
        "partition": record.source.partition,
        "offset": record.source.offset,
        "reason": record.reason,
        "column": record.column,
        "table": None,
        "value": record.source.value,
    }


def rejected_rows(rejected: list[Offered], table: SilverRules) -> list[Row]:
    """Only the first rejected item of a record has the value of the record."""
    firsts = {id(each.record): each for each in reversed(rejected)}
    return [rejected_row(each, table, firsts[id(each.record)] is each) for each in rejected]


def rejected_row(offered: Offered, table: SilverRules, is_first: bool) -> Row:
    record = offered.record
    return {
        "partition": record.source.partition,
        "offset": record.source.offset,
        "item": offered.row["_item"],
        "event_id": record.event_id,
        "event_time": record.event_time,
        "rules": [{"id": n, "severity": table.suite[n].severity} for n in offered.broken],
        "value": record.source.value if is_first else None,
    }
