"""A small pipeline for the oracle's own tests, and helpers to write its records."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.oracle import GoldRules, Measure, Rules, SilverRules, SourceRecord, derive
from tests.oracle.rules import Row

DAY = datetime(2026, 3, 1, tzinfo=UTC)
SEEN = DAY + timedelta(hours=12)
MINUTE = timedelta(minutes=1)

GOLD = GoldRules(
    silver="orders",
    size=MINUTE,
    every=MINUTE,
    by={"item": lambda row: row["item"]},
    measures={"orders": Measure("count", None, "bigint")},
)
RULES = Rules(
    event_id=("id",),
    time_column="at",
    time_format="iso",
    schema={"id": "string", "item": "string", "amount": "int", "at": "timestamp"},
    within=timedelta(minutes=10),
    silver={"orders": SilverRules()},
    gold={"per_minute": GOLD},
)


def at(clock: str) -> datetime:
    """A time such as 10:00:30 or 10:00, on the day that all tests use."""
    hours, minutes, seconds = (clock + ":00").split(":")[:3]
    return DAY + timedelta(hours=int(hours), minutes=int(minutes), seconds=float(seconds))


def order(id_: str, clock: str, **fields: Any) -> bytes:
    return json.dumps({"id": id_, "at": at(clock).isoformat()} | fields).encode()


def arrive(*values: bytes, partition: int = 0, seen: datetime = SEEN) -> list[SourceRecord]:
    return [SourceRecord(partition, offset, value, seen) for offset, value in enumerate(values)]


def reason(value: bytes, rules: Rules = RULES) -> tuple[str | None, str | None]:
    (row,) = derive(arrive(value), rules).bronze
    return row["reason"], row["column"]


def typed_as(type_: str, text: str) -> Any:
    """The silver value of a JSON value given as text, or "wrong" if it has another type."""
    schema = {"id": "string", "at": "timestamp", "x": type_}
    value = order("a", "10:00")[:-1] + b', "x": ' + text.encode() + b"}"
    tables = derive(arrive(value), replace(RULES, schema=schema, gold={}))
    if tables.quarantine:
        assert tables.quarantine[0]["reason"] == "wrong_type"
        assert tables.quarantine[0]["column"] == "x"
        return "wrong"
    return tables.silver["orders"][0]["x"]


def gold_of(records: list[SourceRecord], gold: GoldRules, rules: Rules = RULES) -> list[Row]:
    return derive(records, replace(rules, gold={"t": gold})).gold["t"]


def column(rows: list[Row], *names: str) -> list[Any]:
    return [tuple(row[name] for name in names) if names[1:] else row[names[0]] for row in rows]
