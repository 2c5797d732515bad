"""The digest of what a pipeline means.

Two declarations with one digest fill the same tables with the same rows. Comments, layout,
defaults written out, the order of tables, `jobs` and where a source lies do not count.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from headgate.declaration.expressions.tokens import canonical
from headgate.declaration.kinds import BRONZE, GOLD, LATE, QUARANTINE, REJECTED, SILVER
from headgate.declaration.model import (
    Derived,
    GoldTable,
    Measure,
    Pipeline,
    SilverTable,
    Source,
)
from headgate.declaration.operators import operator_of
from headgate.declaration.sources import kind_of_source
from headgate.declaration.types import DataType

# Raised when the meaning of a declaration changes without its text changing.
MEANING_VERSION = 1
# Raised when gold tables of the same meaning are laid out in another way. 2: without ``_state``.
GOLD_LAYOUT = 2
# What does not change which rows a table has: how work is spread, what is expected of a source's
# health. What a source reads has more of it, which its kind knows.
_NOT_MEANT: dict[type, tuple[str, ...]] = {
    GoldTable: ("salt", "kind", "operator", "suite", "late"),
    SilverTable: ("suite",),
    Source: ("kind", "reads", "expect_input_every", "expect_event_time_within"),
}


Meaning = Mapping[str, Any]


def meaning(
    name: str,
    sources: Mapping[str, Source],
    silver: Mapping[str, SilverTable],
    gold: Mapping[str, GoldTable],
) -> Meaning:
    """What a declaration says, as plain values: two that mean the same are equal here."""
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


def table_digests(meant: Meaning, gold_layout: int = GOLD_LAYOUT) -> dict[str, str]:
    """The digest of each table, by its path: of what is declared of it and of all above it."""
    layout = {} if gold_layout == 1 else {"layout": gold_layout}
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
    for name, table in meant["gold"].items():
        above = digests[SILVER.path(table["silver"])]
        digests[GOLD.path(name)] = digest({"above": above, "gold": table, **layout})
        digests[LATE.path(name)] = digests[GOLD.path(name)]
    return digests


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
    if not dataclasses.is_dataclass(value):
        return value
    fields = _fields(value, _NOT_MEANT.get(type(value), ()))
    if isinstance(value, Source):
        fields[value.kind] = _fields(value.reads, kind_of_source(value).not_meant)
    if isinstance(value, GoldTable):
        fields |= _plain(operator_of(value).meaning(value.operator))
    if isinstance(value, SilverTable) and value.suite is not None:
        # Its rules apply from the next batch on, so they are not part of what a table is.
        fields["expectations"] = True
    for name in _expressions(value):
        fields[name] = canonical(fields[name])
    return fields


def _fields(value: Any, not_meant: Collection[str]) -> dict[str, Any]:
    names = (field.name for field in dataclasses.fields(value) if field.name not in not_meant)
    return {name: _plain(getattr(value, name)) for name in names}


def _expressions(value: Any) -> list[str]:
    names = {Derived: "expression", Measure: "argument", SilverTable: "where", GoldTable: "where"}
    name = names.get(type(value))
    return [name] if name and getattr(value, name) is not None else []
