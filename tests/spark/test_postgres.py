"""The PostgreSQL sink with a real server: the table has the rows of gold, each once, whatever
happens to drivers, to the server and to the table."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame

from headgate.declaration.contracts.sink import SINKS
from headgate.declaration.load import load
from headgate.driver.publishing import NotPublishedError, Publications
from headgate.driver.task import RebuildRequest
from headgate.flow.operations.late_replay import replay_document
from headgate.flow.publish import mirror_stage
from headgate.flow.publish.sinks.writers import KEY, SinkContext
from headgate.history.savepoints.clone import clone_savepoint
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.payloads.publication import PublicationPayload
from tests.support.backfilled import backfill, publish
from tests.support.engine import Engine
from tests.support.failing import failing
from tests.support.maintained import compacted
from tests.support.postgres import PASSWORD, Server, is_there, running_server
from tests.support.prepared import Prepared
from tests.support.sliding_lake import FILES, publishing
from tests.support.tables import read

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(not is_there, reason="PostgreSQL is not installed"),
]

PLACES = ("postgres.copied", "postgres.merged", "postgres.committed", "publish.sent")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running_server() as found:
        yield found


@pytest.fixture(autouse=True)
def _empty(server: Server) -> None:
    server.empty()


class Shop:
    """A pipeline with one publication to PostgreSQL, which has begun."""

    def __init__(
        self,
        lake: Prepared,
        folder: Path,
        server: Server,
        source: str = "gold.sliding",
        when: str = "update",
    ) -> None:
        self.folder, self.server, self.source, self.when = folder, server, source, when
        said = f", when: {when}" if source.startswith("gold") else ""
        url = server.url.replace(PASSWORD, "${env:PG_PASSWORD}")
        sink = f"postgres: {{url: '{url}', table: mirror}}"
        self.engine = publishing(lake, folder, f"  rows: {{from: {source}{said}, {sink}}}\n")
        self.spark, self.file = self.engine.spark, self.engine.pipeline.file

    def start(self) -> Engine:
        self.engine = Engine(self.spark, load(self.file), self.folder / "root")
        return self.engine

    def ingest(self, end: int | None = None) -> None:
        self.engine.ingest(end)
        self.engine.catch_up()

    def publish(self) -> None:
        (stage,) = self.engine.runtime.publications
        while not stage.catch_up(self.engine.clock()):
            pass

    def reset(self) -> None:
        (publication,) = self.engine.pipeline.publish.values()
        context = SinkContext("readings", "rows", self.engine.layout.storage)
        SINKS["postgres"].reset(publication.sink, context)

    def rows(self) -> list[dict[str, Any]]:
        """The rows of our table that the publication sends."""
        found = read(self.folder / "root", self.source.replace(".", "/"))
        sent = [r for r in found if self.when == "update" or r.get("final", True)]
        return sorted(sent, key=str)

    def mirrored(self) -> list[dict[str, Any]]:
        names = [
            row[0]
            for row in self.server.ask(
                "SELECT column_name FROM information_schema.columns WHERE table_name = 'mirror' "
                "AND column_name <> 'headgate_key' ORDER BY ordinal_position"
            )
        ]
        columns = ", ".join(f'"{name}"' for name in names)
        rows = self.server.ask(f"SELECT {columns} FROM mirror")
        found = [dict(zip(names, map(_plain, row), strict=True)) for row in rows]
        return sorted(found, key=str)

    def why_stuck(self) -> str:
        publications = Publications(self.engine.runtime.publications, lambda: 0.0)
        with pytest.raises(NotPublishedError) as refused:
            publications.require_done(self.engine.clock())
        return str(refused.value)


def _plain(value: Any) -> Any:
    if isinstance(value, memoryview):
        return bytes(value)
    return value.astimezone(UTC) if isinstance(value, datetime) else value


@pytest.fixture(autouse=True)
def _password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PG_PASSWORD", PASSWORD)


@pytest.fixture
def shop(first_file: Prepared, tmp_path: Path, server: Server) -> Shop:
    """A shop whose first batch is published."""
    made = Shop(first_file, tmp_path, server)
    made.publish()
    return made


@pytest.mark.parametrize(
    ("source", "when"),
    [("gold.sliding", "final"), ("late.sliding", ""), ("quarantine.raw", "")],
)
def test_the_table_has_the_rows_of_each_version(
    first_file: Prepared, tmp_path: Path, server: Server, source: str, when: str
) -> None:
    shop = Shop(first_file, tmp_path, server, source, when)
    shop.publish()
    assert shop.mirrored() == shop.rows()
    shop.ingest(FILES)
    shop.publish()
    assert shop.mirrored() == shop.rows()
    shop.engine.drain()
    shop.publish()
    assert shop.mirrored() == shop.rows() != []


def test_rows_are_there_once_wherever_a_driver_dies(
    first_file: Prepared, tmp_path: Path, server: Server
) -> None:
    shop = Shop(first_file, tmp_path, server)
    for batch in range(1, FILES + 1):
        if batch > 1:
            shop.ingest(batch)
        for place in PLACES[batch - 1 :: FILES]:
            with failing(place):
                shop.publish()
            shop.start()
        shop.publish()
        assert shop.mirrored() == shop.rows() != []
    (stage,) = shop.engine.runtime.publications
    assert stage.table.refresh().payload == PublicationPayload(position(server))


def test_what_is_changed_later_is_changed_there(shop: Shop, tmp_path: Path) -> None:
    """A drain, a replay of late rows, a backfill, a restore, a rebuild, a compaction."""
    savepoint = shop.engine.savepoint()
    shop.ingest(FILES)
    shop.engine.drain()
    shop.publish()
    assert shop.mirrored() == shop.rows()
    drained = shop.mirrored()
    # By another declaration, fewer rows belong to the windows: some windows are deleted.
    other = tmp_path / "other.yml"
    text = shop.file.read_text()
    other.write_text(text.replace("where: level >= 5", "where: level >= 8"))
    found = backfill(shop.engine, tables=["sliding"], used=load(other))
    publish(shop.engine, found)
    shop.engine.take_in()
    shop.publish()
    assert shop.mirrored() == shop.rows()
    assert len(shop.mirrored()) < len(drained)
    shop.engine.operate("late_replay", **replay_document("sliding"))
    shop.engine.catch_up()
    shop.publish()
    assert shop.mirrored() == shop.rows() != drained
    shop.engine.restore(savepoint)
    shop.start()
    shop.publish()
    assert shop.mirrored() == shop.rows()
    assert len(shop.mirrored()) < len(drained)
    shop.engine.catch_up()
    shop.publish()
    # The savepoint is older than the drain: some windows are open again.
    assert shop.mirrored() == shop.rows()
    shop.engine.anew = RebuildRequest(["gold/sliding"])
    shop.engine.start()
    shop.engine.catch_up()
    shop.publish()
    assert shop.mirrored() == shop.rows()


def test_a_database_that_went_back_gets_what_was_moved_and_replaced_since(
    shop: Shop, server: Server
) -> None:
    for name in ("mirror", "headgate_publications"):
        server.ask(f"CREATE TABLE {name}_then AS SELECT * FROM {name}")
    shop.ingest(2)
    shop.publish()
    shop.ingest(FILES)
    shop.engine.drain()
    shop.publish()
    compacted(shop.engine)
    shop.engine.operate("late_replay", **replay_document("sliding"))
    shop.engine.catch_up()
    shop.publish()
    assert shop.mirrored() == shop.rows()
    for name in ("mirror", "headgate_publications"):
        back = f"DELETE FROM {name}; INSERT INTO {name} SELECT * FROM {name}_then"
        server.ask(f"SET session_replication_role = replica; {back}")
    assert shop.mirrored() != shop.rows()
    shop.start()
    shop.publish()
    assert shop.mirrored() == shop.rows()


def test_columns_whose_types_have_changed(shop: Shop, server: Server) -> None:
    shop.ingest(FILES)
    shop.file.write_text(shop.file.read_text().replace("sum(value)", "sum(level)"))
    root, anew = shop.folder / "root", RebuildRequest(changed=True)
    shop.engine = Engine(shop.spark, load(shop.file), root, anew=anew)
    shop.engine.catch_up()
    why = shop.why_stuck()
    assert "column total is numeric(22,2)" in why
    statement = next(each for each in re.findall(r"ALTER TABLE .* TYPE bigint", why))
    server.ask_alone(statement)
    shop.publish()
    assert shop.mirrored() == shop.rows() != []


def test_a_position_that_the_log_does_not_have_is_refused(shop: Shop, server: Server) -> None:
    before = shop.mirrored()
    server.ask("UPDATE headgate_publications SET files = 'others'")
    shop.start()
    shop.ingest(2)
    said = shop.why_stuck()
    assert "it has rows of another copy of gold/sliding" in said
    assert "publication reset" in said
    assert shop.mirrored() == before
    shop.reset()
    assert shop.mirrored() == []
    shop.publish()
    assert shop.mirrored() == shop.rows() != []


def test_many_rows_are_sent_in_parts(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """First the rows of commits that change some, then all rows of the table."""
    parts: list[int] = []

    def arrow(frame: DataFrame) -> pa.Table:
        table = frame.toArrow()
        if frame.columns != [KEY]:
            parts.append(table.num_rows)
        return table

    monkeypatch.setattr(mirror_stage, "_arrow", arrow)
    monkeypatch.setattr(mirror_stage, "ROWS_PER_STEP", 3)
    shop.ingest(FILES)
    shop.publish()
    assert 0 < max(parts) < sum(parts)
    assert shop.mirrored() == shop.rows()
    parts.clear()
    shop.reset()
    shop.start()
    shop.publish()
    assert 0 < max(parts) < sum(parts) == len(shop.rows())
    assert shop.mirrored() == shop.rows()


def test_a_copy_does_not_write_where_the_original_does(shop: Shop, tmp_path: Path) -> None:
    """The copy's log has the id and all versions of the original's log."""
    before = shop.mirrored()
    engine, original = shop.engine, shop.engine.layout
    clone_savepoint(
        original, engine.savepoint(), Layout.of(str(tmp_path / "copy"), engine.pipeline.name)
    )
    shop.engine = Engine(shop.spark, load(shop.file), tmp_path / "copy")
    shop.ingest(2)
    assert "it has rows of another copy of gold/sliding" in shop.why_stuck()
    assert shop.mirrored() == before
    shop.start()
    shop.ingest(FILES)
    shop.publish()
    assert shop.mirrored() == shop.rows() != before


def test_tables_go_on_while_the_server_is_away(shop: Shop, server: Server) -> None:
    server.stop()
    try:
        shop.ingest(2)
        said = shop.why_stuck()
        assert said.startswith("publish rows: public.mirror in PostgreSQL does not take rows: ")
        assert PASSWORD not in said
    finally:
        server.start()
    shop.ingest(FILES)
    shop.publish()
    assert shop.mirrored() == shop.rows() != []


def test_batches_do_not_wait_for_a_server_that_hangs(shop: Shop, server: Server) -> None:
    shop.ingest(FILES)
    (stage,) = shop.engine.runtime.publications
    with server.locked("mirror"):
        began = monotonic()
        assert not stage.catch_up(shop.engine.clock())
        assert not stage.catch_up(shop.engine.clock())
        assert monotonic() - began < 4.5
    shop.publish()
    assert shop.mirrored() == shop.rows() != []


def position(server: Server) -> int:
    ((version,),) = server.ask("SELECT version FROM headgate_publications")
    return int(version)
