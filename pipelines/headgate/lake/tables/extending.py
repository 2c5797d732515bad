"""Adds fields inside a table's columns, in a commit that changes no file.

Readers return null for a field that a file lacks. So fields can be added at the end of structs,
also inside arrays and maps, and nowhere else (docs/adr/0025).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from deltalake import Schema

from headgate.declaration.types import BIGINT, INT, SMALLINT, TINYINT, Array, DataType, Map, Struct
from headgate.lake.tables.state import State, commit_time
from headgate.lake.tables.table import Table

_NAMES = {BIGINT: "long", INT: "integer", SMALLINT: "short", TINYINT: "byte"}


def extend(table: Table, schema: Schema, definition: str, now: datetime) -> State:
    """Give a table a schema that ``extends`` its own, and another definition, in one commit. Its
    rows stay as they are. Raises CommitRefusedError, FencedError."""
    state = replace(
        table.refresh().held("extend", table.epoch), definition=definition, at=commit_time(now)
    )
    return table.commit(state, wider=schema if schema != table.handle.schema() else None)


def extends(schema: Schema, other: Schema) -> bool:
    """Whether ``schema`` is ``other`` with any number of fields added at the end of structs inside
    its columns."""
    after, before = (json.loads(each.to_json())["fields"] for each in (schema, other))
    return len(after) == len(before) and all(map(_extends, after, before))


def extended(schema: Schema, columns: Mapping[str, DataType]) -> Schema | None:
    """A table's schema, with the given types for some of its columns; None if the table's files
    cannot be read with these types."""
    held = json.loads(schema.to_json())
    for field in held["fields"]:
        if field["name"] in columns:
            field["type"] = _delta_type(columns[field["name"]])
    wider = Schema.from_json(json.dumps(held))
    return wider if extends(wider, schema) else None


def _extends(after: Any, before: Any) -> bool:
    """As ``extends``, for two types or fields in Delta's JSON."""
    if not (isinstance(after, dict) and isinstance(before, dict)):
        return bool(after == before)
    if "fields" in after and "fields" in before:
        old, new = before["fields"], after["fields"][: len(before["fields"])]
        return len(old) == len(new) and all(map(_extends, new, old))
    return after.keys() == before.keys() and all(_extends(after[key], before[key]) for key in after)


def _delta_type(type_: DataType) -> Any:
    """A type as Delta writes it."""
    if isinstance(type_, Struct):
        fields = [
            {"name": name, "type": _delta_type(of), "nullable": True, "metadata": {}}
            for name, of in type_.fields
        ]
        return {"type": "struct", "fields": fields}
    if isinstance(type_, Array):
        element = _delta_type(type_.element)
        return {"type": "array", "elementType": element, "containsNull": True}
    if isinstance(type_, Map):
        key, value = _delta_type(type_.key), _delta_type(type_.value)
        return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}
    return _NAMES.get(type_, str(type_))  # type: ignore[call-overload]
