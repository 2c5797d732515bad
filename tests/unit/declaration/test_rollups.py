"""Gold tables that read gold tables: what they can use, and what they cannot have."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headgate.declaration.errors import DeclarationError
from headgate.declaration.graph import graph_of
from headgate.declaration.load import load
from headgate.declaration.model import Pipeline
from headgate.declaration.plan import describe, plan
from headgate.declaration.types import TIMESTAMP

BASE = """
pipeline: shop
sources:
  orders:
    files: {path: landing/orders, format: json}
    record:
      event_id: [id]
      event_time: {column: at}
      schema: {id: string, price: int, at: timestamp}
silver:
  clean: {from: orders}
gold:
  days:
    from: hours
    window: {tumbling: 1 day}
    by: [dear]
    measures: {rows: count(*), total: sum(total), best: "max_by(hours.window_start, total)"}
    allowed_lateness: 20 minutes
  hours:
    from: clean
    window: {tumbling: 1 hour}
    by: {dear: "price > 10"}
    measures: {total: sum(price)}
    allowed_lateness: 10 minutes
"""

Read = Callable[[str], Pipeline]


@pytest.fixture
def read(tmp_path_factory: pytest.TempPathFactory) -> Read:
    folder = tmp_path_factory.mktemp("project")

    def read_text(text: str) -> Pipeline:
        file = folder / "shop.yml"
        file.write_text(text)
        return load(file, needs_secrets=False)

    return read_text


def test_a_rollup_follows_the_table_that_it_reads(read: Read) -> None:
    declared = read(BASE)
    days = declared.gold["days"]
    assert [*declared.gold] == ["hours", "days"]
    assert (days.reads, days.silver) == ("hours", "clean")
    assert [*declared.with_late_rows] == ["hours"]
    assert days.types["best"] == TIMESTAMP
    graph = graph_of(declared)
    assert graph["gold/days"].upstream == ("gold/hours",)
    assert "late/days" not in graph
    assert "late/days" not in declared.definitions
    assert graph.rollups_of("gold/hours") == ("gold/days",)
    assert graph.numbered_by("gold/days").path == "bronze/orders"
    assert graph.rebuilt_with(["gold/hours"]) == {"gold/hours", "late/hours", "gold/days"}
    assert plan(declared)["gold"]["days"]["late"] is None
    assert "gold/days from hours" in describe(declared)


def test_a_change_of_the_table_that_is_read_changes_the_rollup(read: Read) -> None:
    before, after = read(BASE), read(BASE.replace("price > 10", "price > 11"))
    changed = {p for p, each in before.definitions.items() if after.definitions[p] != each}
    assert changed == {"gold/hours", "late/hours", "gold/days"}


@pytest.mark.parametrize(
    ("old", "new", "line", "says"),
    [
        ("from: hours", "from: hour", 14, "there is no silver or gold table 'hour'"),
        ("from: hours", "from: days", 14, "'days' is the table itself"),
        ("from: clean", "from: days", 14, "'hours' is in a circle of tables that read each other"),
        ("window: {tumbling: 1 hour}", "running: true", 14, "no row of 'hours' is ever final"),
        ("20 minutes", "9 minutes", 18, "is less than that of 'hours', whose rows arrive only"),
        (
            "20 minutes",
            "20 minutes\n    late: {replay_every: 1 h, within: 1 d}",
            19,
            "no late rows",
        ),
        ("sum(total)", "sum(price)", 17, "unknown column 'price'"),
        ("hours.window_start", "hours.begin", 17, "no field 'begin'"),
    ],
)
def test_what_is_wrong_is_said_where_it_is(
    read: Read, old: str, new: str, line: int, says: str
) -> None:
    assert old in BASE
    with pytest.raises(DeclarationError) as raised:
        read(BASE.replace(old, new, 1))
    said = {each.line: each.message for each in raised.value.problems}
    assert says in said[line]


def test_a_column_hides_the_window_of_a_row(read: Read) -> None:
    """A measure may have the name of its table."""
    head, hours = BASE.split("  hours:\n")
    named = f"{head}  hours:\n{hours.replace('{total:', '{hours:')}"
    best = "max_by(hours.window_start, total)"
    assert best in named
    seen = named.replace("sum(total)", "sum(hours)").replace(best, "max(hours)")
    assert str(read(seen).gold["days"].types["best"]) == "bigint"
    with pytest.raises(DeclarationError, match="a bigint has no field 'window_start'"):
        read(seen.replace("max(hours)", "max(hours.window_start)"))


def test_a_measure_that_is_wrong_is_reported_once(read: Read) -> None:
    with pytest.raises(DeclarationError) as raised:
        read(BASE.replace("sum(price)", "sum(prize)"))
    assert [each.line for each in raised.value.problems] == [23]


def test_late_rows_of_a_rollup_cannot_be_published(read: Read) -> None:
    sink = "kafka: {servers: 'a:1', topic: t}"
    text = f"{BASE}publish:\n  p: {{from: late.days, {sink}}}\n"
    with pytest.raises(DeclarationError, match="there is no gold table 'days'"):
        read(text)
    assert read(text.replace("late.days", "gold.days")).publish["p"].table == "days"


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (
            "window: {tumbling: 1 hour}\n    by: {dear",
            "window: {tumbling: 1 hour, time: arrival}\n    by: {dear",
            "'hours' has windows by arrival, and only those of event time can be read; "
            "read the silver table 'clean'",
        ),
        ("{tumbling: 1 hour}", "{count: 100}", "'hours' has windows of rows"),
        ("{tumbling: 1 day}", "{tumbling: 1 day, time: arrival}", "and no arrival; remove it"),
        ("{tumbling: 1 day}", "{count: 100}", "is a gold table, and such a table reads silver"),
    ],
)
def test_windows_that_have_no_event_time_do_not_roll_up(
    read: Read, old: str, new: str, says: str
) -> None:
    head, hours = BASE.split("  hours:\n")
    parts = [head, hours]
    place = 1 if old in hours else 0
    # Without the lateness, which these windows do not have.
    lines = parts[place].replace(old, new).splitlines(keepends=True)
    parts[place] = "".join(line for line in lines if "allowed_lateness" not in line)
    with pytest.raises(DeclarationError) as refused:
        read("  hours:\n".join(parts))
    assert says in str(refused.value)
