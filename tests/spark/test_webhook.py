"""Publications to a webhook: every row reaches a real receiver, in order per key, under one id."""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from headgate.declaration.load import load
from headgate.driver.publishing import NotPublishedError, Publications
from headgate.driver.task import RebuildRequest
from headgate.flow.publish.sinks import writers
from headgate.flow.publish.sinks.letters import DeadLetters
from headgate.flow.publish.sinks.webhook import writer
from headgate.flow.publish.sinks.webhook.delivery import Delivery
from headgate.flow.publish.sinks.webhook.receiver import Message
from tests.support.engine import Engine
from tests.support.failing import failing
from tests.support.prepared import Prepared
from tests.support.receiver import Receiver, Request, receiving
from tests.support.sliding_lake import FILES, go_on, publishing
from tests.support.tables import Row, read
from tests.support.waiting import wait_until

pytestmark = pytest.mark.spark

PATIENCE = 60.0


def engine_of(
    lake: Prepared, folder: Path, receiver: Receiver, source: str, when: str = ""
) -> Engine:
    said = f", when: {when}" if when else ""
    sink = f"webhook: {{url: '{receiver.url}', attempts: 1}}"
    return publishing(lake, folder, f"  rows: {{from: {source}{said}, {sink}}}\n")


def publish(engine: Engine) -> None:
    (stage,) = engine.runtime.publications
    wait_until(lambda: stage.catch_up(engine.clock()), "all rows are sent", PATIENCE)


def once(receiver: Receiver) -> list[Request]:
    """The requests that a receiver keeps: the first of each id. All others have to equal it."""
    seen: dict[str, Request] = {}
    for request in receiver.took:
        first = seen.setdefault(request.id, request)
        assert first.body == request.body
    return list(seen.values())


def key(row: Row | dict[str, Any]) -> tuple[str, str]:
    return str(row["window_start"])[:19].replace("T", " "), str(row["ok"])


def test_changes_of_windows(first_file: Prepared, tmp_path: Path) -> None:
    with receiving() as receiver:
        engine = engine_of(first_file, tmp_path, receiver, "gold.sliding", "update")
        for end in range(1, FILES + 1):
            go_on(engine, end)
            with failing(("webhook.sent", "publish.sent", "publish.committed")[end - 1]):
                publish(engine)
            engine.start()
            publish(engine)
        assert len(receiver.took) > len(once(receiver))
        last = {key(row): row for row in (json.loads(r.body) for r in once(receiver))}
        rows = {key(row): row for row in read(engine.root, "gold/sliding")}
        assert {k: (r["events"], r["final"]) for k, r in last.items()} == {
            k: (r["events"], r["final"]) for k, r in rows.items()
        }
        by_key = defaultdict(list)
        for row in (json.loads(request.body) for request in once(receiver)):
            by_key[key(row)].append(row["updated_at"])
        assert all(times == sorted(times) for times in by_key.values())


def test_a_table_whose_columns_have_changed_is_sent_as_it_is_now(
    first_file: Prepared, tmp_path: Path
) -> None:
    """Old rows that were not sent have another type, but the rebuild has replaced them."""
    with receiving() as receiver:
        engine = engine_of(first_file, tmp_path, receiver, "gold.sliding", "update")
        go_on(engine, 2)
        file = engine.pipeline.file
        file.write_text(file.read_text().replace("sum(value)", "sum(level)"))
        engine = Engine(engine.spark, load(file), engine.root, anew=RebuildRequest(changed=True))
        engine.catch_up()
        publish(engine)
        go_on(engine)
        publish(engine)
        last = {key(row): row for row in (json.loads(r.body) for r in once(receiver))}
        rows = {key(row): row for row in read(engine.root, "gold/sliding")}
        assert {k: Decimal(str(r["total"])) for k, r in last.items()} == {
            k: r["total"] for k, r in rows.items()
        }


@pytest.mark.parametrize(
    ("source", "table"),
    [
        ("gold.sliding", "gold/sliding"),
        ("late.sliding", "late/sliding"),
        ("quarantine.raw", "quarantine/raw"),
    ],
)
def test_each_row_once(
    all_files: Prepared, tmp_path: Path, source: str, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit with many or with large rows is sent in pieces, each with all rows of its keys."""
    pieces: list[list[Message]] = []

    def delivery(messages: list[Message], *settings: Any) -> Delivery:
        pieces.append(messages)
        return Delivery(messages, *settings)

    if source.startswith("quarantine"):
        monkeypatch.setattr(writers, "_PART", 1_000)
    else:
        monkeypatch.setattr(writer, "ROWS_PER_PIECE", 10)
    monkeypatch.setattr(writer, "Delivery", delivery)
    with receiving() as receiver:
        engine = engine_of(all_files, tmp_path, receiver, source)
        engine.drain()
        publish(engine)
        rows = read(engine.root, table)
        assert len(receiver.took) == len(once(receiver)) == len(rows) > 0
        assert sum(map(len, pieces)) == len(rows) > max(map(len, pieces))
        keys = [{message.key for message in piece} - {None} for piece in pieces]
        assert sum(map(len, keys)) == len(set.union(*keys))
        if source.startswith("quarantine"):
            assert sorted(r.body for r in receiver.took) == sorted(r["value"] for r in rows)
            types = {request.headers["content-type"] for request in receiver.took}
            assert types == {"application/octet-stream"}


def test_a_slow_receiver_and_one_that_is_away_hold_nothing_up(
    first_file: Prepared, tmp_path: Path
) -> None:
    free = threading.Event()
    with receiving() as receiver:
        engine = engine_of(first_file, tmp_path, receiver, "gold.sliding", "update")

        def slow(request: Request) -> int:
            free.wait()
            return 200

        receiver.answer = slow
        publications = Publications(engine.runtime.publications, lambda: 0.0)
        publications.catch_up(engine.clock())
        assert (receiver.took, publications.trouble) == ([], None)
        free.set()
        publications.require_done(engine.clock())
        assert receiver.took
        receiver.answer = lambda request: 503
        go_on(engine, 2)
        with pytest.raises(NotPublishedError, match="answers 503"):
            publications.require_done(engine.clock())
        assert "answers 503" in publications.stuck["rows"]["why"]
        receiver.answer = lambda request: 200
        go_on(engine)
        wait_until(lambda: _done(publications, engine), "it goes on", PATIENCE)
        last = {key(row): row for row in (json.loads(r.body) for r in once(receiver))}
        assert last.keys() == {key(row) for row in read(engine.root, "gold/sliding")}
        publications.close()


def _done(publications: Publications, engine: Engine) -> bool:
    publications.catch_up(engine.clock(), at_once=True)
    (stage,) = engine.runtime.publications
    return publications.trouble is None and stage.catch_up(engine.clock())


def test_a_poisoned_row_is_put_aside(all_files: Prepared, tmp_path: Path) -> None:
    with receiving() as receiver:
        engine = engine_of(all_files, tmp_path, receiver, "late.sliding")
        late = read(engine.root, "late/sliding")
        poisoned = late[0]["_offset"]
        receiver.answer = lambda request: (
            422 if json.loads(request.body)["_offset"] == poisoned else 200
        )
        publish(engine)
        letters = list(DeadLetters(engine.layout.storage, "rows").all())
        assert {json.loads(letter.body)["_offset"] for letter in letters} == {poisoned}
        assert len(letters) + len(receiver.took) == len(late)
