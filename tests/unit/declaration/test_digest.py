"""The digest depends on what a pipeline means, not on how it is written."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest

from headgate.declaration.digest import digest
from headgate.declaration.load import load
from headgate.declaration.model import Pipeline
from headgate.declaration.plan import plan
from headgate.declaration.reference.page import EXAMPLE
from tests.unit.declaration.expression_examples import SCOPE
from tests.unit.declaration.test_load import ROOT

Read = Callable[[str], Pipeline]

# Expressions for each form of type and for each rule of decimals.
COMPUTED = (
    *("1.50", "2147483648", "1e3", "s || i", "i = b", "d + interval 1 day", "split(s, ',')[0]"),
    *("p + q", "p - 1", "p * q", "p / b", "w / w", "p % q", "p div i", "p * x", "-p", "t + t"),
    *("round(p)", "round(p, -1)", "ceil(p)", "coalesce(p, w)", "greatest(w, b)", "nullif(p, 0)"),
    *("to_date(s, 'yyyy-MM-dd')", "case when ok then d else ts end", "cast(s as decimal(38,18))"),
)
TABLES = (("silver", "clean"), ("gold", "sales"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("pipeline: shop", "# a comment\npipeline: 'shop'"),
        ("price > 0", "price>0   # as before"),
        ("revenue / orders", '"revenue/orders"'),
        ("jobs: fused", "jobs: per_layer"),
        ("jobs: fused", ""),
        ("10 minutes", "600 s"),
        ("{within: 10 minutes}", "{differing: warn, within: 10 minutes}"),
        ("{tumbling: 1 minute}", "{hopping: {size: 1 minute, every: 1 minute}}"),
        ("{tumbling: 1 minute}", "{tumbling: {size: 60 s}}"),
        ("{tumbling: 1 minute}", "{tumbling: {size: 1 minute, offset: 0 s}}"),
        ("landing/orders", "elsewhere"),
        ("format: json", "format: json, settle: 5 s, max_files_per_batch: 2"),
        ("decimal(18,2)", "decimal(18, 2)"),
        ("customer: bigint", "customer: long"),
        ("    record:", "    expect_input_every: 1 hour\n    record:"),
        ("    record:", "    expect_event_time_within: 1 hour\n    record:"),
    ],
)
def test_the_same_meaning_has_the_same_digest(old: str, new: str, base: str, read: Read) -> None:
    assert old in base
    assert read(base.replace(old, new)).digest == read(base).digest


def test_the_order_of_tables_is_no_part_of_it(base: str, read: Read) -> None:
    table = base[base.index("  sales:") : base.index("jobs:")]
    other = table.replace("  sales:", "  more:", 1)
    first = read(base.replace("jobs:", other + "jobs:"))
    assert first.digest == read(base.replace(table, other + table)).digest


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("pipeline: shop", "pipeline: shops"),
        ("price > 0", "price > 1"),
        ("note: lower(note)", "note: upper(note)"),
        ("sum(price)", "max(price)"),
        ("sum(price)", "sum(price) filter (where paid)"),
        ("10 minutes", "11 minutes"),
        ("10 seconds", "11 seconds"),
        ("1 minute}", "2 minutes}"),
        ("{tumbling: 1 minute}", "{tumbling: {size: 1 minute, offset: 1 s}}"),
        ("format: json", "format: parquet"),
        ("format: json", "format: json, order: modified"),
        ("decimal(18,2)", "decimal(18,3)"),
        ("    drop: [weight]\n", ""),
        ("[customer]", "[]"),
        (
            "        paid: boolean\n        day: date\n",
            "        day: date\n        paid: boolean\n",
        ),
    ],
)
def test_another_meaning_has_another_digest(old: str, new: str, base: str, read: Read) -> None:
    assert old in base
    assert read(base.replace(old, new)).digest != read(base).digest


@pytest.mark.parametrize(
    ("first", "other"),
    [
        ("sum(price) filter (where paid)", "sum(price) filter (where not paid)"),
        ("count(*) filter (where paid)", "count(paid)"),
        ("min_by(price, day)", "min_by(price, paid)"),
        ("min_by(price, day)", "max_by(price, day)"),
    ],
)
def test_all_of_a_measure_is_a_part_of_it(first: str, other: str, base: str, read: Read) -> None:
    digests = {read(base.replace("sum(price)", text)).digest for text in (first, other)}
    assert len(digests) == 2


def test_the_layout_of_a_filter_is_not(base: str, read: Read) -> None:
    texts = ("sum(price) filter (where paid)", "SUM( price )FILTER(WHERE  paid)")
    assert len({read(base.replace("sum(price)", text)).digest for text in texts}) == 1


def test_what_declarations_of_before_mean_keeps_its_digest(base: str, read: Read) -> None:
    """A table recognizes its declaration by the digest: another one would disown existing
    tables."""
    other = base.replace("format: json", "format: csv, order: modified, csv: {delimiter: ';'}")
    other = other.replace("      schema:", "      unknown_fields: rescue\n      schema:")
    other = other.replace("{tumbling: 1 minute}", "{hopping: {size: 5 minutes, every: 1 minute}}")
    with_suites = (ROOT / EXAMPLE).read_text().replace("round(volume / bids, 2)", "volume / bids")
    example = re.sub("    expectations: .*\n", "", with_suites)
    assert [read(base).digest, read(other).digest, read(example).digest] == [
        "f8feb4d9a040481855fd21d1b4147d6bc355259a8ca1474d18d1459697a3ce96",
        "aaac40c3c099a1b041bd3988dcf5e9b77e28ad8be481bb036d2f774275907922",
        "ce4c8e863cf197d09257fe21f9bf8c601882b9abef489088198fdf47b4180acf",
    ]
    of_suites = load(ROOT / EXAMPLE, text=with_suites).digest
    assert of_suites == "4bd2f5fc6b2d7bddaa4f2a5734988641c1e466b505835cc257a7947efc712e6d"


def test_types_of_columns_and_measures_keep_their_digest(base: str, read: Read) -> None:
    columns = {f"c{index}": text for index, text in enumerate(COMPUTED)}
    calls = [f"{name}({column})" for name in ("count", "min", "last") for column in SCOPE]
    calls += [f"{name}({column})" for name in ("sum", "avg", "stddev") for column in "tibfxpqw"]
    measures = {f"m{index}": call for index, call in enumerate(calls)}
    sales = {"from": "clean", "window": {"tumbling": "1 h"}, "measures": measures}
    schema = {
        **{n: str(t) for n, t in SCOPE.items()},
        "ordered_at": "timestamp",
        "order_id": "string",
    }
    text = base[: base.index("      schema:")]
    text += f"      schema: {json.dumps(schema)}\n"
    text += f"silver: {json.dumps({'clean': {'from': 'orders', 'columns': columns}})}\n"
    text += f"gold: {json.dumps({'sales': {**sales, 'allowed_lateness': '1 s'}})}\n"
    pipeline = read(text)
    planned = plan(pipeline)
    schemas = [planned[layer][name]["schema"] for layer, name in TABLES]
    assert [pipeline.digest, digest({"schemas": schemas})] == [
        "716dcc2a3522c6e174f171502575a54b5c728f336e6fd3a7a69b2b56c78f7144",
        "0d7747913a1561977c32e433d648f6c1352f01b0c8676a252551364f563fe86b",
    ]


@pytest.mark.parametrize(
    ("start", "digest"),
    [
        ("earliest", "3d263ff29d7dc7edac73903615251fa1a214a21ede27e35d52d424ee89e80cb9"),
        ("{0: 7}", "f387ab871903565392ccf6f76c6db6a32c7fbb91ddf575eb1bb352c42c1fc1ed"),
    ],
)
def test_nor_do_declarations_of_kafka(start: str, digest: str, kafka: str, read: Read) -> None:
    assert read(kafka.replace("start: earliest", f"start: {start}")).digest == digest


def test_nor_does_a_pattern_from_a_moment_on(kafka: str, read: Read) -> None:
    text = kafka.replace("topic: orders", "pattern: orders.*")
    start = "start: 2026-11-20T00:00:00Z\n      isolation: read_uncommitted"
    pipeline = read(text.replace("start: earliest", start))
    assert (pipeline.digest, pipeline.definitions["bronze/orders"]) == (
        "9762ba7487ae4bd2a557a61ef1fe6df56962a219d6a77ed67c207a26e1ab9009",
        "7e912e4966a0efb0fba73ad8b7ca77fa0b76146ec0a8a99e1861ec3a9d2b8382",
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("localhost:9092\n      topic: orders", "elsewhere:9093\n      topic: orders"),
        ("start: earliest", ""),
        ("start: earliest", "max_per_batch: 5000"),
        ("start: earliest", "min_per_batch: 50"),
        ("start: earliest", "batch_target: 3 s"),
        ("start: earliest", "unreachable_after: 3 s"),
        ("start: earliest", "isolation: read_committed"),
        ("topic: orders", "topic: ${env:TOPIC}"),
        ("client.id: shop\n    record", "client.id: shops\n    record"),
        ("idle_after: 1 minute", "idle_after: 60 s"),
        ("topic: finals", "topic: ends"),
        ("10 seconds", "10 seconds\n    salt: 8"),
        ("10 seconds", "10 seconds\n    step: auto"),
    ],
)
def test_how_kafka_is_reached_and_work_is_cut_is_no_part_of_it(
    old: str, new: str, kafka: str, read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOPIC", "orders")
    assert old in kafka
    assert read(kafka.replace(old, new, 1)).digest == read(kafka).digest


def test_nor_is_what_is_published(base: str, kafka: str, read: Read) -> None:
    assert read(kafka[: kafka.index("publish:")]).digest == read(kafka).digest
    assert read(base + kafka[kafka.index("publish:") :]).digest == read(base).digest


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("topic: orders", "topic: returns"),
        ("topic: orders", "pattern: orders"),
        ("start: earliest", "start: latest"),
        ("start: earliest", "start: 2026-11-20T00:00:00Z"),
        ("start: earliest", "start: {0: 0}"),
        ("start: earliest", "isolation: read_uncommitted"),
        ("idle_after: 1 minute", "idle_after: 2 minutes"),
        ("idle_after: 1 minute", ""),
        ("price > 0", "price > 1"),
    ],
)
def test_what_is_read_of_kafka_is_a_part_of_it(old: str, new: str, kafka: str, read: Read) -> None:
    assert old in kafka
    assert read(kafka.replace(old, new, 1)).digest != read(kafka).digest


def test_one_moment_has_one_digest(kafka: str, read: Read) -> None:
    starts = ("2026-11-20T00:00:00Z", "2026-11-20T01:00:00.000+01:00", "2026-11-20 00:00Z")
    texts = [kafka.replace("start: earliest", f"start: {start}") for start in starts]
    assert len({read(text).digest for text in texts}) == 1
    later = kafka.replace("start: earliest", "start: 2026-11-20T00:00:00.001Z")
    assert read(later).digest != read(texts[0]).digest


def test_kafkas_digest_is_kept_too(base: str, kafka: str, read: Read) -> None:
    assert read(kafka).digest == "3d263ff29d7dc7edac73903615251fa1a214a21ede27e35d52d424ee89e80cb9"
    assert read(kafka).digest != read(base).digest
