"""JSON Schemas of declarations and other files, for editors that complete and check while a person
types.

Generated from their keys. They check shapes only; ``headgate plan`` checks names and expressions.
"""

from __future__ import annotations

import json
from typing import Any

from headgate.declaration.kafka.values import (
    ENDS,
    PROPERTY_PATTERN,
    SECRET_PATTERN,
    SERVERS_PATTERN,
    TIME_PATTERN,
    TOPIC_PATTERN,
)
from headgate.declaration.keys.key import Key
from headgate.declaration.keys.pipeline import pipeline_key
from headgate.declaration.names import (
    COLUMN_PATTERN,
    HEADER_PATTERN,
    NAME_PATTERN,
    PATH_PATTERN,
)
from headgate.declaration.quantities import DURATION_PATTERN, SHARE_PATTERN, SIZE_PATTERN
from headgate.declaration.types import DECLARED

_PLACEHOLDER = {"type": "string", "pattern": r"\$\{(env|file):[^{}]+\}"}
# `headgate plan` checks what is inside the brackets: a pattern cannot.
_TYPE = rf"^({'|'.join(DECLARED)}|decimal\([0-9]+, ?[0-9]+\)|(array|map|struct)<.+>)$"
_COLUMN = {"type": "string", "pattern": COLUMN_PATTERN}
_NAMES = {"type": "array", "items": _COLUMN}
_PATH = {"type": "string", "pattern": PATH_PATTERN}
_EXPRESSION = {"type": ["string", "number", "boolean"]}
_TIME = {"type": "string", "pattern": TIME_PATTERN}
_OFFSETS = {
    "type": "object",
    "propertyNames": {"pattern": "^[0-9]+$"},
    "additionalProperties": {"type": "integer", "minimum": 0},
    "minProperties": 1,
}
_SCALARS: dict[str, dict[str, Any]] = {
    "text": {"type": "string", "minLength": 1},
    "name": {"type": "string", "pattern": NAME_PATTERN},
    "column": _COLUMN,
    "path": _PATH,
    "field": {"type": "string"},
    "boolean": {"type": "boolean"},
    "size": {"anyOf": [{"type": "integer"}, {"type": "string", "pattern": SIZE_PATTERN}]},
    "duration": {"type": "string", "pattern": DURATION_PATTERN},
    "delimiter": {"type": "string", "pattern": r"""^[^"\r\n]$"""},
    "share": {"type": "string", "pattern": SHARE_PATTERN},
    "type": {"type": "string", "pattern": _TYPE},
    "expression": _EXPRESSION,
    "names": {**_NAMES, "uniqueItems": True},
    "paths": {"type": "array", "items": _PATH, "uniqueItems": True},
    "servers": {"type": "string", "pattern": SERVERS_PATTERN},
    "topic": {"type": "string", "pattern": TOPIC_PATTERN},
    "pattern": {"type": "string", "minLength": 1},
    "start": {"anyOf": [{"enum": list(ENDS)}, _TIME, _OFFSETS]},
}


def json_schema() -> dict[str, Any]:
    """The schema of a whole declaration."""
    return schema_of(pipeline_key(), "A Headgate pipeline")


def schema_of(file: Key, title: str) -> dict[str, Any]:
    """The schema of a file whose keys are those of the section ``file``."""
    draft = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": draft, "title": title, **_schema(file)}


def json_text(schema: dict[str, Any] | None = None) -> str:
    """The text of the file of a schema, by default the schema of declarations."""
    return json.dumps(schema or json_schema(), indent=2, ensure_ascii=False) + "\n"


def _schema(key: Key) -> dict[str, Any]:
    schema = _shape(key)
    if key.deployment:
        schema = {"anyOf": [schema, _PLACEHOLDER]}
    if key.doc:
        schema["description"] = key.doc
    if key.default is not None:
        schema["default"] = _default(key.default)
    return schema


def _shape(key: Key) -> dict[str, Any]:
    if (short := key.child(key.short)) is not None:
        return {"anyOf": [_shape(short), _section(key)]}
    if key.kind == "section":
        return _section(key)
    if key.kind == "pairs":
        names = {"pattern": COLUMN_PATTERN}
        table = {"type": "object", "propertyNames": names, "additionalProperties": _COLUMN}
        return {"anyOf": [{**_NAMES, "minItems": 1}, {**table, "minProperties": 1}]}
    if key.kind in ("table", "groups"):
        entry = _schema(key.entry) if key.entry else _EXPRESSION
        of_columns = key.of_columns or key.kind == "groups"
        table = {
            "type": "object",
            "propertyNames": {"pattern": COLUMN_PATTERN if of_columns else NAME_PATTERN},
            "additionalProperties": entry,
        }
        return {**table, "minProperties": 1} if key.kind == "table" else {"anyOf": [_NAMES, table]}
    if key.kind == "choice":
        return {"enum": list(key.choices)}
    if key.choices:
        return {"anyOf": [{"enum": list(key.choices)}, _SCALARS[key.kind]]}
    if key.kind == "options":
        return _options(key)
    if key.kind == "headers":
        names = {"pattern": HEADER_PATTERN}
        return {
            "type": "object",
            "propertyNames": names,
            "additionalProperties": {"type": "string"},
        }
    if key.kind == "integer":
        return {"type": "integer", "minimum": key.low, "maximum": key.high}
    return dict(_SCALARS[key.kind])


def _section(key: Key) -> dict[str, Any]:
    children = [child for child in key.children if not child.comes_next]
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {child.name: _schema(child) for child in children},
        "additionalProperties": False,
    }
    needed = {child.name: key.replacing(child.name) for child in children if child.required}
    required = [name for name, paths in needed.items() if not paths]
    if required:
        schema["required"] = required
    either = [[(name,), *paths] for name, paths in needed.items() if paths]
    if either:
        schema["allOf"] = [{"anyOf": [_given(path) for path in paths]} for paths in either]
    if key.one_of:
        schema["oneOf"] = [{"required": [name]} for name in key.one_of]
    return schema


def _given(path: tuple[str, ...]) -> dict[str, Any]:
    """That a section has a key, or one of its sections has."""
    first, *rest = path
    inner = {"properties": {first: _given(tuple(rest))}} if rest else {}
    return {"required": [first], **inner}


def _options(key: Key) -> dict[str, Any]:
    return {
        "type": "object",
        "propertyNames": {"pattern": PROPERTY_PATTERN, "not": {"enum": list(key.refused)}},
        "patternProperties": {SECRET_PATTERN: _PLACEHOLDER},
        "additionalProperties": {"type": ["string", "number", "boolean"]},
    }


def _default(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
