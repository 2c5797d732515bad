"""Decides what happens to existing tables when a declaration changes: pure functions.

If a change only adds fields inside of columns, no record is read again: the fields are null in
earlier records (docs/adr/0025). A replay of late rows is stored as it was requested: by values of
the columns of ``by``. If a declaration has other columns in ``by``, it is unknown which rows were
meant.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal

from headgate.declaration.contracts.operator import late_columns, operator_of
from headgate.declaration.digest import gold_reads, table_digests
from headgate.declaration.errors import Invalid
from headgate.declaration.keys.pipeline import durations
from headgate.declaration.kinds import BRONZE, GOLD, LATE, SILVER, kind_of, name_of
from headgate.declaration.model import Pipeline
from headgate.declaration.quantities import format_duration
from headgate.declaration.type_parser import parse_type
from headgate.declaration.types import DataType, Struct, differences, extends, is_nested
from headgate.lake.tables.decisions import Operation

DeploymentAction = Literal["resume", "new", "extend", "rebuild", "reread", "refuse", "left"]
"""``resume``: the table continues; ``new``: it is created and catches up; ``extend``: it gets
fields inside of columns and continues; ``rebuild``: it is rebuilt from its upstream table;
``reread``: the whole pipeline is rebuilt from its source; ``refuse``: neither is possible;
``left``: it is no longer declared and stays as it is."""

Definition = Mapping[str, Any]

_SECTIONS = {BRONZE: "sources", SILVER: "silver", GOLD: "gold"}
_FOLLOWS = "argument_type"
"""The types of a measure's arguments follow from their text and from the upstream tables."""


@dataclass(frozen=True)
class TablePlan:
    """``table`` is a path such as ``gold/bids_per_minute``. The plan includes its late table.
    ``late_again``: replayed rows may be late again after the rebuild, as a reason says."""

    table: str
    action: DeploymentAction
    reasons: tuple[str, ...] = ()
    late_again: bool = False


@dataclass(frozen=True)
class DeployedTable:
    """An existing table: the digest of its definition, and the definition itself,
    if the declaration that it was made from is still kept."""

    definition: str
    meaning: Definition | None


def compare_declarations(
    declared: Definition,
    definitions: Mapping[str, str],
    deployed: Mapping[str, DeployedTable],
    *,
    can_reread: bool,
    can_extend: Callable[[str], bool] = lambda _: True,
) -> tuple[TablePlan, ...]:
    """The plan for each table, declared tables first.

    ``declared`` is the meaning of the declaration. ``definitions`` has its digests by the paths of
    bronze, silver and gold tables, ``deployed`` the existing tables by the same paths.
    ``can_reread`` says whether the source still has everything that was ever read, ``can_extend``
    whether the columns of a table can be extended to the declared ones.
    """
    plans: list[TablePlan] = []
    continued: set[str] = set()
    for path in definitions:
        if kind_of(path) in _SECTIONS:
            extend = can_extend if continued.issuperset(_above(declared, path)) else lambda _: False
            plans.append(_plan(path, definitions, deployed, declared, can_reread, extend))
            if plans[-1].action in ("resume", "extend"):
                continued.add(path)
    made = {plan.table for plan in plans if plan.action == "new"}
    for path in deployed.keys() - definitions.keys():
        plans.append(TablePlan(path, "left", tuple(_renamed(path, deployed[path], declared, made))))
    return tuple(plans)


def worst_action(plans: tuple[TablePlan, ...]) -> DeploymentAction:
    """The action with the greatest consequences among some plans."""
    order: tuple[DeploymentAction, ...] = ("refuse", "reread", "rebuild", "extend")
    actions = {plan.action for plan in plans}
    return next((action for action in order if action in actions), "resume")


def _plan(
    path: str,
    definitions: Mapping[str, str],
    deployed: Mapping[str, DeployedTable],
    declared: Definition,
    can_reread: bool,
    can_extend: Callable[[str], bool],
) -> TablePlan:
    there = deployed.get(path)
    if there is None:
        return _of_no_table(path, deployed, definitions.keys())
    if there.definition == "":
        why = "a table upstream of it was rebuilt while this one was not declared"
        return TablePlan(path, "rebuild", (why,))
    if there.definition == definitions[path]:
        return TablePlan(path, "resume")
    reasons = tuple(_reasons(path, there.meaning, declared))
    if there.meaning is not None and only_adds(path, there.meaning, declared) and can_extend(path):
        return TablePlan(path, "extend", reasons)
    if kind_of(path) != BRONZE:
        return TablePlan(path, "rebuild", reasons)
    return TablePlan(path, "reread" if can_reread else "refuse", reasons)


def _of_no_table(
    path: str, deployed: Mapping[str, DeployedTable], declared: AbstractSet[str]
) -> TablePlan:
    """A new source has a new bronze table. If none of the existing ones is declared, the sources
    have got other names: all other tables were built from the existing ones."""
    bronze = [other for other in deployed if kind_of(other) == BRONZE]
    if kind_of(path) != BRONZE or not bronze or not declared.isdisjoint(bronze):
        return TablePlan(path, "new")
    before = bronze[0]
    why = f"its source was called {name_of(before)}: use that name again, or run under another root"
    return TablePlan(path, "refuse", (why,))


def _reasons(path: str, before: Definition | None, after: Definition) -> Iterator[str]:
    if before is None:
        yield (
            "it was made from a declaration that is not kept, or that has another meaning now, "
            "such as after a new version of the rules of its time zone"
        )
        return
    if before["version"] != after["version"]:
        yield "this version of Headgate interprets the same declaration differently"
    own = list(_differences(_section(before, path) or {}, _section(after, path) or {}))
    yield from own
    if not own and (above := _changing(before, after, path)):
        yield f"{' and '.join(above)} change{'' if len(above) > 1 else 's'}"


def _section(meaning: Definition, path: str) -> Definition | None:
    found: Definition | None = meaning[_SECTIONS[kind_of(path)]].get(name_of(path))
    return found


def _above(meaning: Definition, path: str) -> list[str]:
    """The upstream tables of a table."""
    section = _section(meaning, path)
    if section is None or kind_of(path) == BRONZE:
        return []
    return gold_reads(section) if kind_of(path) == GOLD else [BRONZE.path(section["source"])]


def _changing(before: Definition, after: Definition, path: str) -> list[str]:
    """The upstream tables of a table; of several, those whose definitions differ."""
    if len(above := _above(after, path)) < 2:
        return above
    old, new = table_digests(before), table_digests(after)
    return [each for each in above if old.get(each) != new[each]]


def _differences(before: Definition, after: Definition, within: str = "") -> Iterator[str]:
    """Messages such as ``measures: top added`` or ``window.size changed``."""
    for key in sorted({*before, *after}):
        old, new, place = before.get(key), after.get(key), f"{within}{key}"
        if old == new or key == "name":
            continue
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            yield from _differences(old, new, f"{place}.")
        elif isinstance(old, list) and isinstance(new, list) and _have_names(old + new):
            yield from _named_differences(place, old, new)
        elif _is_short(old) and _is_short(new):
            yield f"{place} changed: {_text(key, old)} -> {_text(key, new)}"
        else:
            yield f"{place} changed"


def _named_differences(place: str, old: list[Definition], new: list[Definition]) -> Iterator[str]:
    before, after = ({item["name"]: item for item in items} for items in (old, new))
    for name in before.keys() | after.keys():
        if name not in before:
            yield f"{place}: {name} added"
        elif name not in after:
            yield f"{place}: {name} removed"
        elif before[name] != after[name]:
            yield from _column_differences(place, before[name], after[name])
    if before == after:
        yield f"{place} in another order"


def _column_differences(place: str, before: Definition, after: Definition) -> Iterator[str]:
    """Messages about a changed column; if only its type changes, about the parts of the type."""
    name = before["name"]
    found = [f"{name} changed"]
    if {**before, "type": None} == {**after, "type": None}:
        # A measure of another package may have a type that no declaration can name.
        with suppress(Invalid):
            old, new = (parse_type(str(each["type"])) for each in (before, after))
            found = list(differences(old, new, name))
    yield from (f"{place}: {said}" for said in found)


def _renamed(
    path: str, there: DeployedTable, declared: Definition, made: set[str]
) -> Iterator[str]:
    """Messages about an undeclared table and a new one with the same definition."""
    old = _section(there.meaning, path) if there.meaning else None
    for new in sorted(made):
        if (
            old
            and kind_of(new) == kind_of(path)
            and not list(_differences(old, _section(declared, new) or {}))
        ):
            yield f"{new} has the same definition; a renamed table is rebuilt, and this one stays"


def _have_names(values: list[Any]) -> bool:
    return all(isinstance(value, Mapping) and "name" in value for value in values)


def _is_short(value: Any) -> bool:
    return value is None or (isinstance(value, str | int | float | bool) and len(str(value)) < 60)


def _text(key: str, value: Any) -> str:
    if isinstance(value, int) and key in durations():
        return format_duration(timedelta(microseconds=value))
    return "none" if value in (None, "") else str(value)


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
    yield _SECTIONS[kind_of(path)], name_of(path)
    for above in _above(meaning, path):
        yield from _upwards(above, meaning)


def _only_adds(before: Any, after: Any, key: str = "") -> bool:
    """As ``only_adds``, for the parts of two meanings under ``key``."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        return before.keys() == after.keys() and all(
            _only_adds(before[each], after[each], each) for each in before
        )
    if isinstance(before, list) and isinstance(after, list):
        return len(before) == len(after) and all(map(_only_adds, before, after))
    if key == _FOLLOWS:
        return True
    if before != after and key == "type":
        # A measure of another package may have a type that no declaration can name.
        with suppress(Invalid):
            return extends(parse_type(str(after)), parse_type(str(before)))
    return bool(before == after)


def nested_columns(pipeline: Pipeline, path: str) -> dict[str, DataType]:
    """The declared types of the columns of a table that fields can be added to."""
    kind, name = kind_of(path), name_of(path)
    if kind == BRONZE:
        return {"record": Struct.of(pipeline.sources[name].record.types)}
    if kind == LATE and operator_of(table := pipeline.gold[name]).appends:
        silver = {each: pipeline.silver[each] for each in table.inputs}
        rows = {n: each.row(pipeline.sources[each.source].record) for n, each in silver.items()}
        return {n: type_ for n, type_ in late_columns(table, rows).items() if n in silver}
    if kind == LATE:
        kind, name = SILVER, pipeline.gold[name].silver
    if kind not in (SILVER, GOLD):
        return {}
    types = pipeline.gold[name].types if kind == GOLD else pipeline.silver[name].types
    return {n: type_ for n, type_ in types.items() if is_nested(type_)}


def late_again(
    table: str,
    before: Definition | None,
    after: Definition,
    asked: Iterable[Operation],
    *,
    rereads: bool,
    folded: Collection[str] = (),
) -> Iterator[str]:
    """Messages about the replays of a gold table that is rebuilt. ``before`` and ``after`` are the
    meanings of the deployed declaration, if it is kept, and of the new one. ``rereads``: bronze
    is read again, and the new bronze does not have the replays. ``folded`` are the loads whose late
    rows are then folded again."""
    of_late = (each.document for each in asked if each.name == "late_replay")
    replays = [each for each in of_late if each["table"] == table]
    if rereads:
        # A load in ``folded`` requests its replays again.
        if lost := [each for each in replays if each.get("load") not in folded]:
            yield f"{_LostReplays(len(lost))} will not be repeated, and the rows will be late again"
        return
    new = _by(after, table)
    old = None if before is None else _by(before, table)
    gone, changed = _LostReplays(), _LostReplays()
    for each in replays:
        keys = each["keys"]
        if old is not None and keys.keys() - old.keys():
            continue  # its rows are late already
        if missing := [key for key in keys if key not in new]:
            gone.add(missing)
        elif others := [key for key in keys if old is not None and old[key] != new[key]]:
            changed.add(others)
    if gone.number:
        yield f"{gone} cannot be repeated, and their rows will be late again"
    if changed.number:
        yield f"{changed} will be repeated with the new meaning, and some rows may be late again"


@dataclass
class _LostReplays:
    """Replays of late rows, and the keys that concern them."""

    number: int = 0
    keys: set[str] = field(default_factory=set)

    def add(self, keys: Iterable[str]) -> None:
        self.number += 1
        self.keys.update(keys)

    def __str__(self) -> str:
        by = f" by {', '.join(sorted(self.keys))}" if self.keys else ""
        return f"{self.number:,} replay{'' if self.number == 1 else 's'} of late rows{by}"


def _by(meaning: Definition, table: str) -> dict[str, Any]:
    return {each["name"]: each for each in meaning["gold"].get(table, {}).get("by", ())}
