"""One rich declaration of sensor readings, written twice: as YAML for the engine and as rules for
the oracle."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any, TypedDict, Unpack

from headgate.declaration.load import load
from headgate.declaration.model import Pipeline
from tests.oracle import GoldRules, Measure, Rules, SilverRules
from tests.support.rounds import IN_FULL

NOON = datetime(2026, 3, 1, 11, 30, tzinfo=UTC)
"""When the events of a test begin."""

DECLARATION = """
pipeline: readings
sources:
  raw:
    {source}
    record:
      event_id: [id]
      event_time: {{column: at}}
      duplicates: {{within: 10 minutes, differing: {differing}}}
      future_after: 1 hour
      unknown_fields: {unknown}
      schema:
        id: string
        site: string
        value: decimal(12,2)
        level: int
        weight: double
        ok: boolean
        day: date
        at: timestamp
silver:
  clean:
    from: raw
    columns:
      site: lower(site)
      doubled: level * 2
    drop: [day]
  strong:
    from: raw
    where: level >= 5
gold:
  per_minute:
    from: clean
    window: {{tumbling: 1 minute}}
    by: [site]
    measures:
      events: count(*)
      levels: count(level)
      total: sum(value)
      level_total: sum(level)
      weight_total: sum(weight)
      low: min(value)
      high: max(level)
      mean: avg(value)
      level_mean: avg(level)
      spread: stddev(level)
      kinds: count_distinct(level)
      about: approx_count_distinct(id)
      opening: first(level)
      last_value: last(value)
      strong: sum(value) filter (where level >= 5)
      heaviest: max_by(id, weight)
      middle: median(level)
      heaviest_three: top_n(id, weight, 3)
      earliest: collect_list(level, 4)
    columns:
      per_event: total / events
    allowed_lateness: 10 seconds
  sliding:
    from: strong
    window:
      hopping: {{size: 3 minutes, every: 1 minute}}
    by: [ok]
    measures:
      events: count(*)
      total: sum(value)
    allowed_lateness: 1 minute
  bands:
    from: clean
    window: {{tumbling: 5 minutes}}
    where: value > 0
    by:
      band: case when level >= 5 then 'high' else 'low' end
      tenth: level div 10
    measures:
      events: count(*)
      heaviest: max(weight)
    allowed_lateness: 0 seconds
"""

GOLD_KEYS = {
    "per_minute": ("window_start", "site"),
    "sliding": ("window_start", "ok"),
    "bands": ("window_start", "band", "tenth"),
}
GOLD = tuple(GOLD_KEYS) if IN_FULL else ("sliding", "bands")
"""The gold tables of a test that is not about measures. ``per_minute``, which has all measures,
takes as long as the other tables together."""
APPROXIMATE = {"per_minute": {"about": 0.05}}
Names = Collection[str]


class KafkaKeys(TypedDict, total=False):
    """Keys of ``kafka`` beside ``servers``, as the declaration writes them."""

    topic: str
    pattern: str
    start: str
    max_per_batch: int
    min_per_batch: int
    batch_target: str
    idle_after: str
    unreachable_after: str
    isolation: str
    tombstones: str


def declare(
    folder: Path,
    landing: Path,
    *,
    format: str = "json",
    differing: str = "warn",
    unknown: str = "ignore",
    settle: str = "0 s",
    gold: Names = GOLD_KEYS,
    silver: Names = (),
    **more: object,
) -> Pipeline:
    """Write the declaration into ``folder`` and load it. ``gold`` are the gold tables to keep.
    Silver tables that none of them reads are left out, except ``silver``. ``more`` are other keys
    of ``files``."""
    source = files_key(landing, format=format, settle=settle, **more)
    return declare_source(
        folder, source, differing=differing, unknown=unknown, gold=gold, silver=silver
    )


def declare_kafka(
    folder: Path,
    servers: str,
    *,
    differing: str = "warn",
    unknown: str = "ignore",
    gold: Names = GOLD_KEYS,
    **keys: Unpack[KafkaKeys],
) -> Pipeline:
    """Like ``declare``, over a broker."""
    source = kafka_key(servers, **keys)
    return declare_source(folder, source, differing=differing, unknown=unknown, gold=gold)


def files_key(landing: Path, *, format: str = "json", settle: str = "0 s", **more: object) -> str:
    """The key of a source of files with its content. ``more`` are other keys of ``files``."""
    place = f'path: "{landing}", format: {format}, order: name, settle: "{settle}"'
    return f"files: {{{_keys(place, more)}}}"


def kafka_key(servers: str, **keys: Unpack[KafkaKeys]) -> str:
    """The key of a source over a broker with its content."""
    place = f'servers: "{servers}"'
    return f"kafka: {{{_keys(place, keys)}}}"


def _keys(first: str, more: Mapping[str, object]) -> str:
    return ", ".join([first, *(f"{name}: {value}" for name, value in more.items())])


def declare_source(
    folder: Path,
    source: str,
    *,
    differing: str = "warn",
    unknown: str = "ignore",
    gold: Names = GOLD_KEYS,
    silver: Names = (),
) -> Pipeline:
    """Like ``declare``, over a source of any kind: ``source`` is its key with its whole content."""
    tables, kept = {*_RULES.gold, *_RULES.silver}, rules(gold=gold, silver=silver)
    left = tables - {*kept.gold, *kept.silver}
    parts = re.split(rf"(?m)^(?=gold:|  (?:{'|'.join(tables)}):)", DECLARATION)
    text = "".join(part for part in parts if part.partition(":")[0].strip() not in left)
    text = text.format(source=source, differing=differing, unknown=unknown)
    file = folder / "readings.yml"
    folder.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return load(file)


def with_step(pipeline: Pipeline) -> Pipeline:
    """A declaration with ``sliding``, which takes one step an hour."""
    text = pipeline.text.replace("    from: strong\n", "    from: strong\n    step: 1 hour\n")
    assert text != pipeline.text
    pipeline.file.write_text(text)
    return load(pipeline.file)


FEW = ("events", "levels", "total", "level_total", "weight_total")


def declare_few(folder: Path, landing: Path) -> Pipeline:
    """``per_minute`` with only FEW measures, for tests that are not about measures: a JVM that has
    just started takes seconds to compile all of them."""
    file = declare(folder, landing, gold=("per_minute",)).file
    text, gold = file.read_text().split("    measures:\n")
    measures, rest = gold.split("    columns:\n")
    kept = [line for line in measures.splitlines() if line.partition(":")[0].strip() in FEW]
    file.write_text("\n".join([f"{text}    measures:", *kept, f"    columns:\n{rest}"]))
    return load(file)


def rules(
    *, differing: str = "warn", unknown: str = "ignore", gold: Names = GOLD_KEYS, silver: Names = ()
) -> Rules:
    kept = {name: _RULES.gold[name] for name in gold}
    wanted = {*silver, *(table.silver for table in kept.values())}
    tables = {name: table for name, table in _RULES.silver.items() if name in wanted}
    return replace(_RULES, differing=differing, unknown_fields=unknown, gold=kept, silver=tables)


def _lower(row: dict[str, Any]) -> str | None:
    return None if row["site"] is None else row["site"].lower()


def _per_event(row: dict[str, Any]) -> Decimal | None:
    """decimal(22,2) / bigint, as Spark types it: decimal(38,18), half up."""
    if row["total"] is None:
        return None
    quotient: Decimal = row["total"] / Decimal(row["events"])
    return quotient.quantize(Decimal(1).scaleb(-_PER_EVENT_SCALE), ROUND_HALF_UP)


_PER_EVENT_SCALE = 18


def _column(name: str) -> Any:
    return lambda row: row[name]


def _is_strong(row: dict[str, Any]) -> bool | None:
    return None if row["level"] is None else row["level"] >= 5


def _band(row: dict[str, Any]) -> str:
    return "high" if row["level"] is not None and row["level"] >= 5 else "low"


def _tenth(row: dict[str, Any]) -> int | None:
    level = row["level"]
    return None if level is None else (abs(level) // 10) * (1 if level >= 0 else -1)


MINUTE = timedelta(minutes=1)

_RULES = Rules(
    event_id=("id",),
    time_column="at",
    time_format="iso",
    schema={
        "id": "string",
        "site": "string",
        "value": "decimal(12,2)",
        "level": "int",
        "weight": "double",
        "ok": "boolean",
        "day": "date",
        "at": "timestamp",
    },
    within=timedelta(minutes=10),
    silver={
        "clean": SilverRules(
            columns={
                "site": _lower,
                "doubled": lambda r: None if r["level"] is None else _int(r["level"] * 2),
            },
            drop=("day",),
        ),
        "strong": SilverRules(where=_is_strong),
    },
    gold={
        "per_minute": GoldRules(
            silver="clean",
            size=MINUTE,
            every=MINUTE,
            by={"site": _column("site")},
            measures={
                "events": Measure("count", None, "bigint"),
                "levels": Measure("count", _column("level"), "bigint"),
                "total": Measure("sum", _column("value"), "decimal(22,2)"),
                "level_total": Measure("sum", _column("level"), "bigint"),
                "weight_total": Measure("sum", _column("weight"), "double"),
                "low": Measure("min", _column("value"), "decimal(12,2)"),
                "high": Measure("max", _column("level"), "int"),
                "mean": Measure("avg", _column("value"), "decimal(16,6)"),
                "level_mean": Measure("avg", _column("level"), "double"),
                "spread": Measure("stddev", _column("level"), "double"),
                "kinds": Measure("count_distinct", _column("level"), "bigint"),
                "about": Measure("approx_count_distinct", _column("id"), "bigint"),
                "opening": Measure("first", _column("level"), "int"),
                "last_value": Measure("last", _column("value"), "decimal(12,2)"),
                "strong": Measure("sum", _column("value"), "decimal(22,2)", where=_is_strong),
                "heaviest": Measure("max_by", _column("id"), "string", _column("weight")),
                "middle": Measure("percentile", _column("level"), "double"),
                "heaviest_three": Measure(
                    "top_n", _column("id"), "array<string>", _column("weight"), most=3
                ),
                "earliest": Measure("collect_list", _column("level"), "array<int>", most=4),
            },
            columns={"per_event": _per_event},
            allowed_lateness=timedelta(seconds=10),
        ),
        "sliding": GoldRules(
            silver="strong",
            size=3 * MINUTE,
            every=MINUTE,
            by={"ok": _column("ok")},
            measures={
                "events": Measure("count", None, "bigint"),
                "total": Measure("sum", _column("value"), "decimal(22,2)"),
            },
            allowed_lateness=MINUTE,
        ),
        "bands": GoldRules(
            silver="clean",
            size=5 * MINUTE,
            every=5 * MINUTE,
            where=lambda r: None if r["value"] is None else r["value"] > 0,
            by={"band": _band, "tenth": _tenth},
            measures={
                "events": Measure("count", None, "bigint"),
                "heaviest": Measure("max", _column("weight"), "double"),
            },
        ),
    },
)


def _int(number: int) -> int:
    """The number in 32 bits, wrapped as in Java."""
    return (number + (1 << 31)) % (1 << 32) - (1 << 31)
