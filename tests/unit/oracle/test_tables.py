"""Silver, windows, lateness, watermark, and every measure."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from tests.oracle import Closing, GoldRules, Measure, RowRule, SilverRules, SourceRecord, derive
from tests.unit.oracle.rules_of_shop import (
    GOLD,
    MINUTE,
    RULES,
    arrive,
    at,
    column,
    gold_of,
    order,
)

HOPPING = replace(GOLD, size=3 * MINUTE, by={})


def test_columns_see_the_record_and_where_sees_the_columns() -> None:
    silver = SilverRules(
        columns={
            "item": lambda row: row["item"] and row["item"].lower(),
            "double": lambda row: row["amount"] and row["amount"] * 2,
        },
        drop=("amount",),
        where=lambda row: None if row["amount"] is None else row["item"] == "tea",
    )
    values = [
        order("a", "10:00", item="TEA", amount=3),
        order("b", "10:00", item="milk", amount=1),
        order("c", "10:00", item="tea"),
    ]
    tables = derive(arrive(*values), replace(RULES, silver={"orders": silver}))
    (row,) = tables.silver["orders"]
    assert {name: row[name] for name in row if name[0] != "_"} == {
        "id": "a",
        "item": "tea",
        "at": at("10:00"),
        "double": 6,
    }
    assert tables.counts["silver"] == {"orders": 1}
    assert tables.counts["filtered"] == {"orders": 2}


def test_a_record_is_offered_to_every_silver_table() -> None:
    silver = {
        "big": SilverRules(where=lambda row: row["amount"] > 5),
        "all": SilverRules(),
    }
    values = [order("a", "10:00", amount=1), order("b", "10:00", amount=9), b"?"]
    tables = derive(arrive(*values), replace(RULES, silver=silver, gold={}))
    assert {name: column(rows, "id") for name, rows in tables.silver.items()} == {
        "big": ["b"],
        "all": ["a", "b"],
    }
    assert tables.counts["filtered"] == {"big": 1, "all": 0}
    assert len(tables.quarantine) == 1


def test_a_row_that_a_rule_rejects_is_kept_with_all_that_it_breaks() -> None:
    suite = {
        "named": RowRule(lambda row: row["item"] is not None, rejects=False, severity="info"),
        "small": RowRule(lambda row: None if row["amount"] is None else row["amount"] < 5),
    }
    silver = SilverRules(where=lambda row: row["item"] != "milk", suite=suite)
    values = [
        order("a", "10:00", amount=9),
        order("b", "10:00"),
        order("c", "10:00", item="tea", amount=4),
        order("d", "10:00", item="milk", amount=9),
    ]
    tables = derive(arrive(*values), replace(RULES, silver={"orders": silver}))
    assert column(tables.silver["orders"], "id", "_warnings") == [("b", ["named"]), ("c", None)]
    rules = [{"id": "named", "severity": "info"}, {"id": "small", "severity": "critical"}]
    assert column(tables.rejected["orders"], "event_id", "rules", "value") == [
        ("a", rules, values[0])
    ]
    counts = {"rejected": 1, "replaced": 0, "rule:named": 2, "rule:small": 1}
    assert tables.counts["suites"] == {"orders": counts}
    assert tables.counts["filtered"] == {"orders": 1}
    assert sum(row["orders"] for row in tables.gold["per_minute"]) == 2


def test_tumbling_windows_hold_their_start_and_not_their_end() -> None:
    values = [order("a", "10:00"), order("b", "10:00:59.999"), order("c", "10:01")]
    assert gold_of(arrive(*values), GOLD) == [
        {
            "window_start": at("10:00"),
            "window_end": at("10:01"),
            "item": None,
            "orders": 2,
            "final": True,
            "revision": 0,
        },
        {
            "window_start": at("10:01"),
            "window_end": at("10:02"),
            "item": None,
            "orders": 1,
            "final": False,
            "revision": 0,
        },
    ]


def test_hopping_windows_overlap_and_align_to_the_epoch() -> None:
    rows = gold_of(arrive(order("a", "10:00:30")), HOPPING)
    assert column(rows, "window_start", "window_end") == [
        (at("10:00"), at("10:03")),
        (at("09:59"), at("10:02")),
        (at("09:58"), at("10:01")),
    ]


def test_windows_before_the_epoch_are_aligned_too() -> None:
    value = b'{"id": "a", "at": "1969-12-31T23:59:30Z"}'
    (row,) = gold_of(arrive(value), GOLD)
    assert (row["window_end"] - row["window_start"], row["window_end"].year) == (MINUTE, 1970)


def test_rows_are_grouped_by_key_and_null_is_a_key() -> None:
    values = [order("a", "10:00", item="tea"), order("b", "10:00"), order("c", "10:00")]
    assert column(gold_of(arrive(*values), GOLD), "item", "orders") == [("tea", 1), (None, 2)]


def test_where_selects_before_windows_and_nothing_selected_is_no_row() -> None:
    gold = replace(GOLD, where=lambda row: row["amount"] and row["amount"] > 1)
    values = [order("a", "10:00", amount=1), order("b", "10:00")]
    tables = derive(arrive(*values), replace(RULES, gold={"t": gold}))
    assert tables.counts["gold"] == {"t": {"rows": 0, "folded": 0, "late": 0, "replayed": 0}}


def late_tables(clock: str, gold: GoldRules = GOLD) -> Any:
    """The tables of an order at 10:00:10 that is read after an order at ``clock``."""
    records = arrive(order("ahead", clock), order("behind", "10:00:10"))
    return derive(records, replace(RULES, gold={"t": gold}))


@pytest.mark.parametrize(
    ("clock", "late"), [("10:00:59", 0), ("10:01:09.999", 0), ("10:01:10", 1), ("10:30", 1)]
)
def test_a_row_is_late_when_its_clock_reached_the_end_plus_what_is_allowed(
    clock: str, late: int
) -> None:
    tables = late_tables(clock, replace(GOLD, allowed_lateness=timedelta(seconds=10)))
    assert len(tables.late["t"]) == late
    assert tables.counts["gold"]["t"]["folded"] == 2 - late


def test_a_late_row_is_the_silver_row_with_its_window() -> None:
    tables = late_tables("10:01:30")
    (row,) = tables.late["t"]
    assert row == tables.silver["orders"][1] | {
        "window_start": at("10:00"),
        "window_end": at("10:01"),
        "late_by": timedelta(seconds=30),
        "reason": "late",
        "replayed": None,
    }


def test_a_row_can_be_late_for_one_window_and_not_for_the_next() -> None:
    tables = late_tables("10:01:30", HOPPING)
    assert column(tables.late["t"], "window_end") == [at("10:01")]
    assert tables.counts["gold"]["t"] == {"rows": 3, "folded": 5, "late": 1, "replayed": 0}


def test_late_depends_on_the_partition_of_the_row() -> None:
    ahead = arrive(order("a", "10:30"))
    behind = arrive(order("b", "10:00"), order("c", "10:00:10"), partition=1)
    tables = derive(ahead + behind, RULES)
    assert tables.late["per_minute"] == []
    assert column(tables.gold["per_minute"], "final") == [False, False]


def test_a_window_is_final_when_the_closing_clock_reached_it() -> None:
    gold = replace(GOLD, allowed_lateness=timedelta(seconds=10))
    values = [order("a", "10:00"), order("b", "10:01:10")]
    assert column(gold_of(arrive(*values), gold), "final") == [True, False]
    assert column(gold_of(arrive(*values[:1], order("b", "10:01:09")), gold), "final")[0] is False
    held = derive(arrive(*values), RULES, partitions=[0, 1])
    assert column(held.gold["per_minute"], "final") == [False, False]


def test_closing_after_the_last_record_makes_windows_final_and_nothing_late() -> None:
    records = arrive(order("a", "10:00"), order("b", "10:01"))
    tables = derive(records, RULES, {"per_minute": at("10:02")})
    assert column(tables.gold["per_minute"], "final") == [True, True]
    assert tables.late["per_minute"] == []
    half = derive(records, RULES, {"per_minute": at("10:01")})
    assert column(half.gold["per_minute"], "final") == [True, False]
    assert half.clock == at("10:01")


def test_rows_after_a_closing_are_late_for_closed_windows() -> None:
    values = [order("a", "10:00:05"), order("b", "10:00:30"), order("c", "10:01:00")]
    tables = derive(arrive(*values), RULES, drains=[Closing(after={0: 0})])
    assert column(tables.late["per_minute"], "id", "late_by", "reason") == [("b", None, "closed")]
    assert column(tables.gold["per_minute"], "orders", "final") == [(1, True), (1, False)]


def test_a_row_out_of_order_in_a_window_closed_early_is_late_by_less_than_nothing() -> None:
    values = [order("a", "10:00:30"), order("b", "10:00:10")]
    tables = derive(arrive(*values), RULES, drains=[Closing(after={0: 0})])
    assert column(tables.late["per_minute"], "late_by", "reason") == [
        (timedelta(seconds=-30), "closed")
    ]


def test_a_closing_of_an_empty_table_closes_nothing() -> None:
    tables = derive(arrive(order("a", "10:00")), RULES, drains=[Closing(after={})])
    assert column(tables.gold["per_minute"], "final") == [False]


def test_a_row_late_by_both_rules_is_called_late() -> None:
    values = [order("a", "10:00"), order("b", "10:05"), order("c", "10:00:30")]
    tables = derive(arrive(*values), RULES, drains=[Closing(after={0: 1})])
    assert column(tables.late["per_minute"], "id", "reason") == [("c", "late")]


AMOUNT = {"id": "string", "x": "double", "n": "bigint", "d": "decimal(4,2)", "at": "timestamp"}


def measured(function: str, argument: str, type_: str, *rows: dict[str, Any]) -> Any:
    values = [order(str(n), "10:00", **row) for n, row in enumerate(rows)]
    measure = Measure(function, lambda row: row[argument], type_)
    gold = replace(GOLD, by={}, measures={"m": measure})
    (row,) = gold_of(arrive(*values), gold, replace(RULES, schema=AMOUNT))
    return row["m"]


@pytest.mark.parametrize(
    ("function", "argument", "type_", "values", "expected"),
    [
        ("count", "n", "bigint", [1, None, 3], 2),
        ("count", "n", "bigint", [None], 0),
        ("sum", "n", "bigint", [1, None, 3], 4),
        ("sum", "n", "bigint", [None], None),
        ("sum", "n", "bigint", [(1 << 63) - 1, 1], None),
        ("sum", "n", "bigint", [(1 << 63) - 1, 1, -1], (1 << 63) - 1),
        ("sum", "d", "decimal(14,2)", [1.25, "2.5"], Decimal("3.75")),
        ("sum", "d", "decimal(4,2)", [99.99, 0.01], None),
        ("sum", "x", "double", [1e16, 1, -1e16], 1.0),
        ("min", "n", "bigint", [3, None, 1], 1),
        ("max", "id", "string", [], "0"),
        ("max", "d", "decimal(4,2)", [1.5, 2], Decimal("2.00")),
        ("min", "x", "double", [None], None),
        ("avg", "n", "double", [1, 2, None], 1.5),
        ("avg", "d", "decimal(8,6)", [1, 1, 0], Decimal("0.666667")),
        ("avg", "d", "decimal(8,6)", [-1, -1, 0], Decimal("-0.666667")),
        ("avg", "x", "double", [None], None),
        ("stddev", "x", "double", [1, 2, 3, 4], 1.2909944487358056),
        ("stddev", "x", "double", [1, None], None),
        ("stddev_pop", "x", "double", [1, 3], 1.0),
        ("variance", "n", "double", [1, 2, 3], 1.0),
        ("variance", "n", "double", [1], None),
        ("var_pop", "n", "double", [1, 2, 3, 4], 1.25),
        ("count_distinct", "d", "bigint", [1, "1.00", 2, None], 2),
        ("count_distinct", "n", "bigint", [None], 0),
        ("approx_count_distinct", "n", "bigint", [1, 1, 2], 2),
        ("percentile", "n", "double", [4, 1, None, 2], 2.0),
        ("percentile", "d", "double", ["0.5", "0.25"], 0.375),
        ("percentile", "x", "double", [None], None),
    ],
)
def test_measures(
    function: str, argument: str, type_: str, values: list[Any], expected: Any
) -> None:
    rows = [{argument: value} for value in values] or [{}]
    found = measured(function, argument, type_, *rows)
    assert found == expected
    assert type(found) is type(expected)


def test_only_rows_that_meet_a_condition_count() -> None:
    measures = {
        "all": Measure("count", None, "bigint", where=lambda row: row["amount"] != 1),
        "total": Measure("sum", lambda row: row["amount"], "bigint", where=lambda row: None),
        "few": Measure("count_if", lambda row: row["amount"] > 1, "bigint"),
    }
    values = [order(str(n), "10:00", amount=n) for n in (1, 2, 3)]
    rows = gold_of(arrive(*values), replace(GOLD, by={}, measures=measures))
    assert column(rows, "all", "total", "few") == [(2, None, 2)]


def test_orders_decide_then_times_and_positions() -> None:
    measures = {
        name: Measure(name, lambda row: row["item"], "string", lambda row: row["amount"])
        for name in ("min_by", "max_by")
    }
    values = [
        order("a", "10:00:20", item="later", amount=1),
        order("b", "10:00:10", item="earlier", amount=1),
        order("c", "10:00:10", item="most", amount=2),
        order("d", "10:00:10", amount=2),
        order("e", "10:00:00", item="unordered"),
    ]
    rows = gold_of(arrive(*values), replace(GOLD, by={}, measures=measures))
    assert column(rows, "min_by", "max_by") == [("earlier", None)]


def test_lists_have_the_values_of_so_many_rows_in_order() -> None:
    measures = {
        "top": Measure("top_n", lambda row: row["item"], "", lambda row: row["amount"], most=3),
        "few": Measure("collect_list", lambda row: row["item"], "", most=2),
        "none": Measure("collect_list", lambda row: row["item"], "", None, lambda row: None),
    }
    values = [
        order("a", "10:00:20", item="later", amount=1),
        order("b", "10:00:10", item="earlier", amount=1),
        order("c", "10:00:10", amount=2),
        order("d", "10:00:10", item="too low", amount=0),
        order("e", "10:00:00", item="unordered"),
    ]
    rows = gold_of(arrive(*values), replace(GOLD, by={}, measures=measures))
    assert column(rows, "top", "few", "none") == [
        ([None, "later", "earlier"], ["unordered", "earlier"], [])
    ]


def test_first_and_last_go_by_event_time_then_position_and_skip_nulls() -> None:
    measures = {
        "first": Measure("first", lambda row: row["item"], "string"),
        "last": Measure("last", lambda row: row["item"], "string"),
    }
    values = [
        order("a", "10:00:20", item="second"),
        order("b", "10:00:30", item="tied, first"),
        order("c", "10:00:30", item="tied, last"),
        order("d", "10:00:40"),
        order("e", "10:00:10", item="earliest"),
    ]
    rows = gold_of(arrive(*values), replace(GOLD, by={}, measures=measures))
    assert column(rows, "first", "last") == [("earliest", "tied, last")]
    both = [SourceRecord(1, 0, order("z", "10:00:30", item="other partition"), at("12:00"))]
    rows = gold_of(arrive(*values) + both, replace(GOLD, by={}, measures=measures))
    assert column(rows, "last") == ["other partition"]


def test_columns_are_computed_over_by_and_measures() -> None:
    gold = replace(
        GOLD,
        measures={**GOLD.measures, "total": Measure("sum", lambda row: row["amount"], "bigint")},
        columns={"label": lambda row: f"{row['item']}: {row['total']} in {row['orders']}"},
    )
    values = [order("a", "10:00", item="tea", amount=1), order("b", "10:00", item="tea", amount=2)]
    assert column(gold_of(arrive(*values), gold), "label") == ["tea: 3 in 2"]


def test_the_account_balances() -> None:
    values = [
        order("a", "10:00"),
        order("a", "10:00"),
        order("b", "10:05"),
        order("c", "10:00:30"),
        b"?",
    ]
    assert derive(arrive(*values), RULES).counts == {
        "read": 5,
        "duplicate": 1,
        "differing": 0,
        "corrected": 0,
        "quarantined": 1,
        "conformed": 3,
        "exploded": {},
        "read_bytes": sum(map(len, values)),
        "duplicate_bytes": len(values[1]),
        "quarantined_bytes": 1,
        "silver": {"orders": 3},
        "filtered": {"orders": 0},
        "suites": {},
        "gold": {"per_minute": {"rows": 2, "folded": 2, "late": 1, "replayed": 0}},
    }
