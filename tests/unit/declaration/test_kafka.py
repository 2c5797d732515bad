"""Kafka as a source and as a sink."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from headgate.declaration.contracts.source import connector_of
from headgate.declaration.errors import DeclarationProblem
from headgate.declaration.kafka.section import KafkaSink
from headgate.declaration.model import Pipeline, Publication
from headgate.flow.sources.kafka.declared import KafkaSource
from tests.support.declared import kafka_of, source_of
from tests.unit.declaration.test_wrong_declarations import Wrong

Read = Callable[[str], Pipeline]
Refuse = Callable[[str], tuple[DeclarationProblem, ...]]

START = "start: earliest"
TOPIC = "      topic: orders\n"
CLIENT = "        client.id: shop\n    record:"
SERVERS = "servers: localhost:9092\n      topic: orders"
LINKED = "servers: localhost:9092\n      topic: finals"
SINK = "topic: finals\n      options:\n        client.id: shop"
FROM = "from: gold.sales\n    when: final"
SOURCE = "sources.orders.kafka"
OPTIONS = f"{SOURCE}.options"
FINALS = "publish.finals"


def test_defaults_are_those_of_the_model(kafka: str, read: Read) -> None:
    text = kafka.replace(f"      {START}\n", "").replace("      idle_after: 1 minute\n", "")
    text = text.replace("      options:\n        client.id: shop\n    record", "    record")
    shop = read(text)
    assert kafka_of(shop) == KafkaSource("localhost:9092", "orders", None, "earliest")
    source = source_of(shop)
    assert (source.kind, connector_of(source).format(source.reads)) == ("kafka", "json")


def test_every_key_is_read(kafka: str, read: Read) -> None:
    text = kafka.replace(TOPIC, "      pattern: orders-(eu|us)\n").replace(
        START,
        """start: "2026-11-20T01:00:00.5+01:00"
      max_per_batch: 500
      min_per_batch: 20
      batch_target: 2 s
      unreachable_after: 30 s
      isolation: read_uncommitted""",
    )
    assert kafka_of(read(text)) == KafkaSource(
        servers="localhost:9092",
        topic=None,
        pattern="orders-(eu|us)",
        start=datetime(2026, 11, 20, 0, 0, 0, 500_000, UTC),
        max_per_batch=500,
        min_per_batch=20,
        batch_target=timedelta(seconds=2),
        idle_after=timedelta(minutes=1),
        unreachable_after=timedelta(seconds=30),
        isolation="read_uncommitted",
        options={"client.id": "shop"},
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("written", "start"),
    [
        ("earliest", "earliest"),
        ("latest", "latest"),
        ("2026-11-20 00:00Z", datetime(2026, 11, 20, tzinfo=UTC)),
        ("'2026-11-20T00:00:00-05:30'", datetime(2026, 11, 20, 5, 30, tzinfo=UTC)),
        ("{0: 1200, 1: 3400}", {0: 1200, 1: 3400}),
        ("{'7': '9223372036854775807'}", {7: (1 << 63) - 1}),
        ("'${env:WHERE}'", datetime(2026, 11, 20, tzinfo=UTC)),
    ],
)
def test_where_reading_starts(
    written: str, start: object, kafka: str, read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WHERE", "2026-11-20T00:00:00Z")
    assert kafka_of(read(kafka.replace(START, f"start: {written}"))).start == start


@pytest.mark.parametrize(
    ("written", "servers"),
    [
        ("localhost:9092", "localhost:9092"),
        ("kafka-1.example.com:9092 , 10.0.0.7:19092", "kafka-1.example.com:9092,10.0.0.7:19092"),
        ("'[::1]:9092'", "[::1]:9092"),
        ("${env:BROKERS}", "a:1,b:2"),
        ("${env:BROKER}:9093", "broker:9093"),
    ],
)
def test_servers(
    written: str, servers: str, kafka: str, read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BROKERS", "a:1, b:2\n")
    monkeypatch.setenv("BROKER", "broker")
    assert kafka_of(read(kafka.replace("localhost:9092", written, 1))).servers == servers


def test_options_are_texts(
    kafka: str, read: Read, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "jaas").write_text('Login required password="x";\n', encoding="utf-8")
    monkeypatch.setenv("NAME", "shop")
    text = kafka.replace(
        CLIENT,
        """        security.protocol: SASL_SSL
        sasl.jaas.config: ${file:jaas}
        fetch.min.bytes: 012
        check.crcs: true
        client.id: "${env:NAME}-1"
        ssl.endpoint.identification.algorithm: ""
        a.property-of_ours: 1.5
    record:""",
    )
    assert kafka_of(read(text)).options == {
        "security.protocol": "SASL_SSL",
        "sasl.jaas.config": 'Login required password="x";',
        "fetch.min.bytes": "012",
        "check.crcs": "true",
        "client.id": "shop-1",
        "ssl.endpoint.identification.algorithm": "",
        "a.property-of_ours": "1.5",
    }


def test_few_records_a_batch_need_no_second_limit(kafka: str, read: Read) -> None:
    source = kafka_of(read(kafka.replace(START, "max_per_batch: 300")))
    assert (source.max_per_batch, source.min_per_batch) == (300, 300)


def test_names_with_dots_and_patterns_that_look_ahead(kafka: str, read: Read) -> None:
    assert kafka_of(read(kafka.replace("topic: orders", f"topic: {'a.B-_' * 49}"))).topic
    pattern = r"(?!__)[a-z]+\.orders"
    assert kafka_of(read(kafka.replace("topic: orders", f"pattern: '{pattern}'"))).pattern


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (FROM, ("gold", "sales", "final")),
        ("from: gold.sales", ("gold", "sales", "final")),
        ("from: gold.sales\n    when: update", ("gold", "sales", "update")),
        ("from: late.sales", ("late", "sales", None)),
        ("from: quarantine.orders", ("quarantine", "orders", None)),
    ],
)
def test_publications(
    written: str, expected: tuple[str, str, str | None], kafka: str, read: Read
) -> None:
    finals = read(kafka.replace(FROM, written)).publish["finals"]
    assert (finals.layer, finals.table, finals.when) == expected
    sink = KafkaSink("localhost:9092", "finals", {"client.id": "shop"})
    assert finals == Publication("finals", *expected, "kafka", sink)


def test_publications_may_share_a_topic(kafka: str, read: Read) -> None:
    again = kafka[kafka.index("  finals:") :].replace("finals:", "again:").replace("gold.", "late.")
    shop = read(kafka + again.replace("    when: final\n", ""))
    assert list(shop.publish) == ["finals", "again"]


def test_files_are_published_too_and_nothing_is_by_default(
    base: str, kafka: str, read: Read
) -> None:
    assert read(base).publish == {}
    text = base + kafka[kafka.index("publish:") :].replace("topic: finals", "topic: orders")
    assert read(text).publish["finals"].sink.topic == "orders"


def test_one_topic_of_two_clusters_is_no_loop(kafka: str, read: Read) -> None:
    text = kafka.replace("topic: finals", "topic: orders")
    start = text.index("publish:")
    assert read(text[:start] + text[start:].replace("localhost", "elsewhere")).publish


def test_salt(base: str, read: Read) -> None:
    assert read(base).gold["sales"].salt is None
    assert read(base.replace("10 seconds", "10 seconds\n    salt: 8")).gold["sales"].salt == 8


def test_a_pipeline_can_be_sent_to_another_process(kafka: str, read: Read) -> None:
    pipeline = read(kafka)
    assert pickle.loads(pickle.dumps(pipeline)) == pipeline


def start(written: str, says: str, nearest: str | None = None, key: str = "") -> Wrong:
    return Wrong(START, f"start: {written}", 7, f"{SOURCE}.start{key}", nearest, says)


def limit(written: str, says: str, line: int = 7) -> Wrong:
    key = written.partition(":")[0]
    return Wrong(START, written, line, f"{SOURCE}.{key}", None, says)


def servers(written: str, says: str, nearest: str | None = None) -> Wrong:
    return Wrong("localhost:9092", written, 5, f"{SOURCE}.servers", nearest, says)


def topic(written: str) -> Wrong:
    return Wrong("topic: orders", f"topic: {written}", 6, f"{SOURCE}.topic", None, "not the name")


def pattern(written: str, says: str) -> Wrong:
    return Wrong("topic: orders", f"pattern: {written}", 6, f"{SOURCE}.pattern", None, says)


def option(written: str, says: str, key: str, nearest: str | None = None) -> Wrong:
    return Wrong("client.id: shop", written, 10, f"{OPTIONS}{key}", nearest, says)


def sinks(name: str, says: str) -> Wrong:
    new = SINK.replace("client.id", name)
    return Wrong(SINK, new, 52, f"{FINALS}.kafka.options.{name}", None, says)


def publishes(written: str, says: str, nearest: str | None = None) -> Wrong:
    return Wrong("from: gold.sales", f"from: {written}", 46, f"{FINALS}.from", nearest, says)


SOURCES = [
    Wrong("      servers: localhost:9092\n", "", 4, SOURCE, None, "'servers' is missing"),
    Wrong(TOPIC, "", 4, SOURCE, None, "needs exactly one of the keys topic, pattern"),
    Wrong(TOPIC, f"{TOPIC}      pattern: o.*\n", 4, SOURCE, None,
          "needs exactly one of the keys topic, pattern"),
    Wrong("topic: orders", "topik: orders", 6, f"{SOURCE}.topik", "topic", "unknown key"),
    Wrong(START, "offsets: earliest", 7, f"{SOURCE}.offsets", None, "the keys here are servers,"),
    servers("localhost", "'localhost' has no port", "localhost:9092"),
    servers("a:1,b", "'b' has no port", "b:9092"),
    servers("a:1,,b:2", "'' is not host:port"),
    servers("a:http", "'a:http' is not host:port"),
    servers("a:0", "1 to 65535"),
    servers("a:65536", "1 to 65535"),
    servers("SSL://a:9092", "is not host:port"),
    servers("'me:hunter2@a:9092'", "belong into options"),
    Wrong("servers: localhost:9092", "servers: [a:1, b:2]", 5, f"{SOURCE}.servers", None,
          "must be one value"),
    topic("'my orders'"), topic("'.'"), topic("'..'"), topic("a" * 250), topic("orders/eu"),
    topic("commandes-été"),
    pattern("'*.orders'", "is not a regular expression"),
    pattern("'(orders'", "is not a regular expression"),
    pattern(r"'\p{Lu}+'", "is not supported"),
    pattern("'(?P<a>o)'", "is not supported"),
    pattern("'(a+)+'", "repeats a group without bound"),
    start("earlist", "is not earliest, latest or a time", "earliest"),
    start("2026-11-20", "with an offset", "2026-11-20T00:00:00Z"),
    start("'2026-11-20T00:00:00'", "with an offset", "2026-11-20T00:00:00Z"),
    start("'2026-11-31T00:00:00Z'", "is not in the calendar"),
    start("'0001-01-01T00:00:00+01:00'", "is not in the calendar"),
    start("'2026-11-20T00:00:00.0001Z'", "to the millisecond"),
    start("'1969-12-31T23:59:59Z'", "is before 1970"),
    start("1200", "is not earliest, latest or a time"),
    start("[0, 1]", "must be earliest, latest, a time, or a map"),
    start("{}", "is empty"),
    start("{p0: 1}", "is not the number of a partition", None, ".p0"),
    start("{-1: 1}", "is not the number of a partition", None, ".-1"),
    start("{0: latest}", "must be an offset", None, ".0"),
    start("{0: -2}", "must be an offset", None, ".0"),
    start("{0: [1]}", "must be an offset", None, ".0"),
    start("{0: 9223372036854775808}", "must be an offset", None, ".0"),
    start("{0: 1, 00: 2}", "partition 0 is given twice", None, ".00"),
    Wrong(f"{TOPIC}      {START}", "      pattern: o.*\n      start: {0: 1}", 7, f"{SOURCE}.start",
          None, "belong to the partitions of one topic"),
    limit("max_per_batch: 0", "at least 1"),
    limit("max_per_batch: 100000001", "at most 100000000"),
    limit("min_per_batch: 0", "at least 1"),
    limit("min_per_batch: 9\n      max_per_batch: 8",
          "min_per_batch (9) is more than max_per_batch (8)"),
    limit("min_per_batch: 100001", "is more than max_per_batch (100000, its default)"),
    limit("batch_target: 999 ms", "at least 1 second"),
    limit("batch_target: 61 minutes", "at most 1 hour"),
    limit("unreachable_after: 500 ms", "at least 1 second"),
    limit("unreachable_after: 25 hours", "at most 1 day"),
    Wrong("idle_after: 1 minute", "idle_after: 0 s", 8, f"{SOURCE}.idle_after", None, "at least 1"),
    Wrong("idle_after: 1 minute", "idle_after: 367 days", 8, f"{SOURCE}.idle_after", None,
          "at most 366 days"),
    Wrong(START, "isolation: committed", 7, f"{SOURCE}.isolation", "read_committed", "one of"),
]  # fmt: skip

CLIENT_PROPERTIES = [
    Wrong("options:\n        client.id: shop", "options: x", 9, OPTIONS, None,
          "must be a map from client properties"),
    option("bootstrap.servers: a:1", "use the key servers", ".bootstrap.servers"),
    option("group.id: shop", "is set by Headgate: positions", ".group.id"),
    option("auto.offset.reset: latest", "use the key start", ".auto.offset.reset"),
    option("enable.auto.commit: true", "bronze's commits", ".enable.auto.commit"),
    option("isolation.level: x", "use the key isolation", ".isolation.level"),
    option("key.deserializer: x", "read as bytes", ".key.deserializer"),
    option("value.deserializer: x", "read as bytes", ".value.deserializer"),
    option("interceptor.classes: x", "an interceptor could change", ".interceptor.classes"),
    option("kafka.client.id: x", "is Spark's", ".kafka.client.id", "client.id"),
    option("client.id: [a]", "must be one value", ".client.id"),
    option("client.id:", "has no value", ".client.id"),
    option("Security.Protocol: SSL", "a client property's name has", "", "security.protocol"),
    option("'two words': x", "a client property's name has", ""),
    option("client.id: '${env:HEADGATE_NOT_SET}'", "HEADGATE_NOT_SET is not set", ".client.id"),
    sinks("bootstrap.servers", "use the key servers"),
    sinks("group.id", "reads nothing"),
    sinks("auto.offset.reset", "reads nothing"),
    sinks("enable.auto.commit", "reads nothing"),
    sinks("isolation.level", "reads nothing"),
    sinks("key.deserializer", "reads nothing"),
    sinks("value.deserializer", "reads nothing"),
    sinks("interceptor.classes", "an interceptor could change"),
    sinks("key.serializer", "made by Headgate"),
    sinks("value.serializer", "made by Headgate"),
    sinks("transactional.id", "the delivery guarantee depends on it"),
    sinks("acks", "the delivery guarantee depends on it"),
    sinks("enable.idempotence", "the delivery guarantee depends on it"),
]  # fmt: skip

PUBLISHED = [
    publishes("golden.sales", "quarantine.SOURCE or gate.TABLE", "gold.sales"),
    publishes("sales", "is not gold.TABLE", "late.sales"),
    publishes("silver.clean", "is not gold.TABLE"),
    publishes("gold.", "is not gold.TABLE", "gold.sales"),
    publishes("gold.sale", "there is no gold table 'sale'", "gold.sales"),
    Wrong(FROM, "from: late.sale", 46, f"{FINALS}.from", "late.sales", "no gold table 'sale'"),
    Wrong(FROM, "from: quarantine.clean", 46, f"{FINALS}.from", "quarantine.orders",
          "there is no source 'clean'"),
    Wrong(FROM, "from: late.sales\n    when: final", 47, f"{FINALS}.when", None,
          "a row of late.sales never changes"),
    Wrong(FROM, "from: quarantine.orders\n    when: update", 47, f"{FINALS}.when", None,
          "a row of quarantine.orders never changes"),
    Wrong("when: final", "when: finals", 47, f"{FINALS}.when", "final", "must be one of"),
    Wrong("    from: gold.sales\n", "", 45, FINALS, None, "the key 'from' is missing"),
    Wrong("      topic: finals\n", "", 48, f"{FINALS}.kafka", None, "the key 'topic' is missing"),
    Wrong("topic: finals", "topic: fin als", 50, f"{FINALS}.kafka.topic", None, "is not the name"),
    Wrong("topic: finals", "topic: finals\n      start: latest", 51, f"{FINALS}.kafka.start", None,
          "unknown key; the keys here are servers, topic, options"),
    Wrong("topic: finals", "topic: orders", 50, f"{FINALS}.kafka.topic", None,
          "is a topic that the source 'orders' reads"),
    Wrong(LINKED, "servers: other:1, localhost:9092\n      topic: orders", 50,
          f"{FINALS}.kafka.topic", None, "is a topic that the source 'orders' reads"),
    Wrong(TOPIC, "      pattern: (in|fi)nals\n", 50, f"{FINALS}.kafka.topic", None,
          "is a topic that the source 'orders' reads"),
    Wrong("  finals:", "  Finals:", 45, "publish.Finals", "finals", "is not a name"),
    Wrong("when: final", "whem: final", 47, f"{FINALS}.whem", "when", "unknown key"),
]  # fmt: skip


@pytest.mark.parametrize(
    "wrong",
    [*SOURCES, *CLIENT_PROPERTIES, *PUBLISHED],
    ids=lambda wrong: f"{wrong.key}-{wrong.new}"[:60],
)
def test_a_mistake_is_reported_where_it_is(wrong: Wrong, kafka: str, refuse: Refuse) -> None:
    assert wrong.old in kafka
    problems = refuse(kafka.replace(wrong.old, wrong.new, 1))
    assert len(problems) == 1, "\n".join(map(str, problems))
    problem = problems[0]
    assert (problem.line, problem.key, problem.nearest) == (wrong.line, wrong.key, wrong.nearest)
    assert wrong.says in problem.message
