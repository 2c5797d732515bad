"""Checks whether a changed declaration only adds fields inside of columns: pure functions.

For such a change no record is read again: the fields are null in earlier records (docs/adr/0025).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from headgate.declaration.errors import Invalid
from headgate.declaration.kinds import BRONZE, GOLD, LATE, SILVER, kind_of, name_of
from headgate.declaration.model import Pipeline
from headgate.declaration.type_parser import parse_type
from headgate.declaration.types import DataType, Struct, extends, is_nested

_TYPES = ("type", "argument_type")


def only_adds(path: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether two declarations of a bronze, silver or gold table and of its upstream tables differ
    at most in fields that are added at the end of structs inside of columns.

    ``before`` and ``after`` are the meanings of the declarations. A new column does not count as
    such a field: ``unknown_fields`` applied to undeclared fields when the record was read.
    """
    is_same = before["version"] == after["version"] and before["pipeline"] == after["pipeline"]
    return is_same and all(
        _only_adds(before[section].get(name), after[section][name])
        for section, name in _upwards(path, after)
    )


def _upwards(path: str, meaning: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The section and the name of a table, and of each of its upstream tables."""
    kind, name = kind_of(path), name_of(path)
    if kind == GOLD:
        yield "gold", name
        kind, name = SILVER, meaning["gold"][name]["silver"]
    if kind == SILVER:
        yield "silver", name
        name = meaning["silver"][name]["source"]
    yield "sources", name


def _only_adds(before: Any, after: Any, key: str = "") -> bool:
    """As ``only_adds``, for the parts of two meanings under ``key``."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        return before.keys() == after.keys() and all(
            _only_adds(before[each], after[each], each) for each in before
        )
    if isinstance(before, list) and isinstance(after, list):
        return len(before) == len(after) and all(map(_only_adds, before, after))
    if before != after and key in _TYPES:
        # A measure of another package may have a type that no declaration can name.
        with suppress(Invalid):
            return extends(parse_type(str(after)), parse_type(str(before)))
    return bool(before == after)


def nested_columns(pipeline: Pipeline, path: str) -> dict[str, DataType]:
    """The declared types of the columns of a table that fields can be added to."""
    kind, name = kind_of(path), name_of(path)
    if kind == BRONZE:
        return {"record": Struct.of(pipeline.sources[name].record.types)}
    if kind == LATE:
        kind, name = SILVER, pipeline.gold[name].silver
    if kind != SILVER:
        return {}
    return {n: type_ for n, type_ in pipeline.silver[name].types.items() if is_nested(type_)}
