"""Drivers are killed at every named place of publications to PostgreSQL and to a webhook."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.support.drivers import headgate
from tests.support.events import readings
from tests.support.landing import Landing, split
from tests.support.postgres import PASSWORD, Server, is_there, running_server
from tests.support.readings import declare
from tests.support.receiver import Receiver, receiving
from tests.support.rounds import in_full
from tests.support.tables import read

pytestmark = [
    pytest.mark.recovery,
    pytest.mark.skipif(not is_there, reason="PostgreSQL is not installed"),
]

KILLS = (
    "postgres.copied",
    "postgres.merged:2",
    "postgres.committed",
    "webhook.posted:3",
    "webhook.sent",
    "publish.sent:2",
    "publish.committed:3",
)


@in_full
def test_each_row_is_there_once_wherever_a_driver_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PG_PASSWORD", PASSWORD)
    landing = Landing(tmp_path / "landing")
    files = split(readings(600, seed=8), 2 * len(KILLS) + 1)
    declared = declare(tmp_path, landing.folder, gold=("sliding",), max_files_per_batch=1)
    root = tmp_path / "root"
    of = (declared.file, "--once", "--root", root)
    with running_server() as server, receiving() as receiver:
        url = server.url.replace(PASSWORD, "${env:PG_PASSWORD}")
        with declared.file.open("a") as text:
            text.write("publish:\n")
            for name, when in (("changes", "update"), ("finals", "final")):
                to = f"postgres: {{url: '{url}', table: {name}}}"
                text.write(f"  {name}: {{from: gold.sliding, when: {when}, {to}}}\n")
            to = f"webhook: {{url: '{receiver.url}'}}"
            text.write(f"  hooks: {{from: gold.sliding, {to}}}\n")
        for number, failpoint in enumerate(KILLS):
            landing.write_all(files[2 * number : 2 * number + 2], first=2 * number + 1)
            assert headgate("run", *of, failpoint=failpoint).was_killed, failpoint
            _require_a_version(server)
        landing.write_all(files[-1:], first=len(files))
        assert headgate("run", *of).code == 0
        gold = read(root, "gold/sliding")
        final = [row for row in gold if row["final"]]
        assert _mirrored(server, "changes") == _rows(gold)
        assert _mirrored(server, "finals") == _rows(final) != []
        assert _rows(final) == _hooked(receiver)


COLUMNS = ("window_start", "ok", "events", "final", "revision")


def _rows(found: list[dict[str, Any]]) -> list[str]:
    return sorted(_text([row[name] for name in COLUMNS]) for row in found)


def _mirrored(server: Server, table: str) -> list[str]:
    return sorted(map(_text, server.ask(f"SELECT {', '.join(COLUMNS)} FROM {table}")))


def _hooked(receiver: Receiver) -> list[str]:
    once = {request.id: json.loads(request.body) for request in receiver.took}
    rows = list(once.values())
    for row in rows:
        row["window_start"] = datetime.fromisoformat(row["window_start"])
    return _rows(rows)


def _text(values: Any) -> str:
    utc = (v.astimezone(UTC) if isinstance(v, datetime) else v for v in values)
    return " ".join(map(str, utc))


def _require_a_version(server: Server) -> None:
    """No reader ever sees a part of a transaction: no key appears twice."""
    for table in ("changes", "finals"):
        if server.ask("SELECT 1 FROM pg_tables WHERE tablename = %s", table):
            twice = f"SELECT 1 FROM {table} GROUP BY window_start, ok HAVING count(*) > 1"
            assert server.ask(twice) == []
