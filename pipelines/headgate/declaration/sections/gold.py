"""The `gold` part of a declaration."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from headgate.declaration.contracts.measure import MEASURES
from headgate.declaration.contracts.operator import OPERATORS, columns_of, operator_of
from headgate.declaration.expressions.expression import parse_column, parse_scalar
from headgate.declaration.expressions.inference import Scope
from headgate.declaration.expressions.measure import parse_measure
from headgate.declaration.model import AUTO, Derived, GoldTable, LateSchedule, Measure
from headgate.declaration.names import (
    INPUT,
    LATE_COLUMNS,
    SILVER_COLUMNS,
    STATUS_COLUMNS,
    WHY_LATE,
    WINDOW_COLUMNS,
    TimeKind,
    nearest,
)
from headgate.declaration.quantities import format_duration
from headgate.declaration.reading.checked import (
    Field,
    Partial,
    ProblemReport,
    Section,
    built,
    partial,
)
from headgate.declaration.sections.silver import ReadSuite, checked, condition, derive, reference
from headgate.declaration.suites.reading import VersionSubject
from headgate.declaration.types import DataType, Struct


@dataclass(frozen=True)
class _Readable:
    """What an append operator may read: the silver tables with their columns, and the source of
    each. ``gold`` are the names of the gold tables, which it cannot read."""

    silver: Mapping[str, Scope]
    sources: Mapping[str, str]
    gold: Collection[str]


def build_gold_tables(
    sections: Mapping[str, Section],
    scopes: Mapping[str, Scope],
    sources: Mapping[str, str],
    read_suite: ReadSuite,
    report: ProblemReport,
) -> dict[str, GoldTable]:
    """The gold tables, each after the one that it reads. ``scopes`` are the columns of each silver
    table, ``sources`` the source of each, ``read_suite`` reads the rules. Problems are reported;
    tables are then never used."""
    tables: dict[str, GoldTable] = {}
    readable = _Readable(partial(scopes, missing=False), sources, sections)
    known = partial({**scopes}, missing=isinstance(scopes, Partial))
    left = dict(sections)
    while left:
        ready = [n for n in left if (above := left[n].text("from")) not in left or above in scopes]
        if not ready:
            _report_circle(left, report)
            known |= {name: Partial() for name in left}
            ready = [*left]
        for name in ready:
            section = left.pop(name)
            if (append := _append_operator(section)) is not None:
                table = _build_append(name, section, *append, readable, read_suite, report)
            elif _has_wrong_append(section):
                table = None
            else:
                table = _build(section, name, known, tables, sources, read_suite, report)
            if table is None:
                known[name] = Partial()
                continue
            tables[name] = table
            missing = _names_of(section) != table.types.keys()
            known[name] = partial(scope_of_rollups(table), missing=missing)
    return tables


def _report_circle(sections: Mapping[str, Section], report: ProblemReport) -> None:
    for name, section in sections.items():
        if (at := section.get("from")) is not None:
            circle = "is in a circle of tables that read each other"
            report.at(at, f"{at.text!r} {'is the table itself' if at.text == name else circle}")


def _names_of(section: Section) -> set[str]:
    """The columns that an author has given a table, right or wrong."""
    return {*_names(section.get("by")), *section.entries("measures"), *section.entries("columns")}


def scope_of_rollups(table: GoldTable) -> dict[str, DataType]:
    """The columns that a table which reads a gold table can use: the keys, measures and columns of
    its rows, and a struct with the name of the table that has the begin and end of the result,
    unless a column has this name."""
    bounds = columns_of(table)
    return {**({table.name: Struct.of(bounds)} if bounds else {}), **table.types}


def _build(
    section: Section,
    name: str,
    scopes: Mapping[str, Scope],
    known: Mapping[str, GoldTable],
    sources: Mapping[str, str],
    read_suite: ReadSuite,
    report: ProblemReport,
) -> GoldTable | None:
    """The table. ``scopes`` are the columns of each table that it may read, ``known`` the gold
    tables among these, ``sources`` the source of each silver table."""
    above, columns_above = reference(section, scopes, "silver or gold table", report)
    scope: Scope = Partial() if columns_above is None else columns_above
    found = _operator(section, scope, report)
    columns = OPERATORS[found[0]].columns(found[1]) if found else WINDOW_COLUMNS
    if (input_ := known.get(above)) is not None:
        _check_rollup(section, input_, found, report)
    else:
        _check_late(columns, above, scope, section, report)
    groups = section.get("by")
    by = _groups(groups, scope, report)
    measures = _measures(section.entries("measures"), scope, report)
    entries = section.entries("columns")
    names = _names(groups), section.entries("measures"), entries
    _check_names((*columns, *STATUS_COLUMNS), names, report)
    own: dict[str, DataType | None] = {n: None for part in names[:2] for n in part}
    own |= {group.name: group.type for group in by}
    own |= {measure.name: measure.type for measure in measures}
    unknown = section.reported("by") or section.reported("measures")
    where = condition(section.get("where"), scope, report)
    computed = derive(entries, partial(own, missing=unknown), report, parse_scalar)
    held = {**columns, **STATUS_COLUMNS, **own, **dict.fromkeys(entries)}
    held |= {column.name: column.type for column in computed}
    named = section.get("expectations")
    subject = VersionSubject(
        scope=partial(held, missing=unknown),
        silver=scope,
        adds_up={*entries, *(m.name for m in measures if MEASURES[m.function].adds_up)},
        pairs_per_row=OPERATORS[found[0]].pairs_per_row(found[1]) if found else 1,
        reads=input_.name if input_ else None,
    )
    suite = read_suite(named, subject) if named else None
    if (live := section.get("live")) is not None and live.value:
        report.at(live, "open rows are always shown, except those of joins; remove it")
    if found is None:
        return None
    return GoldTable(
        name=name,
        inputs=input_.inputs if input_ else (above,),
        sources=input_.sources if input_ else (sources.get(above, ""),),
        reads=input_.name if input_ else None,
        kind=found[0],
        operator=found[1],
        where=where,
        by=by,
        measures=measures,
        columns=computed,
        suite=suite,
        late=built(LateSchedule, section.section("late")),
        time=_time(section),
        **section.values("allowed_lateness", "salt", "step"),
    )


def _append_operator(section: Section) -> tuple[str, str, Field] | None:
    """The append operator of a table, if it has one: its name, its key, and where that is."""
    for name in OPERATORS.names():
        for key in OPERATORS[name].keys if OPERATORS[name].appends else ():
            if (at := section.get(key.name)) is not None:
                return name, key.name, at
    return None


def _has_wrong_append(section: Section) -> bool:
    """Whether the key of an append operator is given, and wrong as a whole. If no operator is
    given, all their keys count as wrong."""
    kinds = (OPERATORS[name] for name in OPERATORS.names())
    keys = (key.name for kind in kinds if kind.appends for key in kind.keys)
    return any(map(section.reported, keys)) and not section.reported("window")


def _build_append(
    name: str,
    section: Section,
    kind: str,
    key: str,
    at: Field,
    readable: _Readable,
    read_suite: ReadSuite,
    report: ProblemReport,
) -> GoldTable | None:
    """A table of the append operator ``kind``, whose ``key`` is given. Expressions can use the
    columns of an input as ``input.column``."""
    operator, silver = OPERATORS[kind], readable.silver
    named = operator.inputs(key, at)
    inputs = _inputs(named, readable, report)
    missing = isinstance(silver, Partial) or len(inputs) < len(named)
    scope = partial({of: _row_of(silver[of]) for of in inputs}, missing=missing)
    value = operator.build(key, at, scope, report)
    entries = section.entries("columns")
    if not entries and not section.reported("columns"):
        columns_there = (f"{of}.{each}" for of in inputs for each in silver.get(of, ()))
        such = next((f", such as {each}" for each in columns_there), "")
        report.at(section, f"the key 'columns' is missing; it names what a row has{such}")
    ours = () if value is None else (*operator.columns(value), *STATUS_COLUMNS)
    _check_names(ours, ({}, {}, entries), report)
    of_results = {} if value is None else operator.of_results(value)
    missing = missing or value is None
    columns = derive(entries, partial({**scope, **of_results}, missing=missing), report)
    held: dict[str, DataType | None] = {**STATUS_COLUMNS, **dict.fromkeys(entries)}
    held |= {} if value is None else operator.columns(value)
    held |= {each.name: each.type for each in columns}
    subject = VersionSubject(
        scope=partial(held, missing=value is None),
        silver=scope,
        adds_up=(),
        pairs_per_row=None,
        appends=True,
    )
    rules = section.get("expectations")
    suite = read_suite(rules, subject) if rules else None
    if value is None or not inputs:
        return None
    return GoldTable(
        name=name,
        inputs=inputs,
        sources=tuple(readable.sources.get(each, "") for each in inputs),
        kind=kind,
        operator=value,
        where=None,
        by=(),
        measures=(),
        columns=columns,
        suite=suite,
        late=built(LateSchedule, section.section("late")),
        # A step reads rows again that are as old as the reach, so not every batch is one.
        **{"step": AUTO if operator.reach(value) else None}
        | section.values("allowed_lateness", "step", "live"),
    )


def _row_of(columns: Scope | None) -> DataType | None:
    """A row of an input as a struct, with columns in the order of ``silver_row``; None if the table
    or a column of it is not known, which is reported."""
    if columns is None:
        return None
    known = {name: type_ for name, type_ in columns.items() if type_ is not None}
    is_known = len(known) == len(columns) and not isinstance(columns, Partial)
    structs_last = sorted(known.items(), key=lambda column: isinstance(column[1], Struct))
    return Struct.of(dict(structs_last)) if is_known else None


def _inputs(named: Iterable[Field], readable: _Readable, report: ProblemReport) -> tuple[str, ...]:
    """The silver tables that some fields name. Reports what cannot be read together."""
    found: list[str] = []
    for field in named:
        if field.value is None:
            continue
        if (problem := _not_readable(field.text, found, readable)) is None:
            found.append(field.text)
        else:
            is_known = field.text in (*readable.silver, *readable.gold)
            report.at(field, problem, None if is_known else nearest(field.text, readable.silver))
    return tuple(found)


def _not_readable(name: str, others: Collection[str], readable: _Readable) -> str | None:
    """Why an append operator cannot read a table beside some others; None if it can."""
    silver = readable.silver
    if name in readable.gold:
        return f"{name!r} is a gold table, and only silver tables can be read here"
    if name not in silver:
        return f"there is no silver table {name!r}"
    if name in others:
        return f"{name!r} is given twice; declare a second silver table with the same `from`"
    if name in {INPUT, *SILVER_COLUMNS, *WHY_LATE}:
        return (
            f"{name!r} is a column of late side tables, which have a column with the name of each "
            "table that is read here; give the silver table another name"
        )
    return None


def _time(section: Section) -> TimeKind:
    window = section.section("window")
    return "arrival" if window is not None and window.get("time") else "event"


def _operator(section: Section, scope: Scope, report: ProblemReport) -> tuple[str, Any] | None:
    """The operator whose key is given, and the value that it has built; None if a problem is
    reported."""
    window = section.section("window")
    for name in OPERATORS.names():
        kind = OPERATORS[name]
        within = window if kind.is_window else section
        for key in kind.keys:
            at = within.get(key.name) if within else None
            if at is not None:
                if kind.end_varies and (salt := section.get("salt")) is not None:
                    message = f"the events of one key of {key.name} windows are never divided"
                    report.at(salt, f"{message}; remove it")
                built = kind.build(key.name, at, scope, report)
                return None if built is None else (name, built)
    return None


def _check_rollup(
    section: Section, above: GoldTable, found: tuple[str, Any] | None, report: ProblemReport
) -> None:
    """Reports what a table that reads the gold table ``above`` cannot have. ``found`` is its
    operator."""
    at = section.get("from") or section
    if found is not None and not OPERATORS[found[0]].rolls_up:
        report.at(at, f"{above.name!r} is a gold table, and such a table reads silver")
    if not operator_of(above).ends:
        report.at(at, f"no row of {above.name!r} is ever final, so no table can read it")
    if not operator_of(above).is_timed or above.time != "event":
        kind = "by arrival" if operator_of(above).is_timed else "of rows"
        message = f"{above.name!r} has windows {kind}, and only those of event time can be read"
        report.at(at, f"{message}; read the silver table {above.silver!r}")
    window = section.section("window")
    if window is not None and (time := window.get("time")) is not None:
        message = f"the rows of {above.name!r} have the time of their windows, and no arrival"
        report.at(time, f"{message}; remove it")
    if (late := section.get("late")) is not None:
        message = f"a table that reads gold has no late rows; write it in {above.name!r}"
        report.at(late, f"{message}, whose corrections reach this table")
    lateness = section.get("allowed_lateness")
    if lateness is not None and lateness.value < above.allowed_lateness:
        least = format_duration(above.allowed_lateness)
        end = "time" if operator_of(above).appends else "windows"
        message = f"is less than that of {above.name!r}, whose rows arrive only {least} after"
        report.at(lateness, f"{message} their {end}", least)


def _check_late(
    columns: Collection[str], silver: str, scope: Scope, section: Section, report: ProblemReport
) -> None:
    """Reports columns that the silver row and the result both have: a late row has all columns of
    the two."""
    at = section.get("from")
    for name in columns:
        if at and name in scope and not isinstance(scope, Partial) and name not in LATE_COLUMNS:
            message = f"has a column {name!r}, which late side tables have too"
            report.at(at, f"the silver table {silver!r} {message}")


def _groups(field: Field | None, scope: Scope, report: ProblemReport) -> tuple[Derived, ...]:
    if field is None:
        return ()
    if isinstance(field.value, dict):
        return derive(field.value, scope, report, parse_scalar)
    groups = []
    for item in field.items:
        found = checked(item, scope, parse_column, report)
        if found is not None:
            groups.append(Derived(item.text, found.text, found.type))
    return tuple(groups)


def _measures(
    entries: Mapping[str, Field], scope: Scope, report: ProblemReport
) -> tuple[Measure, ...]:
    found = (
        checked(field, scope, functools.partial(parse_measure, name), report)
        for name, field in entries.items()
    )
    return tuple(measure for measure in found if measure is not None)


def _names(groups: Field | None) -> dict[str, Field]:
    if groups is None:
        return {}
    if isinstance(groups.value, dict):
        return groups.value
    return {item.text: item for item in groups.items}


def _check_names(
    ours: Iterable[str], parts: Iterable[Mapping[str, Field]], report: ProblemReport
) -> None:
    owned = zip(parts, ("a key of by", "a measure", "a column"), strict=True)
    # Each name is a part of its own, because two names of one map may differ only in case.
    each = (({name: part[name]}, owner) for part, owner in owned for name in part)
    report.check_apart(each, dict.fromkeys(ours, "is a column of every gold table"))
