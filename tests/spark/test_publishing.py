"""Publications, read back by a real consumer: no row is missing, repeated rows have the same id."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from headgate.driver.error_translation import translate_error
from headgate.driver.publishing import NotPublishedError, Publications
from headgate.flow.operations.late_replay import replay_document
from headgate.flow.publish.log_stage import LogStage
from headgate.flow.publish.publication import PublicationChangedError
from headgate.flow.publish.sinks.writers import Outgoing, Writer, headers_of
from headgate.lake.tables import history
from headgate.lake.tables.errors import DamagedFileError
from headgate.lake.tables.payloads.publication import PublicationPayload
from headgate.setup.broker.consuming import ConsumedRecord
from headgate.setup.broker.running import Broker
from tests.support.broker import consume_all, create_topic
from tests.support.damage import flip_an_id
from tests.support.engine import Engine
from tests.support.events import reading
from tests.support.failing import failing
from tests.support.landing import Landing
from tests.support.prepared import Prepared
from tests.support.sliding_lake import FILES, begin, go_on, publishing
from tests.support.tables import Row, read

pytestmark = pytest.mark.spark


class Shop:
    """A lake whose tables are published, and its topics."""

    def __init__(self, lake: Prepared, folder: Path, broker: Broker) -> None:
        self.lake, self.folder, self.broker = lake, folder, broker
        self.topics: dict[str, str] = {}
        self.text = ""

    def publish(self, name: str, source: str, when: str = "", servers: str = "") -> Shop:
        topic = create_topic(self.broker, partitions=2)
        self.topics[name] = topic
        said = f", when: {when}" if when else ""
        address = servers or self.broker.servers
        # A test with a broker address of its own waits one second for it, not ten.
        options = ", options: {max.block.ms: 1000}" if servers else ""
        sink = f"{{servers: '{address}', topic: {topic}{options}}}"
        self.text += f"  {name}: {{from: {source}{said}, kafka: {sink}}}\n"
        return self

    def engine(self) -> Engine:
        return publishing(self.lake, self.folder, self.text)

    def rows(self, table: str) -> list[Row]:
        return read(self.folder / "root", table)

    def messages(self, name: str) -> list[ConsumedRecord]:
        return consume_all(self.broker, self.topics[name])


def publish(engine: Engine) -> None:
    for stage in engine.runtime.publications:
        stage.catch_up(engine.clock())


def run(engine: Engine) -> None:
    """Process the other files in one batch each, and publish before and after each."""
    publish(engine)
    for end in range(2, FILES + 1):
        go_on(engine, end)
        publish(engine)


def header(record: ConsumedRecord, name: str) -> str | None:
    return next((v.decode() for k, v in record.headers if k == f"headgate-{name}" and v), None)


def parsed(record: ConsumedRecord) -> dict[str, Any]:
    assert record.value is not None
    found: dict[str, Any] = json.loads(record.value)
    return found


def plain(row: Row) -> dict[str, Any]:
    """A gold row as it is in JSON."""
    found = dict(row)
    for name, value in found.items():
        if isinstance(value, datetime):
            found[name] = value.astimezone(UTC).isoformat(timespec="microseconds")
    written: dict[str, Any] = json.loads(json.dumps(found, default=float))
    return written


def said(record: ConsumedRecord) -> dict[str, Any]:
    found = parsed(record)
    for name, value in found.items():
        if name.startswith("window_") or name == "updated_at":
            found[name] = datetime.fromisoformat(value).isoformat(timespec="microseconds")
    return found


def window(row: dict[str, Any]) -> tuple[Any, Any]:
    return row["window_start"], row["ok"]


def test_each_final_window_is_sent_once(
    first_file: Prepared, tmp_path: Path, broker: Broker
) -> None:
    shop = Shop(first_file, tmp_path, broker).publish("finals", "gold.sliding")
    engine = shop.engine()
    run(engine)
    before = len(shop.messages("finals"))
    engine.drain()
    publish(engine)
    publish(engine)
    messages = shop.messages("finals")
    rows = {window(row): row for row in map(plain, shop.rows("gold/sliding"))}
    assert all(row["final"] for row in rows.values())
    assert 0 < before < len(messages)
    assert {window(said(m)): said(m) for m in messages} == rows
    assert len({header(m, "id") for m in messages}) == len(messages) == len(rows)
    assert {header(m, "table") for m in messages} == {"gold.sliding"}
    keys = {(k["window_start"], k["ok"]) for m in messages for k in [json.loads(m.key or b"")]}
    assert keys == {window(parsed(m)) for m in messages}


def test_what_is_sent_again_after_a_crash_has_the_same_ids(
    first_file: Prepared, tmp_path: Path, broker: Broker
) -> None:
    shop = Shop(first_file, tmp_path, broker)
    shop.publish("finals", "gold.sliding").publish("changes", "gold.sliding", "update")
    shop.publish("lates", "late.sliding").publish("letters", "quarantine.raw")
    engine = shop.engine()
    for stage in engine.runtime.publications:
        with failing("publish.sent"):
            stage.catch_up(engine.clock())
    sent = {name: shop.messages(name) for name in shop.topics}
    publish(engine.start())
    for name, first in sent.items():
        again = shop.messages(name)
        assert first
        assert len(again) == 2 * len(first), name
        by_id = {header(m, "id"): (m.key, m.value) for m in first}
        assert len(by_id) == len(first)
        assert all(by_id[header(m, "id")] == (m.key, m.value) for m in again)


class Kept(Writer):
    """Keeps the key, revision and Spark partition of the messages of each step."""

    def __init__(self) -> None:
        self.steps: list[list[tuple[bytes, int, int]]] = []

    def send(self, outgoing: Outgoing) -> bool:
        rows = outgoing.messages.withColumn("task", F.spark_partition_id()).collect()
        revisions = (int(headers_of(row.asDict())["headgate-revision"]) for row in rows)
        found = zip(rows, revisions, strict=True)
        self.steps.append([(bytes(row["key"]), revision, row["task"]) for row, revision in found])
        return True

    def failure(self, error: Exception) -> str | None:
        return None


def test_rows_of_one_key_are_in_order(all_files: Prepared, tmp_path: Path) -> None:
    """A final window and its row after a late replay are sent one after the other after an
    outage."""
    sink = "{from: gold.sliding, kafka: {servers: '127.0.0.1:1', topic: finals}}"
    engine = publishing(all_files, tmp_path, f"  finals: {sink}\n")
    engine.drain()
    engine.operate("late_replay", **replay_document("sliding"))
    engine.catch_up()
    (stage,) = engine.runtime.publications
    assert isinstance(stage, LogStage)
    kept = stage._writer = Kept()
    assert stage.catch_up(engine.clock())
    before, after = kept.steps  # a replay may remove results, so it is a step of its own
    by_key: dict[bytes, list[int]] = defaultdict(list)
    for key, revision, _ in [*before, *after]:
        by_key[key].append(revision)
    several = [found for found in by_key.values() if len(found) > 1]
    assert several
    assert all(found == sorted(found) for found in several)


def test_rows_of_before_a_restore_are_sent_before_those_of_after_it(
    first_file: Prepared, tmp_path: Path, broker: Broker
) -> None:
    """Also if all are sent at once after an outage. The last row of a key is then that of the
    table."""
    shop = Shop(first_file, tmp_path, broker).publish("finals", "gold.sliding")
    engine = shop.engine()
    savepoint = engine.savepoint()
    engine.ingest()
    engine.drain()
    engine.restore(savepoint)
    again = engine.start()
    again.ingest()
    again.drain()
    (stage,) = again.runtime.publications
    assert isinstance(stage, LogStage)
    kept = stage._writer = Kept()
    assert stage.catch_up(again.clock())
    before, after = ({key for key, _, _ in step} for step in kept.steps)
    assert before & after


def test_the_last_change_of_each_window_is_how_it_is(
    first_file: Prepared, tmp_path: Path, broker: Broker
) -> None:
    shop = Shop(first_file, tmp_path, broker).publish("changes", "gold.sliding", "update")
    engine = shop.engine()
    run(engine)
    messages = shop.messages("changes")
    last = {window(said(m)): said(m) for m in messages}
    rows = {window(row): row for row in map(plain, shop.rows("gold/sliding"))}
    assert last == rows
    assert len({header(m, "id") for m in messages}) == len(messages) > len(rows)
    assert {row["final"] for row in rows.values()} == {True, False}


def test_a_row_is_sent_with_the_batch_that_changes_it_alone(
    first_file: Prepared, tmp_path: Path, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if gold takes several batches and operations at one time, each by a commit of its
    own."""
    monkeypatch.setattr(history, "ROWS_PER_STEP", 0)
    shop = Shop(first_file, tmp_path, broker).publish("changes", "gold.sliding", "update")
    engine, landing = shop.engine(), Landing(tmp_path / "landing")
    run(engine)
    before = {header(each, "id") for each in shop.messages("changes")}
    newest = max(row["window_start"] for row in shop.rows("gold/sliding") if not row["final"])
    for number, ok in ((7, True), (8, False), (9, None)):
        record = reading(f"new-{number}", newest, level=7, ok=ok)
        landing.write(f"{number:05d}.json", record + b"\n")
        engine.list_new()
        engine.ingest()
        engine.operate("late_replay", **replay_document("sliding"))
    engine.catch_up()
    publish(engine)
    new = [each for each in shop.messages("changes") if header(each, "id") not in before]
    changed = Counter(window(said(each)) for each in new)
    assert {ok for _, ok in changed} == {True, False, None}
    assert {*changed.values()} == {1}


def test_late_and_quarantined_rows_are_dead_letters(
    first_file: Prepared, tmp_path: Path, broker: Broker
) -> None:
    shop = Shop(first_file, tmp_path, broker)
    shop.publish("lates", "late.sliding").publish("letters", "quarantine.raw")
    run(shop.engine())
    late = shop.rows("late/sliding")
    lates = shop.messages("lates")
    assert len(late) == len(lates) == len({header(m, "id") for m in lates}) > 0
    assert sorted((parsed(m)["_offset"], parsed(m)["_event_id"]) for m in lates) == sorted(
        (row["_offset"], row["_event_id"]) for row in late
    )
    assert {m.key.decode() for m in lates if m.key} == {row["_event_id"] for row in late}
    quarantined = shop.rows("quarantine/raw")
    letters = shop.messages("letters")
    assert len(letters) == len({header(m, "id") for m in letters}) > 0
    assert sorted(
        (int(header(m, "offset") or -1), m.value, header(m, "reason"), header(m, "detail") or "")
        for m in letters
    ) == sorted(
        (row["offset"], row["value"], row["reason"], row["detail"] or "") for row in quarantined
    )
    assert any(row["detail"] for row in quarantined)


def test_tables_go_on_while_brokers_are_away(
    first_file: Prepared, tmp_path: Path, broker: Broker
) -> None:
    shop = Shop(first_file, tmp_path, broker)
    shop.publish("away", "gold.sliding", servers="127.0.0.1:1").publish("lates", "late.sliding")
    engine = shop.engine()
    now = [0.0]
    publications = Publications(engine.runtime.publications, lambda: now[0])
    publications.catch_up(engine.clock())
    trouble = publications.trouble or ""
    assert f"127.0.0.1:1 does not take records for {shop.topics['away']}" in trouble
    assert "(TimeoutException)" in trouble
    assert shop.messages("lates")
    with pytest.raises(NotPublishedError, match=shop.topics["away"]):
        publications.require_done(engine.clock())


def test_a_damaged_file_is_no_failure_of_the_broker(
    all_files: Prepared, tmp_path: Path, broker: Broker
) -> None:
    engine = Shop(all_files, tmp_path, broker).publish("lates", "late.sliding").engine()
    for file in (tmp_path / "root").rglob("late/sliding/data/**/*.parquet"):
        flip_an_id(file, "_event_id")
    with pytest.raises(Py4JJavaError) as raised:
        Publications(engine.runtime.publications, lambda: 0.0).catch_up(engine.clock())
    found = translate_error(raised.value, engine.layout)
    assert isinstance(found, DamagedFileError), raised.value


def test_a_name_stands_for_one_table(first_file: Prepared, tmp_path: Path, broker: Broker) -> None:
    shop = Shop(first_file, tmp_path, broker)
    shop.publish("finals", "gold.sliding").engine()
    shop.text = ""
    shop.publish("finals", "late.sliding")
    with pytest.raises(PublicationChangedError, match="another name than finals"):
        shop.engine()


def test_a_position_moves_past_what_there_is_nothing_to_send_of(
    spark: SparkSession, tmp_path: Path, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new start does not read again the commits that have no rows to send."""
    monkeypatch.setattr("headgate.flow.publish.log_stage.MOST_UNSENT", 2)
    lake = Prepared(begin(spark, tmp_path / "new"))
    shop = Shop(lake, tmp_path / "published", broker).publish("lates", "late.sliding")
    engine = shop.engine()
    for _ in range(3):
        engine.start()  # each fences the table: a commit without rows
    publish(engine)
    (stage,) = engine.runtime.publications
    assert isinstance(stage, LogStage)
    assert stage.table.refresh().payload == PublicationPayload(stage.source.version)
    assert shop.messages("lates") == []
