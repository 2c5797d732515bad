"""Joins in declarations: what they mean, what they read, and what is wrong with them."""

from __future__ import annotations

from datetime import timedelta
from typing import NamedTuple

import pytest

from headgate.declaration.contracts.operator import (
    backfilled_tables,
    bounds_of,
    key_of,
    key_of_gold,
    late_bounds_of,
    late_columns,
    late_identity,
    shown_key,
)
from headgate.declaration.errors import DeclarationError
from headgate.declaration.graph import graph_of
from headgate.declaration.kinds import PUBLICATION
from headgate.declaration.load import load
from headgate.declaration.model import Pipeline
from headgate.declaration.names import SILVER_COLUMNS, WHY_LATE
from headgate.declaration.plan import describe, plan
from headgate.declaration.types import INT, STRING, TIMESTAMP, Struct
from headgate.flow.gold.operators.join import Join
from tests.support.joins import DECLARATION, FOLD, ROLLUP, changed, declared
from tests.support.toys import toys

ON, WITHIN, WHO = "on: [user]", "within: 1 hour", "who: clicks.user"
KIND = "within: 1 hour\n      kind: full\n      where: purchases.amount > 3"
LATENESS = "    allowed_lateness: 20 seconds\n"
JOIN = DECLARATION[DECLARATION.index("    join:") : DECLARATION.index("    columns:\n      who")]


class Wrong(NamedTuple):
    """``old`` of the declaration becomes ``new``. The other fields are of the only problem; the
    key is below ``gold.bought``."""

    old: str
    new: str
    line: int
    key: str
    nearest: str | None
    says: str


TABLES = [
    Wrong("left: clicks", "left: click", 28, "join.left", "clicks",
          "there is no silver table 'click'"),
    Wrong("right: purchases", "right: x", 29, "join.right", None, "there is no silver table 'x'"),
    Wrong("right: purchases", "right: clicks", 29, "join.right", None,
          "'clicks' is given twice; declare a second silver table with the same `from`"),
    Wrong("right: purchases", "right: bought", 29, "join.right", None,
          "'bought' is a gold table, and only silver tables can be read here"),
    Wrong("right: purchases", "right: raw", 29, "join.right", None, "no silver table 'raw'"),
    Wrong("purchases", "reason", 29, "join.right", None,
          "'reason' is a column of late side tables, which have a column with the name of each "
          "table that is read here; give the silver table another name"),
    Wrong("purchases", "input", 29, "join.right", None, "is a column of late side tables"),
    Wrong("      right: purchases\n", "", 27, "join", None, "the key 'right' is missing"),
    Wrong("right: purchases", "right: [purchases]", 29, "join.right", None, "must be one value"),
]  # fmt: skip

EQUAL = [
    Wrong(ON, "on: {user: amount}", 30, "join.on.user", None,
          "clicks.user is a string, and purchases.amount is an int; cast one of them in its "
          "silver table"),
    Wrong(ON, "on: {user: byer}", 30, "join.on.user", "buyer",
          "the silver table 'purchases' has no column 'byer'"),
    Wrong(ON, "on: {usr: buyer}", 30, "join.on.usr", "user",
          "the silver table 'clicks' has no column 'usr'"),
    Wrong(ON, "on: [buyer]", 30, "join.on", "user",
          "the silver table 'clicks' has no column 'buyer'"),
    Wrong(ON, "on: {user: purchases.buyer}", 30, "join.on.user", "buyer",
          "the silver table 'purchases' has no column 'purchases.buyer'"),
    Wrong(ON, "on: {user: lower(buyer)}", 30, "join.on.user", None,
          "the silver table 'purchases' has no column 'lower(buyer)'"),
    Wrong(ON, "on: {tags: user}", 30, "join.on.tags", None,
          "clicks.tags is an array<string>; take a part of it in its silver table"),
    Wrong(ON, "on: []", 30, "join.on", None,
          "is empty; name what is equal in both rows, such as [id]"),
    Wrong(ON, "on: {}", 30, "join.on", None, "is empty; name what is equal in both rows"),
    Wrong(ON, "on: user", 30, "join.on", "[user]",
          "must be a list of columns, or a map from columns to columns"),
    Wrong(ON, "on: [user, user]", 30, "join.on", None, "'user' is given twice"),
    Wrong(f"      {ON}\n", "", 27, "join", None, "the key 'on' is missing"),
]  # fmt: skip

OTHERS = [
    Wrong(f"      {WITHIN}\n", "", 27, "join", None, "the key 'within' is missing"),
    Wrong(WITHIN, "within: soon", 31, "join.within", None, "'soon' is not a duration"),
    Wrong(WITHIN, "within: {}", 31, "join.within", None,
          "needs 'before', 'after' or both, such as `within: 1 hour`"),
    Wrong(WITHIN, "within: {before: -1 s}", 31, "join.within.before", None, "zero or more"),
    Wrong(WITHIN, "within: {befor: 1 s}", 31, "join.within.befor", "before", "unknown key"),
    Wrong(WITHIN, f"{WITHIN}\n      kind: outer", 32, "join.kind", None,
          "must be one of inner, left, full, not 'outer'"),
    Wrong(WITHIN, f"{WITHIN}\n      where: purchases.amount", 32, "join.where", None,
          "must be a condition, not an int"),
    Wrong(WITHIN, f"{WITHIN}\n      where: purchases.amout > 1", 32, "join.where", "amount",
          "there is no field 'amout' in purchases"),
    Wrong(WITHIN, f"{WITHIN}\n      where: purchase.amount > 1", 32, "join.where", "purchases",
          "unknown column 'purchase'"),
    Wrong(WITHIN, f"{WITHIN}\n      where: amount > 1", 32, "join.where", "clicks.amount",
          "unknown column 'amount'"),
    Wrong(WITHIN, f"{WITHIN}\n      where: buyer > ''", 32, "join.where", "purchases.buyer",
          "unknown column 'buyer'"),
    Wrong(WITHIN, f"{WITHIN}\n      where: seen.user = ''", 32, "join.where", None,
          "unknown column 'seen'"),
    Wrong(WITHIN, f"{WITHIN}\n      where: purchases.amount >", 32, "join.where", None,
          "does not parse: it is incomplete after '>'"),
    # Spark has a function user(), which needs no parentheses.
    Wrong(WHO, "who: user", 33, "columns.who", "clicks.user", "unknown column 'user'"),
    Wrong(WHO, "who: clicks.usr", 33, "columns.who", "user", "there is no field 'usr' in clicks"),
    Wrong(WHO, "who: clicks._clock", 33, "columns.who", None,
          "there is no field '_clock' in clicks"),
    Wrong(WHO, "who: sum(purchases.amount)", 33, "columns.who", None, "sum() is a measure"),
    Wrong(WHO, "event_time: clicks.at", 33, "columns.event_time", None, "is a column of every"),
    Wrong(WHO, "row_id: clicks.id", 33, "columns.row_id", None, "is a column of every gold table"),
    Wrong(WHO, "revision: clicks.amount", 33, "columns.revision", None, "is a column of every"),
    Wrong("    columns:\n      who: clicks.user\n      paid: purchases.amount\n", "", 26, "", None,
          "the key 'columns' is missing; it names what a row has, such as clicks.id"),
    Wrong(LATENESS, "", 26, "", None, "the key 'allowed_lateness' is missing"),
    Wrong(JOIN, "    join: clicks\n", 27, "join", None, "must be a map of keys"),
    *(
        Wrong(LATENESS, f"    {key}: {value}\n{LATENESS}", 35, key, None,
              "has no meaning with 'join'; remove it")
        for key, value in (("from", "clicks"), ("by", "[user]"), ("salt", "4"),
                           ("measures", "{n: count(*)}"), ("where", "clicks.amount > 1"))
    ),
    Wrong(LATENESS, f"    window: {{tumbling: 1 hour}}\n{LATENESS}", 26, "", None,
          "needs exactly one of the keys window, as_of, join, over, running"),
]  # fmt: skip


@pytest.mark.parametrize(
    "wrong", [*TABLES, *EQUAL, *OTHERS], ids=lambda wrong: f"{wrong.key}-{wrong.new}"[:60]
)
def test_a_mistake_is_reported_where_it_is(wrong: Wrong) -> None:
    with pytest.raises(DeclarationError) as refused:
        declared((wrong.old, wrong.new))
    (problem,) = refused.value.problems
    key = f"gold.bought.{wrong.key}".rstrip(".")
    assert (problem.line, problem.key, problem.nearest) == (wrong.line, key, wrong.nearest)
    assert wrong.says in problem.message


def test_each_column_that_is_missing_is_reported() -> None:
    with pytest.raises(DeclarationError) as refused:
        declared((ON, "on: {clicks.user: purchases.user, tag: tags}"))
    said = [(each.key, each.message, each.nearest) for each in refused.value.problems]
    left, right = "the silver table 'clicks' has no", "the silver table 'purchases' has no"
    assert said == [
        ("gold.bought.join.on.clicks.user", f"{left} column 'clicks.user'", "user"),
        ("gold.bought.join.on.clicks.user", f"{right} column 'purchases.user'", "user"),
        ("gold.bought.join.on.tag", f"{left} column 'tag'", "tags"),
        (
            "gold.bought.join.on.tag",
            "purchases.tags is an array<string>; take a part of it in its silver table",
            None,
        ),
    ]


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("kind = 'click'", "knd = 'click'", "silver.clicks.where"),
        ("user: string\n", "user: strng\n", "sources.raw.record.schema.user"),
        ("clicks: {from: raw,", "clicks: {from: rw,", "silver.clicks.from"),
        ("clicks: {from: raw,", "clicks: {form: raw,", "silver.clicks.form"),
        ("{buyer: user}", "{buyer: usr}", "silver.purchases.columns.buyer"),
    ],
)
def test_what_depends_on_a_mistake_is_not_reported_too(old: str, new: str, key: str) -> None:
    with pytest.raises(DeclarationError) as refused:
        declared((old, new), (ON, "on: {user: buyer}"), more=ROLLUP)
    assert [each.key for each in refused.value.problems] == [key]


def test_without_silver_tables_nothing_is_said_of_a_join() -> None:
    with pytest.raises(DeclarationError) as refused:
        declared(("silver:\n", "silver: 5\nothers:\n"), more=ROLLUP)
    assert [each.key for each in refused.value.problems] == ["silver", "others"]


@pytest.mark.parametrize(
    ("on", "within", "meant"),
    [
        ("on: [user, amount]", WITHIN, ((("user", "user"), ("amount", "amount")), 0, 3600)),
        ("on: {user: buyer}", WITHIN, ((("user", "buyer"),), 0, 3600)),
        (ON, "within: {after: 1 minute}", ((("user", "user"),), 0, 60)),
        (ON, "within: {before: 5 s}", ((("user", "user"),), 5, 0)),
        (ON, "within: {before: 5 s, after: 7 s}", ((("user", "user"),), 5, 7)),
        (ON, "within: 0 s", ((("user", "user"),), 0, 0)),
    ],
)
def test_the_forms_of_a_join(
    on: str, within: str, meant: tuple[tuple[tuple[str, str], ...], int, int]
) -> None:
    table = declared((ON, on), (WITHIN, within)).gold["bought"]
    columns, before, after = meant
    seconds = timedelta(seconds=before), timedelta(seconds=after)
    assert table.operator == Join("clicks", "purchases", columns, *seconds)
    assert (table.inputs, table.reads, table.kind) == (("clicks", "purchases"), None, "join")
    assert table.types == {"who": STRING, "paid": INT}


def test_a_join_has_other_keys_of_gold_tables() -> None:
    late = "    step: 30 s\n    late: {replay_every: 1 h, within: 1 day}\n"
    pipeline = declared((LATENESS, late + LATENESS))
    table = pipeline.gold["bought"]
    assert table.step == timedelta(seconds=30)
    assert table.late is not None
    assert table.late.within == timedelta(days=1)
    assert [*pipeline.with_late_rows] == ["bought"]
    said = describe(pipeline)
    assert "  late     replayed every 1 hour, within 1 day of the watermark" in said
    assert "  step     every 30 seconds" in said


def test_the_plan_of_a_join() -> None:
    pipeline = declared((ON, "on: {user: buyer}"), (WITHIN, KIND))
    found = plan(pipeline)["gold"]["bought"]
    assert found["join"] == {
        "left": "clicks",
        "right": "purchases",
        "on": [{"left": "user", "right": "buyer"}],
        "before": "0 seconds",
        "after": "1 hour",
        "kind": "full",
        "where": "purchases.amount > 3",
    }
    assert (found["from"], found["by"], found["measures"]) == ("clicks, purchases", {}, {})
    assert found["schema"] == {
        "event_time": "timestamp",
        "row_id": "string",
        "who": "string",
        "paid": "int",
        "final": "boolean",
        "revision": "int",
        "updated_at": "timestamp",
    }
    assert found["late"]["schema"].keys() >= {"input", "clicks", "purchases", "late_seconds"}
    text = describe(pipeline)
    told = text[text.index("gold/bought") :].splitlines()
    assert told[:6] == [
        "gold/bought from clicks, purchases",
        "  join     full, purchases at most 1 hour after clicks, on user = buyer, "
        "20 seconds allowed lateness",
        "  where    purchases.amount > 3",
        "  step     auto",
        "  column   who = clicks.user",
        "  column   paid = purchases.amount",
    ]
    assert told[-1] == "  late     late/bought"


@pytest.mark.parametrize(
    ("within", "said"),
    [
        ("{before: 5 s}", "purchases at most 5 seconds before clicks"),
        ("{before: 5 s, after: 1 h}", "purchases at most 5 seconds before or 1 hour after clicks"),
        ("0 s", "purchases at the time of clicks"),
    ],
)
def test_the_bounds_of_a_join_are_told(within: str, said: str) -> None:
    assert f"  join     inner, {said}, on user, " in describe(
        declared((WITHIN, f"within: {within}"))
    )


@pytest.mark.parametrize(
    "new",
    [
        "within: {after: 60 minutes}\n      kind: inner",
        "within: {before: 0 s, after: 1 hour}",
        "within: 3600 s   # a comment",
    ],
)
def test_other_words_do_not_change_what_a_join_means(new: str) -> None:
    assert declared((WITHIN, new)).definitions == declared().definitions


def test_other_words_of_its_condition_do_not_change_it() -> None:
    one, other = (declared((WITHIN, KIND.replace(" > ", sign))) for sign in (" > ", ">"))
    assert one.definitions == other.definitions


JOINS = {"gold/bought", "late/bought", "gold/paid_per_day"}
HOURS = {"gold/per_hour", "late/per_hour"}


@pytest.mark.parametrize(
    ("old", "new", "more"),
    [
        ("{path: visited", "{path: elsewhere", set()),
        (ON, "on: {user: buyer}", {*JOINS}),
        (WITHIN, "within: {before: 1 hour}", {*JOINS}),
        (WITHIN, f"{WITHIN}\n      kind: left", {*JOINS}),
        (WITHIN, f"{WITHIN}\n      where: purchases.amount > 0", {*JOINS}),
        (WHO, "who: upper(clicks.user)", {*JOINS}),
        ("left: clicks\n      right: purchases", "left: purchases\n      right: clicks", {*JOINS}),
        ("kind = 'click'", "kind = 'klick'", {*JOINS, "silver/clicks", *HOURS}),
        ("kind = 'purchase'", "kind = 'buy'", {*JOINS, "silver/purchases"}),
        ("{from: visits}", "{from: visits, where: id > ''}", {"silver/seen"}),
    ],
)
def test_what_changes_the_meaning_of_a_join(old: str, new: str, more: set[str]) -> None:
    before, after = declared(more=FOLD + ROLLUP), declared((old, new), more=FOLD + ROLLUP)
    assert {p for p in before.definitions if before.definitions[p] != after.definitions[p]} == more


def test_a_join_is_downstream_of_all_its_inputs() -> None:
    graph = graph_of(declared(more=FOLD + ROLLUP))
    above = ("silver/clicks", "silver/purchases")
    assert (graph["gold/bought"].upstream, graph["late/bought"].upstream) == (above, above)
    assert graph["gold/bought"].sides == {"late": "late/bought"}
    assert graph.numbered_by("gold/bought").path == "bronze/raw"
    assert graph.rollups_of("gold/bought") == ("gold/paid_per_day",)
    rebuilt = graph.rebuilt_with(["silver/purchases"])
    assert rebuilt == {"silver/purchases", "gold/bought", "late/bought", "gold/paid_per_day"}
    assert {*JOINS} < graph.rebuilt_with(["silver/clicks"])
    assert graph.rebuilt_with(["silver/seen"]) == {"silver/seen"}


SEEN = ("right: purchases", "right: seen"), ("paid: purchases.amount", "paid: length(seen.id)")


def test_a_join_of_two_sources_has_the_batch_ids_of_their_input_log() -> None:
    graph = graph_of(pipeline := declared(*SEEN, more=FOLD + ROLLUP))
    log = "_headgate/inputs/raw-visits"
    assert graph[log].upstream == ("bronze/raw", "bronze/visits")
    assert graph["gold/bought"].upstream == (log, "silver/clicks", "silver/seen")
    assert {graph.numbered_by(f"gold/{n}").path for n in ("bought", "paid_per_day")} == {log}
    assert graph.numbered_by("silver/seen").path == "bronze/visits"
    assert graph.sources_of("late/bought") == ("raw", "visits")
    # A rebuild of silver does not change batch ids, and one of bronze begins them again.
    below = {"gold/bought", "late/bought", "gold/paid_per_day"}
    assert graph.rebuilt_with(["silver/seen"]) == {"silver/seen", *below}
    assert graph.rebuilt_with(["bronze/visits"]) >= {log, "silver/seen", *below}
    assert "silver/clicks" not in graph.rebuilt_with(["bronze/visits"])
    other = declared(*SEEN, ("schema: {id: string", "schema: {id: string, more: string"))
    assert pipeline.definitions[log] == other.definitions[log]
    assert pipeline.definitions["bronze/visits"] != other.definitions["bronze/visits"]


LATENESS = "    allowed_lateness: 20 seconds\n"


def test_a_live_join_has_the_same_meaning() -> None:
    live = declared((LATENESS, LATENESS + "    live: true\n"))
    assert (live.gold["bought"].live, declared().gold["bought"].live) == (True, False)
    assert live.definitions == declared().definitions


def test_only_a_join_can_be_live() -> None:
    fold = FOLD.rstrip() + "\n    live: true\n"
    with pytest.raises(DeclarationError, match="open rows are always shown, except those of joins"):
        declared(more=fold)


def test_the_open_rows_of_a_live_join_are_not_published() -> None:
    publish = "publish:\n  out: {from: gold.bought, when: update, jsonl: {path: out.jsonl}}\n"
    live = LATENESS, LATENESS + "    live: true\n"
    with toys():
        with pytest.raises(DeclarationError, match="each step replaces the open rows") as refused:
            declared(live, more=publish)
        assert refused.value.problems[0].nearest == "final"
        assert declared(live, more=publish.replace("update", "final")).publish


def test_a_schedule_of_backfills_needs_a_table_with_windows() -> None:
    airflow = "airflow: {backfill: {every: 1 day}}\n"
    assert declared(more=FOLD + airflow).backfill is not None
    with pytest.raises(DeclarationError, match=r"airflow\.backfill: no gold table can be"):
        declared(more=airflow)


def test_a_backfill_leaves_joins_out() -> None:
    pipeline = declared(more=FOLD + ROLLUP)
    assert [*pipeline.with_late_rows] == ["bought", "per_hour"]
    assert backfilled_tables(pipeline) == ("per_hour",)


def test_the_columns_of_its_rows_and_late_rows() -> None:
    pipeline = declared()
    table = pipeline.gold["bought"]
    assert bounds_of(table) == ("event_time",)
    assert shown_key(table) == (("event_time",), ("row_id",))
    assert key_of(table) == key_of_gold(table) == ("row_id",)
    record = pipeline.sources["raw"].record
    silver = {name: pipeline.silver[name].row(record) for name in table.inputs}
    late = late_columns(table, silver)
    assert [*late] == ["input", *SILVER_COLUMNS, *WHY_LATE, "clicks", "purchases"]
    assert late["input"] == STRING
    assert late["purchases"] == Struct.of(pipeline.silver["purchases"].types)
    assert late_identity(table) == ("input", "_partition", "_offset", "_item")
    assert late_bounds_of(table) == ()


def test_a_gold_table_reads_the_rows_of_a_join() -> None:
    pipeline = declared(more=ROLLUP)
    rollup = pipeline.gold["paid_per_day"]
    assert (rollup.reads, rollup.inputs) == ("bought", ("clicks", "purchases"))
    assert rollup.types["last"] == TIMESTAMP
    assert plan(pipeline)["gold"]["paid_per_day"]["late"] is None
    assert "gold/paid_per_day from bought" in describe(pipeline)
    # It may stand before the join.
    swapped = declared(("gold:\n", f"gold:\n{ROLLUP}"))
    assert [*swapped.gold] == ["bought", "paid_per_day"]
    assert swapped.definitions == pipeline.definitions


@pytest.mark.parametrize(
    ("old", "new", "line", "says"),
    [
        ("sum(paid)", "sum(amount)", 40, "unknown column 'amount'"),
        ("sum(paid)", "sum(purchases.amount)", 40, "unknown column 'purchases'"),
        ("bought.event_time", "bought.window_end", 40, "there is no field 'window_end' in bought"),
        ("1 minute", "10 seconds", 41,
         "is less than that of 'bought', whose rows arrive only 20 seconds after their time"),
        ("1 minute", "1 minute\n    late: {replay_every: 1 h, within: 1 d}", 42,
         "a table that reads gold has no late rows; write it in 'bought'"),
        ("{tumbling: 1 day}", "{count: 10}", 37, "such a table reads silver"),
        ("{tumbling: 1 day}", "{tumbling: 1 day, time: arrival}", 38, "and no arrival; remove it"),
    ],
)  # fmt: skip
def test_what_such_a_table_cannot_have(old: str, new: str, line: int, says: str) -> None:
    with pytest.raises(DeclarationError) as refused:
        declared((ROLLUP, ROLLUP.replace(old, new)), more=ROLLUP)
    said = {each.line: each.message for each in refused.value.problems}
    assert says in said[line]


def test_the_rows_of_a_join_and_its_late_rows_can_be_published() -> None:
    publish = "publish:\n" + "".join(
        f"  {layer}: {{from: {layer}.bought, kafka: {{servers: 'a:1', topic: {layer}}}}}\n"
        for layer in ("gold", "late")
    )
    pipeline = declared(more=publish)
    assert {name: each.table for name, each in pipeline.publish.items()} == {
        "gold": "bought",
        "late": "bought",
    }
    graph = graph_of(pipeline)
    assert graph[PUBLICATION.path("late")].upstream == ("late/bought",)


def with_suite(rule: str, *changes: tuple[str, str]) -> Pipeline:
    text = changed(*changes, (LATENESS, f"{LATENESS}    expectations: sane\n"))
    suites = {"sane": f"expectations: [{{id: a, {rule}}}]"}
    return load("/shop/pipelines/shop.yml", text=text, suites=suites)


@pytest.mark.parametrize("rule", ["expect: paid > 0", "expect: row_id is not null and final"])
def test_rules_are_about_the_columns_of_a_join(rule: str) -> None:
    assert with_suite(rule).gold["bought"].suite is not None


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        ("expect: clicks.amount > 0", "unknown column 'clicks'"),
        (
            "expect: expect_column_sum_to_equal_silver, column: paid, silver: clicks.amount",
            "is for tables with measures, which this table does not have",
        ),
    ],
)
def test_a_rule_that_a_join_cannot_have_is_reported_once(rule: str, says: str) -> None:
    with pytest.raises(DeclarationError) as refused:
        with_suite(rule)
    (problem,) = refused.value.problems
    assert says in problem.message


def test_rules_of_a_wrong_join_are_not_reported_too() -> None:
    with pytest.raises(DeclarationError) as refused:
        with_suite("expect: row_id is not null and paid > 0", (WITHIN, "within: soon"))
    assert [each.key for each in refused.value.problems] == ["gold.bought.join.within"]
