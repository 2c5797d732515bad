"""Each mistake is reported alone, with its line, its key and what was probably meant."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest

from headgate.declaration.errors import DeclarationError, DeclarationProblem
from headgate.declaration.model import Pipeline
from headgate.declaration.types import STRING

Refuse = Callable[[str], tuple[DeclarationProblem, ...]]
Read = Callable[[str], Pipeline]


class Wrong(NamedTuple):
    """``old`` of the base declaration becomes ``new``. The other fields are of the only problem."""

    old: str
    new: str
    line: int
    key: str
    nearest: str | None
    says: str


FILES = "files: {path: landing/orders, format: json}"
RECORD = "sources.orders.record"
WHERE = "where: price > 0"
MEAN = "mean: revenue / orders"
NOTE = "note: lower(note)"
WINDOW = "window: {tumbling: 1 minute}"
SUM = "revenue: sum(price)"
TIME = "event_time: {column: ordered_at}"

KEYS = [
    Wrong("pipeline:", "pipline:", 1, "pipline", "pipeline", "unknown key"),
    Wrong("jobs: fused", "job: fused", 37, "job", "jobs", "unknown key"),
    Wrong("format: json", "fromat: json", 4, "sources.orders.files.fromat", "format", "unknown"),
    Wrong("event_id:", "event_ids:", 6, f"{RECORD}.event_ids", "event_id", "unknown key"),
    Wrong("drop:", "dorp:", 24, "silver.clean.dorp", "drop", "unknown key"),
    Wrong("jobs: fused", "colour: red", 37, "colour", None,
          "unknown key; the keys here are pipeline, sources, silver, gold, publish, jobs"),
    Wrong("tumbling:", "tumblin:", 29, "gold.sales.window.tumblin", "tumbling", "unknown key"),
    Wrong("pipeline: shop\n", "", 1, "", None, "the key 'pipeline' is missing"),
    Wrong("    from: orders\n", "", 20, "silver.clean", None, "the key 'from' is missing"),
    Wrong("path: landing/orders, ", "", 4, "sources.orders.files", None, "'path' is missing"),
    Wrong(f"      {TIME}\n", "", 5, RECORD, None, "the key 'event_time' is missing"),
    Wrong("    allowed_lateness: 10 seconds\n", "", 27, "gold.sales", None, "'allowed_lateness'"),
    Wrong("jobs: fused", "jobs: fused\njobs: fused", 38, "jobs", None, "given twice"),
    Wrong(NOTE, f"{NOTE}\n      note: upper(note)", 24, "silver.clean.columns.note", None,
          "is given twice (first on line 23)"),
    Wrong("jobs: fused", "jobs:", 37, "jobs", None, "has no value"),
    Wrong(f"    {FILES}\n", "", 3, "sources.orders", None,
          "needs exactly one of the keys files, kafka"),
    Wrong(FILES, f"{FILES}\n    kafka: {{servers: 'a:1', topic: b}}", 3, "sources.orders", None,
          "needs exactly one of the keys files, kafka"),
    Wrong(FILES, "kafak: {servers: 'a:1', topic: b}", 4, "sources.orders.kafak", "kafka",
          "unknown key"),
]  # fmt: skip

SHAPES = [
    Wrong(FILES, "files: landing/orders", 4, "sources.orders.files", None, "must be a map of keys"),
    Wrong("event_id: [order_id]", "event_id: order_id", 6, f"{RECORD}.event_id", "[order_id]",
          "must be a list of names"),
    Wrong("by: [customer]", "by: customer", 30, "gold.sales.by", "[customer]", "a list of columns"),
    Wrong(WHERE, "where: [price]", 25, "silver.clean.where", None, "must be one value"),
    Wrong("jobs: fused", "jobs: fusde", 37, "jobs", "fused", "must be one of fused, per_layer"),
    Wrong("format: json", "format: jsonl", 4, "sources.orders.files.format", "json", "one of"),
    Wrong("format: json", "format: csv, csv: {header: yes}", 4, "sources.orders.files.csv.header",
          "true", "must be true or false, not 'yes'"),
    Wrong("format: json", "format: csv, csv: {delimiter: '::'}", 4,
          "sources.orders.files.csv.delimiter", None, "must be one character"),
    Wrong("format: json", "format: json, csv: {header: true}", 4, "sources.orders.files.csv", None,
          "the format is json"),
    Wrong("format: json", "format: json, max_files_per_batch: 0", 4,
          "sources.orders.files.max_files_per_batch", None, "at least 1"),
    Wrong("10 seconds", "10 seconds\n    salt: 1", 37, "gold.sales.salt", None, "at least 2"),
    Wrong("10 seconds", "10 seconds\n    salt: 2000", 37, "gold.sales.salt", None, "at most 1024"),
    Wrong("10 seconds", "10 seconds\n    step: 9 ms", 37, "gold.sales.step", None, "at least 1 s"),
    Wrong("10 seconds", "10 seconds\n    step: 2 d", 37, "gold.sales.step", None, "at most 1 day"),
    Wrong("10 seconds", "10 seconds\n    step: Auto", 37, "gold.sales.step", "auto",
          "must be a duration or auto, not 'Auto'"),
    Wrong("10 seconds", "10 seconds\n    step: 30", 37, "gold.sales.step", "30 seconds", "no unit"),
    Wrong("10 seconds", "10 seconds\n    salt: auto", 37, "gold.sales.salt", None, "whole number"),
    Wrong("format: json", "format: json, max_files_per_batch: many", 4,
          "sources.orders.files.max_files_per_batch", None, "must be a whole number"),
    Wrong("format: json", "format: json, max_bytes_per_batch: 64 megs", 4,
          "sources.orders.files.max_bytes_per_batch", None, "not a unit of size"),
    Wrong("format: json", "format: json, max_files_per_batch: +-5", 4,
          "sources.orders.files.max_files_per_batch", None, "must be a whole number, not '+-5'"),
    Wrong("jobs: fused", "circuit_breaker: {batches: 5}", 37, "circuit_breaker", None,
          "needs refused_above or records_below"),
    Wrong("jobs: fused", "circuit_breaker: {refused_above: 5}", 37,
          "circuit_breaker.refused_above", "5 %", "has no %"),
    Wrong("pipeline: shop", "pipeline: 5", 1, "pipeline", None, "must be a name, not 5"),
    Wrong("drop: [weight]", "drop: [weight, weight]", 24, "silver.clean.drop", None, "given twice"),
]  # fmt: skip

NAMES = [
    Wrong("pipeline: shop", "pipeline: MyShop", 1, "pipeline", "my_shop", "is not a name"),
    Wrong("quantity: int", "unit-Count: int", 13, f"{RECORD}.schema.unit-Count", None,
          'at most 63; write unit_Count: {field: "unit-Count", type: int}'),
    Wrong(SUM, "unitRevenue: sum(price)\n      revenue: sum(price)", 33,
          "gold.sales.measures.unitRevenue", "unit_revenue", "lower-case letters"),
    Wrong("mean:", "meanPrice:", 35, "gold.sales.columns.meanPrice", "mean_price", "lower-case"),
    Wrong("  sales:", "  dailySales:", 27, "gold.dailySales", "daily_sales", "lower-case"),
    Wrong("quantity: int", "Price: int", 13, f"{RECORD}.schema.Price", None,
          "differs only in case from 'price'"),
    Wrong(NOTE, "Note: lower(note)", 23, "silver.clean.columns.Note", None,
          "differs only in case from 'note'"),
    Wrong(NOTE, "Reason: note", 23, "silver.clean.columns.Reason", None, "late side tables"),
    Wrong("by: [customer]", "by: {Window_End: customer}", 30, "gold.sales.by.Window_End", None,
          "differs only in case from 'window_end', which is a column of every gold table"),
    Wrong(SUM, f"{SUM}\n      orders_of: count(*)\n    where: Price > 0", 35,
          "gold.sales.where", "price", "unknown column 'Price'"),
    Wrong("quantity: int", "_quantity: int", 13, f"{RECORD}.schema._quantity", None, "underscore"),
    Wrong("  sales:", "  clean:", 27, "gold.clean", None, "is taken by a silver table"),
    Wrong("  sales:", "  orders:", 27, "gold.orders", None, "is taken by a source"),
    Wrong("  sales:", "  quarantine:", 27, "gold.quarantine", None, "a table of every pipeline"),
    Wrong(SUM, f"{SUM}\n      customer: count(*)", 34, "gold.sales.measures.customer", None,
          "is taken by a key of by"),
    Wrong("mean:", "revenue:", 35, "gold.sales.columns.revenue", None, "taken by a measure"),
    Wrong(SUM, f"{SUM}\n      window_end: count(*)", 34, "gold.sales.measures.window_end", None,
          "a column of every gold table"),
    Wrong("mean:", "final:", 35, "gold.sales.columns.final", None, "a column of every gold table"),
    Wrong("from: orders", "from: order", 21, "silver.clean.from", "orders", "no source 'order'"),
    Wrong("from: clean", "from: cleen", 28, "gold.sales.from", "clean", "no silver or gold table"),
    Wrong(NOTE, "reason: note", 23, "silver.clean.columns.reason", None, "late side tables"),
]  # fmt: skip

COLUMNS = [
    Wrong("event_id: [order_id]", "event_id: [orderid]", 6, f"{RECORD}.event_id", "order_id",
          "the schema has no column 'orderid'"),
    Wrong("event_id: [order_id]", "event_id: [weight]", 6, f"{RECORD}.event_id", None, "no exact"),
    Wrong("event_id: [order_id]", "event_id: []", 6, f"{RECORD}.event_id", None, "is empty"),
    Wrong("      event_id: [order_id]\n", "", 7, f"{RECORD}.duplicates", None, "needs event_id"),
    Wrong("column: ordered_at", "column: order_at", 7, f"{RECORD}.event_time.column", "ordered_at",
          "the schema has no column 'order_at'"),
    Wrong("column: ordered_at", "column: customer", 7, f"{RECORD}.event_time.column", None,
          "is a bigint, and the format iso reads a timestamp"),
    Wrong("column: ordered_at", "column: quantity, format: epoch_millis", 7,
          f"{RECORD}.event_time.column", None, "reads a bigint"),
    Wrong("column: ordered_at", "column: ordered_at, format: epoch_milis", 7,
          f"{RECORD}.event_time.format", "epoch_millis", "a format is iso"),
    Wrong("column: ordered_at", "column: order_id, format: yyyy-MM-dd", 7,
          f"{RECORD}.event_time.format", None, "add the key zone"),
    Wrong("column: ordered_at", "column: order_id, format: yyyy-MM-dd, zone: Europe/Pari", 7,
          f"{RECORD}.event_time.zone", "Europe/Paris", "not an IANA time zone"),
    Wrong("column: ordered_at", "column: customer, format: epoch_millis, zone: UTC", 7,
          f"{RECORD}.event_time.zone", None, "epoch_millis counts from 1970 in UTC; remove zone"),
    Wrong("column: ordered_at", "column: ordered_at, ambiguous: later", 7,
          f"{RECORD}.event_time.ambiguous", None, "has no effect without zone"),
    Wrong("column: ordered_at", '"column": "@time"', 7, f"{RECORD}.event_time.column", "time",
          "'@time' is not a name"),
    Wrong("event_id: [order_id]", "event_id: [order id]", 6, f"{RECORD}.event_id", "order_id",
          "'order id' is not a name"),
    Wrong("event_id: [order_id]", "event_id: [_id]", 6, f"{RECORD}.event_id", "id",
          "starts with an underscore"),
    Wrong("event_id: [order_id]", "event_id: [order_id.]", 6, f"{RECORD}.event_id", "order_id",
          "is not a column or a path such as payload.id"),
    Wrong("event_id: [order_id]", "event_id: [order_id.a]", 6, f"{RECORD}.event_id", None,
          "'order_id' is a string, not a struct"),
    Wrong("event_id: [order_id]", "event_id: [order.id]", 6, f"{RECORD}.event_id", "order_id",
          "the schema has no column 'order'"),
    Wrong("quantity: int", "quantity: {field: n}", 13, f"{RECORD}.schema.quantity", None,
          "the key 'type' is missing"),
    Wrong("quantity: int", "quantity: {type: int, feild: n}", 13,
          f"{RECORD}.schema.quantity.feild", "field", "unknown key"),
    Wrong("quantity: int", "quantity: {type: integr, field: n}", 13,
          f"{RECORD}.schema.quantity.type", "int", "supported"),
    Wrong("quantity: int", "quantity: {type: int, field: price}", 13, f"{RECORD}.schema.quantity",
          None, "reads the field 'price', as price does; make one of them in silver"),
    Wrong("quantity: int", "quantity: {type: int, format: iso}", 13,
          f"{RECORD}.schema.quantity.format", None,
          "is for timestamps, and the column is an int; remove format"),
    Wrong("quantity: int", "at: {type: timestamp, format: yyyy-MM-dd}", 13,
          f"{RECORD}.schema.at.format", None, "add the key zone"),
    Wrong("ordered_at: timestamp", "ordered_at: {type: timestamp, zone: Europe/Pari}", 18,
          f"{RECORD}.schema.ordered_at.zone", "Europe/Paris", "not an IANA time zone"),
    Wrong("quantity: int", "quantity: integr", 13, f"{RECORD}.schema.quantity", "int", "supported"),
    Wrong("note: string", "note: text", 15, f"{RECORD}.schema.note", "string", "supported"),
    Wrong("decimal(18,2)", "decimal", 12, f"{RECORD}.schema.price", "decimal(18,2)", "precision"),
    Wrong("decimal(18,2)", "decimal(39,2)", 12, f"{RECORD}.schema.price", None, "out of range"),
    Wrong("note: string", "note: array<strng>", 15, f"{RECORD}.schema.note", "string", "element"),
    Wrong("by: [customer]", "by: [custmer]", 30, "gold.sales.by", "customer", "no column"),
    Wrong("drop: [weight]", "drop: [weigth]", 24, "silver.clean.drop", "weight", "no column"),
    Wrong(NOTE, "ordered_at: ordered_at", 23, "silver.clean.columns.ordered_at", None,
          "would change the event time"),
]  # fmt: skip

TIMES = [
    Wrong("10 minutes", "10 minuts", 8, f"{RECORD}.duplicates.within", "10 minutes", "not a unit"),
    Wrong("10 minutes", "10", 8, f"{RECORD}.duplicates.within", "10 seconds", "has no unit"),
    Wrong("10 minutes", "0 s", 8, f"{RECORD}.duplicates.within", None, "at least 1 millisecond"),
    Wrong("10 minutes", "500 days", 8, f"{RECORD}.duplicates.within", None, "at most 366 days"),
    Wrong("10 minutes", "1.5 hours", 8, f"{RECORD}.duplicates.within", None, "not a whole number"),
    Wrong("10 seconds", "-10 seconds", 36, "gold.sales.allowed_lateness", None, "zero or more"),
    Wrong("10 seconds", "soon", 36, "gold.sales.allowed_lateness", None, "is not a duration"),
    Wrong("1 minute}", "999999999999 days}", 29, "gold.sales.window.tumbling", None, "too long"),
    Wrong(WINDOW, "window: {hopping: {size: 5 minutes, every: 2 minutes}}", 29,
          "gold.sales.window.hopping.size", "4 minutes", "is not a multiple of every"),
    Wrong(WINDOW, "window: {hopping: {size: 1 day, every: 1 s}}", 29,
          "gold.sales.window.hopping.every", None, "more than 1000 windows"),
    Wrong(WINDOW, "window: {tumbling: 1 s, hopping: {size: 2 s, every: 1 s}}", 29,
          "gold.sales.window", None, "one of the keys calendar, count, session, tumbling, hopping"),
    Wrong(WINDOW, "window: {}", 29, "gold.sales.window", None, "needs exactly one"),
    Wrong(WINDOW, "window: {tumbling: {size: 1 day, offset: 30 hours}}", 29,
          "gold.sales.window.tumbling.offset", "6 hours",
          "30 hours is not less than size (1 day), the time between two starts"),
    Wrong(WINDOW, "window: {tumbling: {size: 1 day, offset: 1 day}}", 29,
          "gold.sales.window.tumbling.offset", None, "remove the key"),
    Wrong(WINDOW, "window: {tumbling: {size: 1 day, offset: -6 hours}}", 29,
          "gold.sales.window.tumbling.offset", None, "zero or more"),
    Wrong(WINDOW, "window: {tumbling: {size: 1 day, offset: dawn}}", 29,
          "gold.sales.window.tumbling.offset", None, "is not a duration"),
    Wrong(WINDOW, "window: {tumbling: {offset: 6 hours}}", 29, "gold.sales.window.tumbling", None,
          "the key 'size' is missing"),
    Wrong(WINDOW, "window: {tumbling: {size: 1 day, ofset: 6 hours}}", 29,
          "gold.sales.window.tumbling.ofset", "offset", "unknown key"),
    Wrong(WINDOW, "window: {tumbling: [1 day]}", 29, "gold.sales.window.tumbling", None,
          "must be one value"),
    Wrong(WINDOW, "window: {hopping: {size: 1 d, every: 1 h, offset: 90 min}}", 29,
          "gold.sales.window.hopping.offset", "30 minutes",
          "90 minutes is not less than every (1 hour), the time between two starts"),
    Wrong(WINDOW, "window: {calendar: day}", 29, "gold.sales.window.calendar", None,
          "must be a map of keys"),
    Wrong(WINDOW, "window: {calendar: {unit: day}}", 29, "gold.sales.window.calendar", None,
          "the key 'zone' is missing"),
    Wrong(WINDOW, "window: {calendar: {zone: UTC}}", 29, "gold.sales.window.calendar", None,
          "the key 'unit' is missing"),
    Wrong(WINDOW, "window: {calendar: {unit: days, zone: UTC}}", 29,
          "gold.sales.window.calendar.unit", "day", "must be one of day, week, month"),
    Wrong(WINDOW, "window: {calendar: {unit: day, zone: Europe/Berln}}", 29,
          "gold.sales.window.calendar.zone", "Europe/Berlin",
          "'Europe/Berln' is not an IANA time zone; write one such as Europe/Berlin"),
    Wrong(WINDOW, "window: {calendar: {unit: day, zone: new york}}", 29,
          "gold.sales.window.calendar.zone", "America/New_York", "is not an IANA time zone"),
    Wrong(WINDOW, "window: {calendar: {unit: day, zone: localtime}}", 29,
          "gold.sales.window.calendar.zone", None, "is not an IANA time zone"),
    Wrong(WINDOW, "window: {calendar: {unit: day, zone: 7}}", 29,
          "gold.sales.window.calendar.zone", None, "'7' is not an IANA time zone"),
    Wrong(WINDOW, "window: {calendar: {unit: day, zone: '+02:00'}}", 29,
          "gold.sales.window.calendar.zone", None, "is not an IANA time zone"),
]  # fmt: skip

EXPRESSIONS = [
    Wrong("lower(note)", "lower(nota)", 23, "silver.clean.columns.note", "note", "unknown column"),
    Wrong("lower(note)", "lowr(note)", 23, "silver.clean.columns.note", "lower", "unknown func"),
    Wrong("lower(note)", "lower(note, 1)", 23, "silver.clean.columns.note", None, "takes 1 argum"),
    Wrong("lower(note)", "lower(price)", 23, "silver.clean.columns.note", None, "takes a string"),
    Wrong("lower(note)", "lower(note", 23, "silver.clean.columns.note", None, "does not parse"),
    Wrong("lower(note)", "null", 23, "silver.clean.columns.note", None, "has no value"),
    Wrong("lower(note)", "split(note, ',').x", 23, "silver.clean.columns.note", None, "no field"),
    Wrong(WHERE, "where: price >", 25, "silver.clean.where", None, "it is incomplete after '>'"),
    Wrong(WHERE, "where: price", 25, "silver.clean.where", None, "must be a condition"),
    Wrong(WHERE, "where: price > '0'", 25, "silver.clean.where", None, "compares a decimal(18,2)"),
    Wrong(WHERE, "where: _rescued is null", 25, "silver.clean.where", None,
          "unknown column '_rescued': silver has it with unknown_fields: rescue"),
    Wrong(WHERE, "where: prise > 0", 25, "silver.clean.where", "price", "unknown column"),
    Wrong(MEAN, "mean: revenue / order", 35, "gold.sales.columns.mean", "orders", "unknown column"),
    Wrong(MEAN, "mean: price / orders", 35, "gold.sales.columns.mean", None, "unknown column"),
    Wrong(MEAN, "mean: sum(price)", 35, "gold.sales.columns.mean", None, "belongs under measures"),
    Wrong(SUM, "revenue: sum(pric)", 33, "gold.sales.measures.revenue", "price", "unknown column"),
    Wrong(SUM, "revenue: sum(weight)", 33, "gold.sales.measures.revenue", None, "unknown column"),
    Wrong(SUM, "revenue: sum(note)", 33, "gold.sales.measures.revenue", None, "takes a number"),
    Wrong(SUM, "revenue: sun(price)", 33, "gold.sales.measures.revenue", "sum", "not a measure"),
    Wrong(SUM, "revenue: average(price)", 33, "gold.sales.measures.revenue", "avg",
          "not a measure"),
    Wrong(SUM, "revenue: sum", 33, "gold.sales.measures.revenue", "sum(...)", "is a call"),
    Wrong(SUM, "revenue: sum(price) / 2", 33, "gold.sales.measures.revenue", None, "one measure"),
    Wrong(SUM, "revenue: sum(price, 2)", 33, "gold.sales.measures.revenue", None, "one argument"),
    Wrong(SUM, "revenue: sum(distinct price)", 33, "gold.sales.measures.revenue", None, "distinct"),
    Wrong(SUM, "revenue: collect_list(price)", 33, "gold.sales.measures.revenue", None,
          "collect_list(x, n), with a whole number from 1 to 100 as n, such as 10"),
    Wrong(SUM, "revenue: top_n(price, price, 1000)", 33, "gold.sales.measures.revenue", None,
          "top_n() takes a whole number from 1 to 100 as n, such as 10"),
    Wrong(SUM, "revenue: corr(price)", 33, "gold.sales.measures.revenue", None, "measures are"),
    Wrong(SUM, "revenue: price", 33, "gold.sales.measures.revenue", None, "must be one of"),
    Wrong("by: [customer]", "by: {k: upper(customer)}", 30, "gold.sales.by.k", None, "a string"),
    Wrong("jobs: fused", "airflow: {backfill: {every: 1 day, mode: late, publish: always}}", 37,
          "airflow.backfill.publish", None, "no effect without mode: rebuild"),
    Wrong("jobs: fused", "airflow: {backfill: {every: 1 day, mode: verfy}}", 37,
          "airflow.backfill.mode", "verify", "must be one of"),
    Wrong("jobs: fused", "airflow: {backfill: {mode: rebild, every: 1 day, publish: always}}", 37,
          "airflow.backfill.mode", "rebuild", "must be one of"),
    Wrong("jobs: fused", "airflow:\n  backfill:\n    every: 1 day\n    publish: always", 40,
          "airflow.backfill.publish", None, "no effect without mode: rebuild"),
    Wrong(MEAN, "mean: collect_set(price)", 35, "gold.sales.columns.mean", None,
          "is an aggregate"),
    Wrong(WINDOW, "window: {session: 1 s}\n    salt: 4", 30, "gold.sales.salt", None,
          "never divided"),
    Wrong("lower(note)", "${env:HOME}", 23, "silver.clean.columns.note", None, "only in a"),
]  # fmt: skip

WORK_TODAY = {"functions", "lookup", "sql", "transform"}
WORK_TODAY |= {"latest", "process"}
NEXT = [
    Wrong(WINDOW, "latest: {}", 29, "gold.sales.latest", None, "not built yet"),
    Wrong(WINDOW, "process: {}", 29, "gold.sales.process", None, "not built yet"),
    *(
        Wrong(WHERE, f"{key}: x", 25, f"silver.clean.{key}", None, "not built yet")
        for key in ("lookup", "sql", "transform")
    ),
    *(
        Wrong("jobs: fused", f"{key}: x", 37, key, None, "not built yet")
        for key in ("functions", "partition_by", "retain")
    ),
]

# What is proposed instead of features that are not built yet.
TODAY = [
    ("lower(note)", "case note when 'a' then 'b' end"),
    (WINDOW, "window: {tumbling: 1 day}"),
    (SUM, "revenue: last(price)"),
]

YAML = [
    Wrong("jobs: fused", "jobs: [fused", 37, "", None, "is not YAML"),
    Wrong("lower(note)", "'a' || note", 23, "", None, "quote this value"),
    Wrong("where: price > 0", "where: note = a: b", 25, "", None, "quote this value"),
    Wrong("jobs: fused", "---\njobs: fused", 37, "", None, "one YAML document"),
    Wrong("by: [customer]", "by: &x [customer]\n    where: *x", 31, "gold.sales.where", None,
          "is a YAML alias"),
    Wrong("jobs: fused", "jobs: !mine fused", 37, "jobs", None, "tags are not supported"),
    Wrong("pipeline: shop", "pipeline: !!str shop", 1, "pipeline", None, "tags are not supported"),
    Wrong("by: [customer]", "by: {k: coalesce(customer, 0)}", 30, "gold.sales.by", None,
          "unbalanced parenthesis; quote this value"),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    "wrong",
    [*KEYS, *SHAPES, *NAMES, *COLUMNS, *TIMES, *EXPRESSIONS, *NEXT, *YAML],
    ids=lambda wrong: f"{wrong.key}-{wrong.new}"[:60],
)
def test_a_mistake_is_reported_where_it_is(wrong: Wrong, base: str, refuse: Refuse) -> None:
    assert wrong.old in base
    problems = refuse(base.replace(wrong.old, wrong.new, 1))
    assert len(problems) == 1, "\n".join(map(str, problems))
    problem = problems[0]
    assert (problem.line, problem.key, problem.nearest) == (wrong.line, wrong.key, wrong.nearest)
    assert wrong.says in problem.message
    assert "; instead, " in problem.message or not WORK_TODAY & {wrong.key.rpartition(".")[2]}


def test_a_part_of_a_nested_field_is_taken_from_what_is_rescued(base: str, read: Read) -> None:
    text = base.replace("lower(note)", "get_json_object(_rescued, '$.address.city')")
    rescue = "unknown_fields: rescue\n      duplicates:"
    assert read(text.replace("duplicates:", rescue)).silver["clean"].columns[0].type == STRING
    # The misspelt value is reported, and only once.
    with pytest.raises(DeclarationError) as caught:
        read(text.replace("duplicates:", rescue.replace("rescue", "rescu")))
    assert len(caught.value.problems) == 1


@pytest.mark.parametrize(("old", "new"), TODAY)
def test_what_is_named_instead_works(old: str, new: str, base: str, read: Read) -> None:
    assert read(base.replace(old, new, 1)).name == "shop"


def test_all_mistakes_are_reported_together_in_the_order_of_lines(
    base: str, refuse: Refuse
) -> None:
    text = base.replace("lower(note)", "lowr(note)").replace("jobs: fused", "jobs: both")
    problems = refuse(text.replace("pipeline: shop", "pipeline: Shop"))
    assert [problem.line for problem in problems] == [1, 23, 37]


def test_what_depends_on_a_mistake_is_not_reported_too(base: str, refuse: Refuse) -> None:
    """price has no type, so where, sum(price) and mean cannot be checked."""
    problems = refuse(base.replace("decimal(18,2)", "decimal(18;2)"))
    assert [problem.key for problem in problems] == ["sources.orders.record.schema.price"]
