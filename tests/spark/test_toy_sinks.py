"""Sinks of another package: one delivers at least once, one in transactions. No module of the
engine names them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from headgate.declaration.plan import describe
from headgate.driver.publishing import NotPublishedError, Publications
from headgate.lake.tables.errors import FencedError
from headgate.lake.tables.payloads.publication import PublicationPayload
from tests.support.engine import Engine
from tests.support.failing import failing, passing
from tests.support.prepared import Prepared
from tests.support.sliding_lake import go_on, publishing
from tests.support.tables import read
from tests.support.toys import toys

pytestmark = pytest.mark.spark


@pytest.fixture(autouse=True)
def _installed() -> Iterator[None]:
    with toys():
        yield


def engine_of(lake: Prepared, folder: Path, sink: str) -> Engine:
    return publishing(lake, folder, f"  finals: {{from: gold.sliding, {sink}}}\n")


def publish(engine: Engine) -> None:
    (stage,) = engine.runtime.publications
    stage.catch_up(engine.clock())


def finals(engine: Engine) -> list[tuple[str, ...]]:
    rows = read(engine.root, "gold/sliding")
    wanted = (row for row in rows if row["final"])
    return sorted((f"{row['window_start']:%F %T}", str(row["ok"])) for row in wanted)


def test_what_is_sent_again_has_the_same_ids(first_file: Prepared, tmp_path: Path) -> None:
    file = tmp_path / "finals.jsonl"
    engine = engine_of(first_file, tmp_path, f"jsonl: {{path: {file}}}")
    assert f"  jsonl    {file}\n  rows     of final windows" in describe(engine.pipeline)
    with failing("publish.sent"):
        publish(engine)
    first = [json.loads(line) for line in file.read_text().splitlines()]
    publish(engine.start())
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert first
    assert sorted(lines, key=str) == sorted(first * 2, key=str)
    assert len({line["id"] for line in lines}) == len(first)
    go_on(engine)
    savepoint = engine.savepoint()
    publish(engine)
    engine.restore(savepoint)
    engine = Engine(engine.spark, engine.pipeline, engine.root)
    engine.catch_up()
    publish(engine)
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    said = {line["id"]: line["value"] for line in lines}
    assert len(said) == len(finals(engine)) > len(first)
    assert all(said[line["id"]] == line["value"] for line in lines)


def test_a_transaction_of_rows_and_position_sends_each_row_once(
    first_file: Prepared, tmp_path: Path
) -> None:
    file = tmp_path / "finals.db"
    engine = engine_of(first_file, tmp_path, f"book: {{path: {file}}}")
    with failing("publish.sent"):
        publish(engine)
    before = booked(file)
    assert before == finals(engine)
    publish(engine.start())
    assert booked(file) == before
    # The publication's table has the same position, although nothing was sent.
    (stage,) = engine.runtime.publications
    assert stage.table.refresh().payload == PublicationPayload(upto(file))
    go_on(engine)

    def replace(place: str) -> None:
        if place == "publish.sent":
            engine.start()

    # A driver sends and is replaced before it commits; the next driver continues from there.
    with passing(replace), pytest.raises(FencedError):
        publish(engine)
    publish(engine)
    assert booked(file) == finals(engine)
    assert len(booked(file)) > len(before)


def test_rows_wait_while_the_circuit_breaker_is_open(first_file: Prepared, tmp_path: Path) -> None:
    file = tmp_path / "finals.jsonl"
    engine = engine_of(first_file, tmp_path, f"jsonl: {{path: {file}}}")
    why: list[str | None] = ["too much is refused"]
    publications = Publications(engine.runtime.publications, lambda: 0.0, lambda: why[0])
    publications.catch_up(engine.clock())
    go_on(engine, 2)
    publications.catch_up(engine.clock())
    said = publications.trouble
    assert said == "publications pause: too much is refused"
    assert finals(engine)
    assert not file.exists()
    with pytest.raises(NotPublishedError, match="publications pause: too much is refused"):
        publications.require_done(engine.clock())
    why[0] = None
    publications.require_done(engine.clock())
    assert publications.trouble is None
    assert len(file.read_text().splitlines()) == len(finals(engine))


def test_tables_go_on_while_a_sink_is_away(first_file: Prepared, tmp_path: Path) -> None:
    folder = tmp_path / "not there"
    engine = engine_of(first_file, tmp_path, f"jsonl: {{path: {folder}/finals.jsonl}}")
    now = [0.0]
    publications = Publications(engine.runtime.publications, lambda: now[0])
    publications.catch_up(engine.clock())
    said = f"publish finals: {folder}/finals.jsonl takes no lines"
    assert publications.trouble == said
    assert finals(engine)
    with pytest.raises(NotPublishedError) as refused:
        publications.require_done(engine.clock())
    assert "is sent as soon as the file can be written" in refused.value.message
    assert refused.value.remedy
    assert refused.value.remedy.startswith("see whether its folder is there, then: ")
    go_on(engine)
    folder.mkdir()
    publications.require_done(engine.clock())
    lines = (folder / "finals.jsonl").read_text().splitlines()
    assert len(lines) == len(finals(engine))


def booked(file: Path) -> list[tuple[str, ...]]:
    return sorted(_ask(file, "SELECT window_start, ok FROM finals"))


def upto(file: Path) -> int:
    ((found,),) = _ask(file, "SELECT upto FROM position")
    return int(found)


def _ask(file: Path, sql: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(file)) as book:
        return book.execute(sql).fetchall()
