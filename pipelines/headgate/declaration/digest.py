"""The digest of what a pipeline means.

Two declarations with the same digest fill the same tables with the same rows, except for rows that
the rules of a suite keep out, and tombstones. Comments, layout, explicit defaults, the order of
tables, `jobs` and the location of a source do not count.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from headgate.declaration.contracts.operator import operator_of
from headgate.declaration.contracts.source import connector_of
from headgate.declaration.expressions.tokens import canonical
from headgate.declaration.kinds import (
    BRONZE,
    GOLD,
    LATE,
    QUARANTINE,
    REJECTED,
    SILVER,
    input_log_of,
)
from headgate.declaration.model import (
    Derived,
    GoldTable,
    Measure,
    Pipeline,
    Record,
    SilverTable,
    Source,
)
from headgate.declaration.types import DataType

# Increased when the meaning of a declaration changes without its text changing.
MEANING_VERSION = 1
# Fields that do not change which rows a table has, such as how work is distributed and what health
# checks expect; and fields that ``_plain`` adds in another form. For ``reads``, the kind of the
# source has a list of its own.
_NOT_MEANT: dict[type, tuple[str, ...]] = {
    Record: ("ignores_tombstones",),
    GoldTable: (
        *("salt", "step", "live", "kind", "operator", "suite", "late"),
        *("reads", "time", "inputs", "sources"),
    ),
    SilverTable: ("suite", "explode"),
    Source: (
        *("kind", "reads", "is_only", "idle_after"),
        *("expect_input_every", "expect_event_time_within"),
    ),
}

Meaning = Mapping[str, Any]


def meaning(
    name: str,
    sources: Mapping[str, Source],
    silver: Mapping[str, SilverTable],
    gold: Mapping[str, GoldTable],
) -> Meaning:
    """The meaning of a declaration as plain values, which are equal for two equal meanings."""
    return {
        "version": MEANING_VERSION,
        "pipeline": name,
        "sources": _plain(sources),
        "silver": _plain(silver),
        "gold": _plain(gold),
    }


def meaning_of(pipeline: Pipeline) -> Meaning:
    return meaning(pipeline.name, pipeline.sources, pipeline.silver, pipeline.gold)


def digest(meant: Meaning) -> str:
    """SHA-256, in hexadecimal, of the canonical JSON of a meaning or a part of one."""
    text = json.dumps(meant, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def table_digests(meant: Meaning) -> dict[str, str]:
    """The digest of each table, by its path. It covers the declaration of the table and of all
    tables upstream."""
    common = {"version": meant["version"], "pipeline": meant["pipeline"]}
    digests: dict[str, str] = {}
    for name, source in meant["sources"].items():
        digests[BRONZE.path(name)] = digest({**common, "source": source})
        digests[QUARANTINE.path(name)] = digests[BRONZE.path(name)]
    for name, table in meant["silver"].items():
        above = digests[BRONZE.path(table["source"])]
        digests[SILVER.path(name)] = digest({"above": above, "silver": table})
        if "expectations" in table:
            digests[REJECTED.path(name)] = digests[SILVER.path(name)]
    for sources in _read_together(meant):
        # It has batch ids alone, whatever is in the batches.
        digests[input_log_of(sources)] = digest({**common, "inputs": sources})
    for name, table in meant["gold"].items():
        of = [digests[path] for path in gold_reads(table)]
        digests[GOLD.path(name)] = digest({"above": of if len(of) > 1 else of[0], "gold": table})
        if not table.get("reads"):
            digests[LATE.path(name)] = digests[GOLD.path(name)]
    return digests


def gold_reads(table: Meaning) -> list[str]:
    """The paths of the tables that a gold table reads, from its part of a meaning."""
    if reads := table.get("reads"):
        return [GOLD.path(reads)]
    return [SILVER.path(each) for each in table.get("inputs") or [table["silver"]]]


def _read_together(meant: Meaning) -> Iterator[list[str]]:
    """The names of the sources of each gold table that reads several."""
    for table in meant["gold"].values():
        read = [] if table.get("reads") else table.get("inputs", ())
        sources = sorted({meant["silver"][each]["source"] for each in read})
        if len(sources) > 1:
            yield sources


def _plain(value: Any) -> Any:
    if isinstance(value, timedelta):
        return value // timedelta(microseconds=1)
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, DataType):
        return str(value)
    if isinstance(value, Measure):
        return _measure(value)
    if not dataclasses.is_dataclass(value):
        return value
    fields = _fields(value, _NOT_MEANT.get(type(value), ()))
    if isinstance(value, Source):
        fields[value.kind] = _fields(value.reads, connector_of(value).not_meant)
    if isinstance(value, GoldTable):
        fields |= _plain(operator_of(value).meaning(value.operator))
        fields |= {"reads": value.reads} if value.reads else {}
        several = len(value.inputs) > 1
        fields |= {"inputs": _plain(value.inputs)} if several else {"silver": value.silver}
        # Event time is left out: the digests of tables from before there was a choice stay.
        fields |= {} if value.time == "event" else {"time": value.time}
    if isinstance(value, SilverTable):
        fields |= _optional(value)
    for name in _expressions(value):
        fields[name] = canonical(fields[name])
    return fields


def _optional(table: SilverTable) -> dict[str, Any]:
    # The rules apply from the next batch on. Only the presence of a suite is part of the table.
    suite = {} if table.suite is None else {"expectations": True}
    return suite if table.explode is None else {**suite, "explode": _plain(table.explode)}


def _measure(measure: Measure) -> dict[str, Any]:
    filter_ = {} if measure.filter is None else {"filter": canonical(measure.filter)}
    return {
        "name": measure.name,
        "function": measure.function,
        "argument": ", ".join(canonical(each.text) for each in measure.arguments) or None,
        "argument_type": ", ".join(str(each.type) for each in measure.arguments) or None,
        "type": str(measure.type),
        **filter_,
    }


def _fields(value: Any, not_meant: Collection[str]) -> dict[str, Any]:
    """The fields, without those in ``not_meant``."""
    names = (each.name for each in dataclasses.fields(value))
    return {name: _plain(getattr(value, name)) for name in names if name not in not_meant}


def _expressions(value: Any) -> list[str]:
    names = {Derived: "expression", SilverTable: "where", GoldTable: "where"}
    name = names.get(type(value))
    return [name] if name and getattr(value, name) is not None else []
