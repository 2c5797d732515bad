"""The digest of what a pipeline means.

Two declarations with one digest fill the same tables with the same rows. Comments, layout,
defaults written out, the order of tables, `jobs` and where a source lies do not count.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from headgate.spec.model import Derived, FilesSource, GoldTable, Measure, SilverTable, Source
from headgate.spec.tokens import canonical

# Raised when the meaning of a declaration changes without its text changing.
MEANING_VERSION = 1
_DEPLOYMENT = ("path", "settle", "max_files_per_batch", "max_bytes_per_batch")


def digest(
    name: str,
    sources: Mapping[str, Source],
    silver: Mapping[str, SilverTable],
    gold: Mapping[str, GoldTable],
) -> str:
    """SHA-256, in hexadecimal, of the canonical JSON of these."""
    meaning = {
        "version": MEANING_VERSION,
        "pipeline": name,
        "sources": _plain(sources),
        "silver": _plain(silver),
        "gold": _plain(gold),
    }
    text = json.dumps(meaning, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _plain(value: Any) -> Any:
    if isinstance(value, timedelta):
        return value // timedelta(microseconds=1)
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if not dataclasses.is_dataclass(value):
        return value
    fields = {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, FilesSource):
        fields = {name: item for name, item in fields.items() if name not in _DEPLOYMENT}
    for name in _expressions(value):
        fields[name] = canonical(fields[name])
    return fields


def _expressions(value: Any) -> list[str]:
    names = {Derived: "expression", Measure: "argument", SilverTable: "where", GoldTable: "where"}
    name = names.get(type(value))
    return [name] if name and getattr(value, name) is not None else []
