"""Converts conditions on rows from the form of Great Expectations to Spark SQL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headgate.declaration.expressions.words import readable
from headgate.declaration.suites.arguments import text_literal

_OPERATORS = {"==": "=", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_OF_SETS = {"IN": "in", "NOT_IN": "not in"}
_JOINED = {"and": " and ", "or": " or "}


class UnsupportedError(Exception):
    """A part of a suite that a suite of Headgate cannot express. The message says why."""


def row_condition(stored: Any, parser: Any) -> str:
    """A ``row_condition`` as Spark SQL. ``parser`` is the ``condition_parser`` that was stored with
    it; it decides what a text means. Raises UnsupportedError."""
    if isinstance(stored, str):
        return _sql(stored, parser)
    # Conditions that Headgate has exported are without a parser.
    return _condition(stored, "spark" if parser is None else parser)


def _sql(text: str, parser: Any) -> str:
    if parser != "spark":
        raise UnsupportedError(
            f"its row_condition is for the condition_parser {parser}; write it as Spark SQL, with "
            "the condition_parser spark"
        )
    return text


def _condition(stored: Any, parser: Any) -> str:
    try:
        kind = stored["type"]
        if kind == "pass_through":
            return _sql(str(stored["pass_through_filter"]), parser)
        if kind in _JOINED:
            parts = (f"({_condition(each, parser)})" for each in stored["conditions"])
            return _JOINED[kind].join(parts)
        name = readable(stored["column"]["name"])
        if kind == "nullity":
            return f"{name} is null" if stored["is_null"] else f"{name} is not null"
        return _comparison(name, stored)
    except (KeyError, TypeError, IndexError) as error:
        raise UnsupportedError("its row_condition has a form that is not known") from error


def _comparison(name: str, stored: Mapping[str, Any]) -> str:
    operator, value = stored["operator"], stored["parameter"]
    if operator in _OF_SETS:
        return f"{name} {_OF_SETS[operator]} ({', '.join(map(_literal, value))})"
    return f"{name} {_OPERATORS[operator]} {_literal(value)}"


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | Number):
        return str(value)
    if isinstance(value, str):
        return text_literal(value)
    raise TypeError(value)


class Number(str):
    """A number of a JSON document that is not a whole number, with the digits as written."""

    __slots__ = ()
