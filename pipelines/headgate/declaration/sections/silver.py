"""The `silver` part of a declaration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from headgate.declaration.errors import Invalid
from headgate.declaration.expressions.expression import (
    Expression,
    parse_condition,
    parse_expression,
)
from headgate.declaration.expressions.inference import Scope, Unresolved
from headgate.declaration.expressions.typed import with_article
from headgate.declaration.model import Column, Derived, Explode, SilverTable
from headgate.declaration.names import LATE_COLUMNS, SILVER_COLUMNS, in_other_case, nearest
from headgate.declaration.reading.checked import Field, Partial, ProblemReport, Section, partial
from headgate.declaration.sections.source import UNKNOWN, SourceColumns, type_at
from headgate.declaration.suites.model import Suite
from headgate.declaration.suites.reading import RowSubject, RuleSubject
from headgate.declaration.types import Array, DataType

Parsed = TypeVar("Parsed")
Named = TypeVar("Named")
ReadSuite = Callable[[Field, RuleSubject], Suite | None]
"""Reads the suite that a key names; returns None if it cannot be read, which is reported."""


def build_silver(
    section: Section,
    name: str,
    sources: Mapping[str, SourceColumns],
    read_suite: ReadSuite,
    report: ProblemReport,
) -> tuple[SilverTable, Scope]:
    """The table, and the scope it gives to gold.

    ``read_suite`` reads the rules. Problems are reported; the table is then never used.
    """
    source, known = reference(section, sources, "source", report)
    columns = section.entries("columns")
    record, added, time = known or UNKNOWN
    explode, item = _explode(section, record, report)
    unread = isinstance(record, Partial) or section.reported("explode")
    fields = partial({**item, **record}, missing=unread)
    derived = derive(columns, partial({**fields, **added}, missing=unread), report)
    changed = columns.get(time or "")
    if changed is not None:
        report.at(changed, "would change the event time, which windows use")
    types = {item.name: item.type for item in derived}
    unknown = unread or section.reported("columns")
    scope = partial({**fields, **{n: types.get(n) for n in columns}}, missing=unknown)
    where = condition(section.get("where"), partial({**scope, **added}, missing=unknown), report)
    dropped = _dropped(section, scope, report)
    exploded = {explode.array} - columns.keys() if explode else set()
    absent = {*dropped, *exploded}
    kept = partial({n: t for n, t in scope.items() if n not in absent}, missing=unknown)
    _check_kept(kept, section, columns, report)
    schema = tuple(Column(n, type_) for n, type_ in kept.items() if type_ is not None)
    named = section.get("expectations")
    held = partial({**kept, **SILVER_COLUMNS, **added}, missing=unknown)
    suite = read_suite(named, RowSubject(held)) if named else None
    return SilverTable(name, source, derived, dropped, where, schema, suite, explode), kept


def _explode(
    section: Section, fields: Scope, report: ProblemReport
) -> tuple[Explode | None, dict[str, DataType | None]]:
    """What the table explodes, and the column of the item; its type is None if it is not known."""
    entries = section.entries("explode")
    names = list(entries)
    for name in names[1:]:
        message = f"a table explodes one array, and {names[0]!r} is one; write another table"
        report.at(entries[name], message)
    if not names or entries[names[0]].value is None:
        return None, dict.fromkeys(names)
    name, at = names[0], Section.of(entries[names[0]])
    for taken in (each for each in fields if each.lower() == name.lower()):
        report.at(at, f"the record has a column {taken!r}; give the item another name")
    array = at.get("array")
    type_ = type_at(array, fields, report) if array else None
    if array is None or not isinstance(type_, Array):
        if array is not None and type_ is not None:
            report.at(array, f"{array.text!r} is {with_article(type_)}, not an array")
        return None, {name: None}
    return Explode(name, **at.values("array", "empty")), {name: type_.element}


def reference(
    section: Section, known: Mapping[str, Named], what: str, report: ProblemReport
) -> tuple[str, Named | None]:
    """The table or source that ``from`` names, and its columns; None if they are not known. A wrong
    name is reported, and the name that was probably meant is used instead, so that expressions over
    it are still checked."""
    field = section.get("from")
    name = field.text if field else ""
    if field and name not in known:
        guess = nearest(name, known)
        report.at(field, f"there is no {what} {name!r}", guess)
        name = guess or ""
    elif field is None and len(known) == 1:
        (name,) = known
    return name, known.get(name)


def derive(
    entries: Mapping[str, Field],
    scope: Scope,
    report: ProblemReport,
    parse: Callable[[str, Scope], Expression] = parse_expression,
) -> tuple[Derived, ...]:
    """The expressions of a map of columns; those that are wrong are reported and left out."""
    derived = []
    for name, field in entries.items():
        found = checked(field, scope, parse, report)
        if found is not None:
            derived.append(Derived(name, found.text, found.type))
    return tuple(derived)


def condition(field: Field | None, scope: Scope, report: ProblemReport) -> str | None:
    """The text of a `where`, or None if there is none."""
    found = checked(field, scope, parse_condition, report)
    return found.text if found else None


def checked(
    field: Field | None,
    scope: Scope,
    parse: Callable[[str, Scope], Parsed],
    report: ProblemReport,
) -> Parsed | None:
    """``parse`` the text of ``field``, reporting what does not fit."""
    if field is None or field.value is None:
        return None
    try:
        return parse(field.text, scope)
    except Invalid as error:
        report.invalid(field, error)
    except Unresolved:
        pass
    return None


def _dropped(section: Section, scope: Scope, report: ProblemReport) -> tuple[str, ...]:
    field = section.get("drop")
    items = field.items if field else ()
    for item in items:
        if item.text not in scope:
            report.at(item, f"there is no column {item.text!r} to drop", nearest(item.text, scope))
    return tuple(item.text for item in items)


def _check_kept(
    kept: Scope, section: Section, columns: Mapping[str, Field], report: ProblemReport
) -> None:
    if not kept and not isinstance(kept, Partial):
        report.at(section, "drops every column")
    for name in kept:
        at = columns.get(name)
        if name.lower() in LATE_COLUMNS:
            report.at(
                at or section,
                f"the column {name!r} has the name of a column of late side tables; "
                "give it another name in columns and drop it",
            )
        # If both names are fields of the record, they are reported where they are declared.
        if at and (twin := in_other_case(name, kept)) and (twin not in columns or name > twin):
            message = f"differs only in case from {twin!r}, and a table cannot hold both; drop one"
            report.at(at, message)
