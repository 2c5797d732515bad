"""Drivers are killed while they publish; a consumer that drops known ids gets every row once."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from headgate.setup.broker.consuming import ConsumedRecord
from headgate.setup.broker.running import Broker
from tests.support.broker import consume_all, create_topic
from tests.support.drivers import headgate
from tests.support.events import readings
from tests.support.landing import Landing, split
from tests.support.readings import declare
from tests.support.rounds import in_full
from tests.support.tables import read

pytestmark = pytest.mark.recovery

KILLS = ("publish.sent", "publish.committed:2")


def once(records: list[ConsumedRecord]) -> dict[str, dict[str, Any]]:
    """The messages that a consumer keeps: the first one of each id. All others have to equal it."""
    seen: dict[str, ConsumedRecord] = {}
    for record in records:
        identity = dict(record.headers)["headgate-id"]
        assert identity
        first = seen.setdefault(identity.decode(), record)
        assert (first.key, first.value) == (record.key, record.value)
    return {name: json.loads(record.value or b"") for name, record in seen.items()}


@in_full
def test_no_final_window_is_missing_and_no_late_row(tmp_path: Path, broker: Broker) -> None:
    landing = Landing(tmp_path / "landing")
    files = split(readings(400, seed=8), 2 * len(KILLS) + 1)
    declared = declare(tmp_path, landing.folder, gold=("sliding",), max_files_per_batch=1)
    finals, lates = create_topic(broker, 2), create_topic(broker, 2)
    servers = f"servers: '{broker.servers}'"
    with declared.file.open("a") as text:
        text.write("publish:\n")
        text.write(f"  finals: {{from: gold.sliding, kafka: {{{servers}, topic: {finals}}}}}\n")
        text.write(f"  lates: {{from: late.sliding, kafka: {{{servers}, topic: {lates}}}}}\n")
    root = tmp_path / "root"
    of = (declared.file, "--once", "--root", root)
    for number, failpoint in enumerate(KILLS):
        landing.write_all(files[2 * number : 2 * number + 2], first=2 * number + 1)
        assert headgate("run", *of, failpoint=failpoint).was_killed, failpoint
    landing.write_all(files[-1:], first=len(files))
    assert headgate("run", *of, "--drain").code == 0
    messages = consume_all(broker, finals)
    found = {(w["window_start"], w["ok"]): w for w in once(messages).values()}
    assert len(found) == len(once(messages)) < len(messages)
    rows = {(row["window_start"], row["ok"]): row for row in read(root, "gold/sliding")}
    assert {(datetime.fromisoformat(start), ok) for start, ok in found} == set(rows)
    for (start, ok), window in found.items():
        row = rows[datetime.fromisoformat(start), ok]
        assert (window["events"], window["final"]) == (row["events"], True)
        assert window["total"] == (None if row["total"] is None else float(row["total"]))
    late = {(row["_offset"], row["window_start"]) for row in read(root, "late/sliding")}
    told = [
        (m["_offset"], datetime.fromisoformat(m["window_start"]))
        for m in once(consume_all(broker, lates)).values()
    ]
    assert late
    assert sorted(told) == sorted(late)
