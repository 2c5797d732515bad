"""Imports the JSON of a suite of Great Expectations as rules of Headgate."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from headgate import exit_codes
from headgate.declaration.errors import Invalid
from headgate.declaration.expectations.exporting import META, SELECT, SQL, filter_of, query_of
from headgate.declaration.expectations.written import WrittenRule, id_for, new_id, suite_text
from headgate.declaration.expressions.bare_words import readable
from headgate.declaration.expressions.hardening import harden
from headgate.declaration.reading.checked import ProblemReport
from headgate.declaration.suites.arguments import named_columns, text_literal
from headgate.declaration.suites.model import complete
from headgate.declaration.suites.reading import RowSubject, RuleSubject, VersionSubject, read_suite
from headgate.declaration.suites.rows import ROW_EXPECTATIONS
from headgate.declaration.suites.versions import TABLE_EXPECTATIONS
from headgate.declaration.types import DataType
from headgate.errors import HeadgateError

_OPERATORS = {"==": "=", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_OF_SETS = {"IN": "in", "NOT_IN": "not in"}
_JOINED = {"and": " and ", "or": " or "}


class UnsupportedError(Exception):
    """A part of a suite that a suite of Headgate cannot express. The message says why."""


def _spark_condition(stored: Any, parser: Any) -> str:
    """A ``row_condition`` as Spark SQL. ``parser`` is the ``condition_parser`` that was stored with
    it; it decides what a text means. Raises UnsupportedError."""
    if isinstance(stored, str):
        return _condition_sql(stored, parser)
    # Conditions that Headgate has exported are without a parser.
    return _condition(stored, "spark" if parser is None else parser)


def _condition_sql(text: str, parser: Any) -> str:
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
            return _condition_sql(str(stored["pass_through_filter"]), parser)
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


# Arguments that control how a run reports; they do not concern rows.
_OF_RUNS = ("batch_id", "catch_exceptions", "include_config", "result_format", "condition_parser")
_ASKS = (*_OF_RUNS, "row_condition")
_BEFORE_NOW = re.compile(r"now\(\) - timedelta\(seconds=(\d+(?:\.\d{1,3})?)\)")
_QUERY = re.compile(re.escape(SELECT).replace(r"\ ", r"\s+") + r"(.+)", re.DOTALL | re.IGNORECASE)
_OWN_PATH = re.compile(r"^expectations(\[0\]\.?)?")
_ADVICE = "to stop the stream if many rows break it, write action: stop and above: 20 %"


class NotASuiteError(HeadgateError, code=exit_codes.USAGE):
    """The text is not the JSON of a suite."""


@dataclass(frozen=True)
class Unsupported:
    """An expectation that Headgate cannot express. ``number`` is its place in the suite, from 1."""

    number: int
    name: str
    reason: str

    def __str__(self) -> str:
        return f"  {self.number}. {self.name}: {self.reason}"


@dataclass(frozen=True)
class Imported:
    """``name`` is the name that the suite has in its JSON."""

    name: str
    rules: tuple[WrittenRule, ...]
    unsupported: tuple[Unsupported, ...]


def imported(text: str, file: str, *, of_gold: bool = False) -> Imported:
    """Read the JSON of a suite, for a silver table or for one ``of_gold``. Checks that need the
    table's columns are left to ``plan``. Raises NotASuiteError."""
    name, items = _items(text, file)
    rules: list[WrittenRule] = []
    unsupported: list[Unsupported] = []
    taken: set[str] = set()
    for number, item in enumerate(items, 1):
        called = str(item.get("type") or item.get("expectation_type"))
        try:
            rule = _rule(called, item, taken, _OF_GOLD if of_gold else _OF_SILVER)
        except UnsupportedError as error:
            unsupported.append(Unsupported(number, called, str(error)))
            continue
        taken.add(rule.keys["id"])
        rules.append(rule)
    return Imported(name, tuple(rules), tuple(unsupported))


def _items(text: str, file: str) -> tuple[str, list[Mapping[str, Any]]]:
    remedy = "name the JSON of a suite, as Great Expectations keeps it in its expectations folder"
    try:
        document = json.loads(text, parse_float=_number, parse_constant=Number)
    except (ValueError, RecursionError) as error:
        raise NotASuiteError(f"{file} is not JSON: {error}", remedy) from error
    found = document.get("expectations") if isinstance(document, dict) else None
    if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
        raise NotASuiteError(f"{file} is not a suite: it has no list of expectations", remedy)
    return str(document.get("name") or document.get("expectation_suite_name") or ""), found


def _number(text: str) -> int | Number:
    """A number of the JSON. Great Expectations writes some whole numbers as 1.0."""
    value = Decimal(text)
    is_whole = value.adjusted() < 39 and value == value.to_integral_value()
    return int(value) if is_whole else Number(text)


@dataclass(frozen=True)
class _Side:
    """What suites of one kind of table may contain. ``usual`` is the default action; an expectation
    of theirs that is not critical only warns. The expectations ``elsewhere`` are those of the other
    kind."""

    name: str
    subject: RuleSubject
    arguments: Mapping[str, Collection[str]]
    usual: str
    elsewhere: Collection[str]


def _rule(called: str, item: Mapping[str, Any], taken: set[str], side: _Side) -> WrittenRule:
    meta, given = _map(item, "meta"), dict(_map(item, "kwargs"))
    ours = _map(meta, META)
    _take_mostly(called, given, side)
    if called == SQL:
        asked = _sql(given, ours)
    else:
        asked = {"expect": called, **_arguments(called, given, side), **_rows(given, ours)}
    wanted = str(ours.get("id") or id_for(called, *named_columns(given)))
    keys = {"id": new_id(wanted, taken), **asked}
    severity = item.get("severity") or "critical"
    action = ours.get("action") or (side.usual if severity == "critical" else "warn")
    for key, value, usual in (("severity", severity, "critical"), ("action", action, side.usual)):
        if value != usual:
            keys[key] = value
    if "above" in ours:
        keys["above"] = _share(ours["above"])
    rule = WrittenRule(keys, str(item.get("description") or ""))
    _check(rule, side.subject)
    return rule


def _map(item: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = item.get(key)
    return found if isinstance(found, dict) else {}


def _arguments(called: str, given: Mapping[str, Any], side: _Side) -> dict[str, Any]:
    known = side.arguments.get(called)
    if known is None:
        hint = "; it is for the suites of gold tables: --gold" * (called in side.elsewhere)
        raise UnsupportedError(f"is not supported for {side.name}{hint}")
    arguments = {k: stored_time(v) for k, v in given.items() if k not in _ASKS and v is not None}
    for name, value in arguments.items():
        if name not in known:
            raise UnsupportedError(f"its argument {name} is not supported")
        if not _is_plain(value):
            raise UnsupportedError(f"its argument {name} must be a value or a list of values")
    return arguments


def _is_plain(value: Any) -> bool:
    return all(map(_is_plain, value)) if isinstance(value, list) else isinstance(value, str | int)


def _take_mostly(called: str, given: dict[str, Any], side: _Side) -> None:
    """Remove ``mostly`` if it is 1, which Great Expectations writes, too. Raises UnsupportedError
    if the expectation does not accept another ``mostly``."""
    mostly = given.get("mostly")
    if mostly in (None, 1):
        given.pop("mostly", None)
    elif "mostly" not in side.arguments.get(called, ("mostly",)):
        raise UnsupportedError(
            f"mostly is not for rows, each of which meets a rule or not; {_ADVICE}"
        )


def stored_time(value: Any) -> Any:
    """A time before the validation, if ``value`` has the form of the export; otherwise
    ``value``."""
    text = value.get("$PARAMETER") if isinstance(value, dict) else None
    found = _BEFORE_NOW.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        return value
    seconds = Decimal(found[1])
    return f"now - {seconds} s" if seconds % 1 == 0 else f"now - {seconds * 1000:.0f} ms"


def _rows(given: Mapping[str, Any], ours: Mapping[str, Any]) -> dict[str, str]:
    stored = given.get("row_condition")
    if stored in (None, ""):
        return {}
    written = ours.get("row_condition")
    if isinstance(written, str) and _is(stored, lambda: filter_of(written)):
        return {"row_condition": written}
    return {"row_condition": _spark_condition(stored, given.get("condition_parser"))}


def _sql(given: Mapping[str, Any], ours: Mapping[str, Any]) -> dict[str, str]:
    query = str(given.get("unexpected_rows_query"))
    expect, rows = ours.get("expect"), ours.get("row_condition", "")
    if (
        isinstance(expect, str)
        and isinstance(rows, str)
        and _is(query, lambda: _whole(expect, rows))
    ):
        return {"expect": expect} | ({"row_condition": rows} if rows else {})
    found = _QUERY.fullmatch(query.strip().rstrip(";"))
    if found is None:
        raise UnsupportedError(f"its query is not of the form {SELECT}…, which is about one row")
    condition = found[1].strip().replace("{{", "{").replace("}}", "}")
    return {"expect": f"not ({condition})"}


def _whole(expect: str, rows: str) -> str:
    parts = [f"({harden(text.strip())})" if text else "" for text in (expect, rows)]
    return query_of(complete(*parts))


def _is(stored: Any, exported: Any) -> bool:
    """Whether a stored value still equals the exported one."""
    try:
        return bool(stored == exported())
    except Invalid:
        return False


def _share(above: Any) -> str:
    try:
        return f"{float(above) * 100:.10f}".rstrip("0").rstrip(".") + " %"
    except (TypeError, ValueError):
        return str(above)


class _AnyColumn(Mapping[str, DataType | None]):
    """The columns of an unknown table: it has a column of every name."""

    def __getitem__(self, name: str) -> None:
        return None

    def __contains__(self, name: object) -> bool:
        return True

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


_ANY = _AnyColumn()
_OF_SILVER = _Side(
    "rows",
    RowSubject(_ANY),
    {name: [a.name for a in row.arguments] for name, row in ROW_EXPECTATIONS.items()},
    "quarantine",
    TABLE_EXPECTATIONS.keys(),
)
_OF_GOLD = _Side(
    "versions",
    VersionSubject(_ANY, _ANY, _ANY, 1),
    {name: [a.name for a in arguments] for name, arguments in TABLE_EXPECTATIONS.items()},
    "hold",
    (),
)


def _check(rule: WrittenRule, subject: RuleSubject) -> None:
    """Raises UnsupportedError if a suite of Headgate cannot have the rule, whatever the columns
    are."""
    report = ProblemReport(Path())
    read_suite("", suite_text([rule]), subject, report)
    said = [f"{_OWN_PATH.sub('', p.key)} {p.message}".strip() for p in report.problems]
    if said:
        raise UnsupportedError("; ".join(said))
