"""Every way to change a declaration, and what each requires of the existing tables."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headgate.declaration.contracts.operator import late_columns
from headgate.declaration.digest import meaning_of
from headgate.declaration.load import load
from headgate.declaration.model import Pipeline
from headgate.declaration.type_parser import parse_type
from headgate.history.savepoints.declaration_changes import (
    DeployedTable,
    TablePlan,
    compare_declarations,
    nested_columns,
    worst_action,
)
from tests.support import joins
from tests.support.readings import declare

BRONZE, CLEAN, STRONG = "bronze/raw", "silver/clean", "silver/strong"
MINUTE, SLIDING, BANDS = "gold/per_minute", "gold/sliding", "gold/bands"
OF_CLEAN = {CLEAN: "rebuild", MINUTE: "rebuild", BANDS: "rebuild"}
EVERYTHING = dict.fromkeys((BRONZE, CLEAN, STRONG, MINUTE, SLIDING, BANDS), "rebuild")
EVERYTHING[BRONZE] = "reread"

Change = tuple[str, str, dict[str, str], str]
CHANGES: dict[str, Change] = {
    "a comment": ("gold:", "# what dashboards read\ngold:", {}, ""),
    "a default written out": ("    from: strong\n", "    from: strong\n    salt: 4\n", {}, ""),
    "a step": ("    from: strong\n", "    from: strong\n    step: 30 s\n", {}, ""),
    "jobs": ("silver:", "jobs: per_layer\nsilver:", {}, ""),
    "how much a batch takes": ("order: name", "order: name, max_files_per_batch: 3", {}, ""),
    "the same expression in other words": ("level * 2", "level*2", {}, ""),
    "a measure added": (
        "      high: max(level)\n",
        "      high: max(level)\n      least: min(level)\n",
        {MINUTE: "rebuild"},
        "measures: least added",
    ),
    "a measure removed": (
        "      low: min(value)\n",
        "",
        {MINUTE: "rebuild"},
        "measures: low removed",
    ),
    "a measure changed": (
        "low: min(value)",
        "low: max(value)",
        {MINUTE: "rebuild"},
        "measures: low changed",
    ),
    "a measure's filter": (
        "filter (where level >= 5)",
        "filter (where level > 5)",
        {MINUTE: "rebuild"},
        "measures: strong changed",
    ),
    "the same filter in other words": (
        "sum(value) filter (where level >= 5)",
        "SUM(value) FILTER(WHERE level>=5)",
        {},
        "",
    ),
    "a column over measures": (
        "per_event: total / events",
        "per_event: total / levels",
        {MINUTE: "rebuild"},
        "columns: per_event changed",
    ),
    "a window's size": (
        "{tumbling: 5 minutes}",
        "{tumbling: 10 minutes}",
        {BANDS: "rebuild"},
        "window.size changed: 5 minutes -> 10 minutes",
    ),
    "lateness": (
        "allowed_lateness: 10 seconds",
        "allowed_lateness: 20 seconds",
        {MINUTE: "rebuild"},
        "allowed_lateness changed: 10 seconds -> 20 seconds",
    ),
    "a key": (
        "      tenth: level div 10\n",
        "      tenth: level div 5\n",
        {BANDS: "rebuild"},
        "by: tenth changed",
    ),
    "what is selected for gold": (
        "where: value > 0",
        "where: value > 1",
        {BANDS: "rebuild"},
        "where changed: ",
    ),
    "an expression of silver": ("lower(site)", "upper(site)", OF_CLEAN, "columns: site changed"),
    "what is selected for silver": (
        "where: level >= 5",
        "where: level >= 6",
        {STRONG: "rebuild", SLIDING: "rebuild"},
        "where changed: ",
    ),
    "a column that is dropped": ("drop: [day]", "drop: [day, ok]", OF_CLEAN, "drop changed"),
    "another silver table under gold": (
        "  sliding:\n    from: strong",
        "  sliding:\n    from: clean",
        {SLIDING: "rebuild"},
        "silver changed: strong -> clean",
    ),
    "a field of the source added": (
        "        day: date\n",
        "        day: date\n        note: string\n",
        EVERYTHING,
        "record.schema: note added",
    ),
    "a field's type": (
        "level: int",
        "level: bigint",
        EVERYTHING,
        "record.schema: level changed",
    ),
    "what is a duplicate": (
        "within: 10 minutes",
        "within: 20 minutes",
        EVERYTHING,
        "record.duplicates.within changed: 10 minutes -> 20 minutes",
    ),
    "the order of files": ("order: name", "order: modified", EVERYTHING, "files.order changed"),
}


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Pipeline:
    folder = tmp_path_factory.mktemp("declared")
    return declare(folder, folder / "landing")


def changed(before: Pipeline, folder: Path, old: str, new: str) -> Pipeline:
    assert before.text.count(old) >= 1, old
    file = folder / "readings.yml"
    file.write_text(before.text.replace(old, new, 1))
    return load(file)


def deployed(before: Pipeline, *, kept: bool = True) -> dict[str, DeployedTable]:
    meaning = meaning_of(before) if kept else None
    layers = ("bronze/", "silver/", "gold/")
    made = {path: d for path, d in before.definitions.items() if path.startswith(layers)}
    return {path: DeployedTable(definition, meaning) for path, definition in made.items()}


def plans(
    before: Pipeline, after: Pipeline, *, can_reread: bool = True, kept: bool = True
) -> dict[str, TablePlan]:
    found = compare_declarations(
        meaning_of(after),
        after.definitions,
        deployed(before, kept=kept),
        can_reread=can_reread,
    )
    return {plan.table: plan for plan in found}


@pytest.mark.parametrize(("old", "new", "expected", "why"), CHANGES.values(), ids=CHANGES)
def test_each_change_asks_for_no_more_and_no_less(
    before: Pipeline, tmp_path: Path, old: str, new: str, expected: dict[str, str], why: str
) -> None:
    found = plans(before, changed(before, tmp_path, old, new))
    assert {p.table: p.action for p in found.values() if p.action != "resume"} == expected
    for table in expected:
        assert found[table].reasons
    if why:
        assert any(reason.startswith(why) for p in found.values() for reason in p.reasons), found


OF_COLUMNS = {
    "decimal(14,2)": ("reread", ["schema: value changed: decimal(12,2) -> decimal(14,2)"]),
    "struct<a: int, b: array<struct<c: int, d: map<string, int>>>>": (
        "reread",
        [
            "schema: value.a changed: bigint -> int",
            "schema: value.b.element.d.value changed: bigint -> int",
            "schema: value.b.element.e removed",
            "schema: value.z removed",
        ],
    ),
    "struct<a: long, b: array<struct<c: int, d: map<string, long>, e: int, f: date>>, z: int>": (
        "extend",
        ["schema: value.b.element.f added"],
    ),
    "struct<a: long, b: array<struct<c: int, d: map<string, long>, e: int>>, z: int, y: int>": (
        "extend",
        ["schema: value.y added"],
    ),
    "struct<a: long, y: int, b: array<struct<c: int, d: map<string, long>, e: int>>, z: int>": (
        "reread",
        ["schema: value.y added, not at the end of its struct"],
    ),
    "struct<a: long, b: array<struct<c: int, d: map<string, date>, e: int, f: int>>, z: int>": (
        "reread",
        [
            "schema: value.b.element.d.value changed: bigint -> date",
            "schema: value.b.element.f added",
        ],
    ),
    "struct<b: array<struct<c: int, d: map<string, bigint>, e: int>>, a: bigint, z: int>": (
        "reread",
        ["schema: value: fields in another order"],
    ),
}
NESTED = "struct<a: bigint, b: array<struct<c: int, d: map<string, bigint>, e: int>>, z: int>"


@pytest.mark.parametrize(("type_", "expected"), OF_COLUMNS.items())
def test_a_change_of_a_type_names_the_part(
    before: Pipeline, type_: str, expected: tuple[str, list[str]]
) -> None:
    def meant(text: str) -> dict[str, Any]:
        (source,) = before.sources.values()
        schema = source.record.schema
        columns = (replace(c, type=parse_type(text)) if c.name == "value" else c for c in schema)
        record = replace(source.record, schema=tuple(columns))
        return dict(meaning_of(replace(before, sources={"raw": replace(source, record=record)})))

    old = meant("decimal(12,2)" if type_.startswith("decimal") else NESTED)
    there = {BRONZE: DeployedTable("old", old)}
    (plan,) = compare_declarations(meant(type_), {BRONZE: "new"}, there, can_reread=True)
    action, said = expected
    assert (plan.action, list(plan.reasons)) == (action, [f"record.{each}" for each in said])
    (plan,) = compare_declarations(
        meant(type_), {BRONZE: "new"}, there, can_reread=True, can_extend=lambda _: False
    )
    assert plan.action == "reread"


def test_what_is_built_on_something_says_on_what(before: Pipeline, tmp_path: Path) -> None:
    found = plans(before, changed(before, tmp_path, "lower(site)", "upper(site)"))
    assert found[MINUTE].reasons == ("silver/clean changes",)


def test_a_source_that_lost_something_is_a_refusal(before: Pipeline, tmp_path: Path) -> None:
    after = changed(before, tmp_path, "level: int", "level: bigint")
    found = plans(before, after, can_reread=False)
    assert found[BRONZE].action == "refuse"
    assert worst_action(tuple(found.values())) == "refuse"


def test_a_source_of_another_name_is_a_refusal(before: Pipeline, tmp_path: Path) -> None:
    """The existing tables were built from the old bronze; none would be built from the new one."""
    file = tmp_path / "readings.yml"
    text = before.text.replace("  raw:\n", "  orders:\n").replace("from: raw", "from: orders")
    file.write_text(text)
    found = plans(before, load(file))
    assert found["bronze/orders"].action == "refuse"
    assert found["bronze/orders"].reasons == (
        "its source was called raw: use that name again, or run under another root",
    )


def test_a_source_more_is_new(before: Pipeline, tmp_path: Path) -> None:
    """It has a bronze table of its own. A source that is removed leaves its tables as they are."""
    text = before.text
    source = text[text.index("  raw:\n") : text.index("silver:\n")]
    more = text.replace("silver:\n", source.replace("  raw:\n", "  orders:\n") + "silver:\n", 1)
    (tmp_path / "readings.yml").write_text(more)
    after = load(tmp_path / "readings.yml")
    found = plans(before, after)
    assert found["bronze/orders"].action == "new"
    assert {plan.action for path, plan in found.items() if "orders" not in path} == {"resume"}
    back = plans(after, before)
    assert {path for path, plan in back.items() if plan.action == "left"} == {"bronze/orders"}


def test_a_table_that_comes_and_one_that_goes(before: Pipeline, tmp_path: Path) -> None:
    after = changed(before, tmp_path, "  bands:\n", "  tapes:\n")
    found = plans(before, after)
    assert (found["gold/tapes"].action, found[BANDS].action) == ("new", "left")
    assert found[BANDS].reasons == (
        "gold/tapes has the same definition; a renamed table is rebuilt, and this one stays",
    )
    assert worst_action(tuple(found.values())) == "resume"


def test_a_declaration_that_is_not_kept_still_has_a_digest(
    before: Pipeline, tmp_path: Path
) -> None:
    assert {p.action for p in plans(before, before, kept=False).values()} == {"resume"}
    found = plans(before, changed(before, tmp_path, "lower(site)", "upper(site)"), kept=False)
    (reason,) = found[CLEAN].reasons
    assert reason.startswith("it was made from a declaration that is not kept, or that has another")


def test_another_meaning_of_the_same_words_is_another_table(before: Pipeline) -> None:
    meant = {**meaning_of(before), "version": 0}
    old = {p: DeployedTable("another digest", meant) for p in deployed(before)}
    found = compare_declarations(meaning_of(before), before.definitions, old, can_reread=True)
    assert {plan.action for plan in found} == {"rebuild", "reread"}
    assert "this version of Headgate interprets the same declaration" in found[0].reasons[0]


def test_the_name_of_a_file_is_not_what_it_says(before: Pipeline, tmp_path: Path) -> None:
    moved = replace(before, file=tmp_path / "elsewhere.yml")
    assert {plan.action for plan in plans(before, moved).values()} == {"resume"}


RICH = """
pipeline: rich
sources:
  raw:
    files: {path: landing, format: json}
    record:
      event_time: {column: at}
      schema:
        at: timestamp
        items: "array<struct<n: int>>"
silver:
  kept: {from: raw, columns: {first: "items[0]", number: "items[0].n"}}
  few: {from: raw, columns: {number: "items[0].n"}, drop: [items]}
gold:
  of_kept:
    from: kept
    window: {tumbling: 1 minute}
    measures: {rows: count(items), highest: max(number)}
    allowed_lateness: 0 s
  of_few:
    from: few
    window: {tumbling: 1 minute}
    measures: {highest: max(number)}
    allowed_lateness: 0 s
"""
ADDS = ("<n: int>", "<n: int, vat: int>")
OF_RICH: dict[str, tuple[list[tuple[str, str]], dict[str, str]]] = {
    "only a field": ([ADDS], {}),
    "another expression": (
        [ADDS, ("drop: [items]", "where: number > 0, drop: [items]")],
        {"silver/few": "rebuild", "gold/of_few": "rebuild"},
    ),
    "another measure": ([ADDS, ("max(number)", "min(number)")], {"gold/of_kept": "rebuild"}),
    "a column, too": (
        [ADDS, ("at: timestamp\n", "at: timestamp\n        note: string\n")],
        {
            "bronze/raw": "reread",
            **dict.fromkeys(
                ("silver/kept", "silver/few", "gold/of_kept", "gold/of_few"), "rebuild"
            ),
        },
    ),
    "another name": (
        [ADDS, ("  few: {", "  fewer: {"), ("from: few", "from: fewer")],
        {"silver/fewer": "new", "silver/few": "left", "gold/of_few": "rebuild"},
    ),
}


@pytest.mark.parametrize(("changes", "others"), OF_RICH.values(), ids=OF_RICH)
def test_tables_get_fields_where_nothing_else_changes(
    tmp_path: Path, changes: list[tuple[str, str]], others: dict[str, str]
) -> None:
    file, text = tmp_path / "rich.yml", RICH
    file.write_text(text)
    old = load(file)
    for each in changes:
        assert each[0] in text
        text = text.replace(*each, 1)
    file.write_text(text)
    found = {path: plan.action for path, plan in plans(old, load(file)).items()}
    assert found == dict.fromkeys(found, "extend") | others


CLICK, BUY = ("kind = 'click'", "kind = 'klick'"), ("kind = 'purchase'", "kind = 'buy'")
TAGS = "tags: array<string>"
STRUCT = TAGS, 'tags: "array<struct<n: int>>"'
WIDER = TAGS, 'tags: "array<struct<n: int, m: int>>"'


@pytest.mark.parametrize(
    ("changes", "rebuilt", "reasons"),
    [
        ([CLICK], {"silver/clicks"}, "silver/clicks changes"),
        ([BUY], {"silver/purchases"}, "silver/purchases changes"),
        (
            [CLICK, BUY],
            {"silver/clicks", "silver/purchases"},
            "silver/clicks and silver/purchases change",
        ),
        ([("1 hour", "2 hours")], set(), "join.after changed: 1 hour -> 2 hours"),
        ([("on: [user]", "on: {user: buyer}")], set(), "join.on changed"),
        ([("right: purchases", "right: purchases\n      kind: left")], set(), "join.kind changed"),
        ([("clicks.user", "upper(clicks.user)")], set(), "columns: who changed"),
    ],
)
def test_a_join_is_rebuilt_with_any_of_its_tables(
    changes: list[tuple[str, str]], rebuilt: set[str], reasons: str
) -> None:
    before, after = (joins.declared(*made, more=joins.ROLLUP) for made in ([], changes))
    found = plans(before, after)
    again = {path for path, plan in found.items() if plan.action == "rebuild"}
    assert again == {"gold/bought", "gold/paid_per_day", *rebuilt}
    assert {plan.action for path, plan in found.items() if path not in again} == {"resume"}
    (reason,) = found["gold/bought"].reasons
    assert reason.startswith(reasons)
    assert found["gold/paid_per_day"].reasons == ("gold/bought changes",)


@pytest.mark.parametrize(
    ("changes", "action"),
    [([WIDER], "extend"), ([WIDER, CLICK], "rebuild"), ([WIDER, BUY], "rebuild")],
)
def test_a_join_gets_fields_if_all_of_its_tables_do(
    changes: list[tuple[str, str]], action: str
) -> None:
    before, after = (joins.declared(*made, more=joins.ROLLUP) for made in ([STRUCT], changes))
    found = plans(before, after)
    assert found["gold/bought"].action == action
    assert found["bronze/raw"].action == "extend"


def test_the_late_rows_of_a_join_get_the_fields_of_each_table() -> None:
    after = joins.declared(WIDER)
    record = after.sources["raw"].record
    rows = {name: after.silver[name].row(record) for name in ("clicks", "purchases")}
    late = late_columns(after.gold["bought"], rows)
    found = nested_columns(after, "late/bought")
    assert found == {name: late[name] for name in ("clicks", "purchases")}
    assert {"`m`: int" in str(type_) for type_ in found.values()} == {True}


@pytest.mark.parametrize("rebuilt", ["silver/clicks", "silver/purchases"])
def test_a_join_is_rebuilt_if_one_of_its_tables_cannot_be_extended(rebuilt: str) -> None:
    before, after = joins.declared(STRUCT), joins.declared(WIDER)
    found = compare_declarations(
        meaning_of(after),
        after.definitions,
        deployed(before),
        can_reread=True,
        can_extend=lambda path: path != rebuilt,
    )
    again = {plan.table for plan in found if plan.action == "rebuild"}
    assert again == {rebuilt, "gold/bought"}
