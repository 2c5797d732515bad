"""The `gold` part of a declaration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta

from headgate.declaration.errors import Invalid
from headgate.declaration.expressions.expression import parse_column, parse_measure
from headgate.declaration.expressions.inference import Scope
from headgate.declaration.model import Derived, GoldTable, Measure, Window
from headgate.declaration.names import GOLD_COLUMNS, check_not_taken
from headgate.declaration.quantities import format_duration
from headgate.declaration.reading.checked import Field, Report, Section, partial
from headgate.declaration.sections.silver import checked, condition, derive, reference

# A row is folded into size / every windows; more than this is a mistake of units.
MAX_WINDOWS_PER_ROW = 1_000


def build_gold(
    section: Section, name: str, scopes: Mapping[str, Scope], report: Report
) -> GoldTable:
    """The table. ``scopes`` are the columns of each silver table. Problems are reported; the
    table is then never used."""
    silver, scope = reference(section, scopes, "silver table", report)
    window = _window(section.section("window"), report)
    groups, salt = section.get("by"), section.get("salt")
    by = _groups(groups, scope, report)
    measures = _measures(section.entries("measures"), scope, report)
    entries = section.entries("columns")
    names = _names(groups), section.entries("measures"), entries
    _check_names(names, report)
    own: dict[str, str | None] = {n: None for part in names[:2] for n in part}
    own |= {group.name: group.type for group in by}
    own |= {measure.name: measure.type for measure in measures}
    unknown = section.reported("by") or section.reported("measures")
    return GoldTable(
        name=name,
        silver=silver,
        window=window or Window(timedelta(seconds=1), timedelta(seconds=1)),
        where=condition(section.get("where"), scope, report),
        by=by,
        measures=measures,
        columns=derive(entries, partial(own, missing=unknown), report),
        allowed_lateness=section.duration("allowed_lateness", timedelta(0)),
        salt=salt.value if salt else None,
    )


def _window(section: Section | None, report: Report) -> Window | None:
    if section is None:
        return None
    tumbling, hopping = section.get("tumbling"), section.section("hopping")
    if hopping is None:
        return Window(tumbling.value, tumbling.value) if tumbling else None
    size, every = hopping.get("size"), hopping.get("every")
    if size is None or every is None:
        return None
    if size.value % every.value:
        asked, step = format_duration(size.value), format_duration(every.value)
        message = f"{asked} is not a multiple of every ({step})"
        whole = max(1, round(size.value / every.value)) * every.value
        report.add(size.line, size.path, message, format_duration(whole))
    elif size.value / every.value > MAX_WINDOWS_PER_ROW:
        message = f"folds each row into more than {MAX_WINDOWS_PER_ROW} windows"
        report.add(every.line, every.path, message)
    return Window(size.value, every.value)


def _groups(field: Field | None, scope: Scope, report: Report) -> tuple[Derived, ...]:
    if field is None:
        return ()
    if isinstance(field.value, dict):
        return derive(field.value, scope, report)
    groups = []
    for item in field.items:
        found = checked(item, scope, parse_column, report)
        if found is not None:
            groups.append(Derived(item.text, found.text, found.type))
    return tuple(groups)


def _measures(entries: Mapping[str, Field], scope: Scope, report: Report) -> tuple[Measure, ...]:
    measures = []
    for name, field in entries.items():
        found = checked(field, scope, parse_measure, report)
        if found is not None:
            measures.append(
                Measure(name, found.function, found.argument, found.argument_type, found.type)
            )
    return tuple(measures)


def _names(groups: Field | None) -> dict[str, Field]:
    if groups is None:
        return {}
    if isinstance(groups.value, dict):
        return groups.value
    return {item.text: item for item in groups.items}


def _check_names(parts: Iterable[Mapping[str, Field]], report: Report) -> None:
    taken: dict[str, str] = dict.fromkeys(GOLD_COLUMNS, "every gold table")
    for part, owner in zip(parts, ("a key of by", "a measure", "a column"), strict=True):
        for name, field in part.items():
            try:
                check_not_taken(name, taken)
            except Invalid as error:
                report.invalid(field, error)
            taken[name] = owner
