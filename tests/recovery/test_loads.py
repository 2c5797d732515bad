"""The driver of a stream is killed at every named place of a load that it carries out."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from tests.oracle import OtherDecision, Replay, SourceRecord, derive
from tests.support.drivers import PATIENCE, begin, headgate
from tests.support.events import reading, readings
from tests.support.landing import Landing, loaded, split
from tests.support.readings import NOON, declare, rules
from tests.support.rounds import in_full
from tests.support.tables import differences, states
from tests.support.waiting import wait_until

pytestmark = pytest.mark.recovery

GOLD = ("sliding", "bands")
PLACES = (
    "bronze.staged:2",
    "bronze.committed:3",
    "silver.staged:2",
    "silver.committed:3",
    "gold.staged:2",
    "late.committed:3",
    "load.ingested",
    "load.ingested:3",
    "load.replay_intended",
    "operation.intended",
    "operation.staged",
    "operation.table_done",
)


@contextmanager
def feeding(landing: Landing, files: list[bytes]) -> Iterator[None]:
    """A file arrives every four seconds, about as fast as killed drivers read. At the end, all
    remaining files arrive as one: a slow machine would need too long for a batch for each."""
    over = threading.Event()

    def feed() -> None:
        first = len(landing.written) + 1
        for number, content in enumerate(files):
            if over.wait(4.0):
                landing.write_all([b"".join(files[number:])], first + number)
                break
            landing.write_all([content], first + number)

    feeder = threading.Thread(target=feed)
    feeder.start()
    try:
        yield
    finally:
        over.set()
        feeder.join()


@in_full
def test_every_record_of_a_load_is_accounted_for(tmp_path: Path) -> None:
    """The events of the archive are a day older than those of the stream, or known from its first
    file, so lateness and duplicates do not depend on what comes between them."""
    landing, archive = Landing(tmp_path / "landing"), Landing(tmp_path / "archive")
    values = readings(400, seed=31)
    day_before = NOON - timedelta(days=1)
    old = [
        reading(
            f"a-{n % 290}", day_before + timedelta(seconds=7 * (n % 290)), level=n % 20, value=n
        )
        for n in range(300)
    ]
    archive.write_all(split([*old[:150], *values[:50], *old[150:]], 10))
    landing.write_all([b"\n".join(values[:100])])
    declared = declare(tmp_path, landing.folder, gold=GOLD, max_files_per_batch=1)
    of = (declared.file, "--root", tmp_path / "root")
    assert headgate("run", *of, "--once").code == 0

    def state() -> str:
        (load,) = json.loads(headgate("load", *of, "--json").last_line)["loads"]
        return str(load["state"])

    asked = headgate("load", *of, "--files", archive.folder, "--no-wait", "--json")
    assert asked.code == 0
    with feeding(landing, split(values[100:], 150)):
        for place in PLACES:
            ended = begin("run", *of, failpoint=place).end()
            assert ended.was_killed, f"{place}: {ended.output}"
            assert state() in ("reading", "folding"), place
        assert headgate("start", *of).code == 0
        try:
            wait_until(lambda: state() == "done", f"it is {state()}", PATIENCE)
        finally:
            assert headgate("stop", *of).code == 0
    # On a busy machine, more than a hundred files wait by now, and each is a batch.
    assert begin("run", *of, "--once").end(4 * PATIENCE).code == 0
    ledger = headgate("ledger", *of, "--by-id", "--json")
    assert (ledger.code, json.loads(ledger.last_line)["by_id"]["holds"]) == (0, True)
    history = placed(tmp_path / "root", landing, archive)
    end = {0: max(record.offset for record in landing.records())}
    expected = derive(
        [*landing.records(), *history],
        rules(gold=GOLD),
        drains=[OtherDecision(), *(Replay(end, name, load=1) for name in GOLD)],
    )
    assert differences(tmp_path / "root", expected) == {}


def placed(root: Path, landing: Landing, archive: Landing) -> list[SourceRecord]:
    """The records of the archive, each placed after the records of the stream that bronze had read
    before it. Only this order depends on when the driver was killed."""
    stream = landing.records()
    commits = [
        (said["loads"][0]["rows"], said["total"]["read"])
        for said in states(root, "bronze/raw")
        if said["loads"]
    ]
    history: list[SourceRecord] = []
    for rows, read in commits:
        after = {0: stream[read - rows - 1].offset}
        history += loaded(archive, after)[len(history) : rows]
    assert len(history) == len(archive.records())
    return history
