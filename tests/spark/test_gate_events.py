"""The events of a gate are published: held, released and passed, each once and in order."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.flow.gates import documents
from headgate.flow.gates.documents import Release
from tests.support.engine import Engine
from tests.support.failing import failing
from tests.support.postgres import PASSWORD, is_there, running_server
from tests.support.receiver import Receiver, receiving
from tests.support.suite_project import SuiteProject
from tests.support.waiting import wait_until

pytestmark = pytest.mark.spark

TABLES = """
silver:
  clean: {from: raw}
gold:
  per_hour:
    from: clean
    window: {tumbling: 1 hour}
    measures: {events: count(*), total: sum(level)}
    allowed_lateness: 1 minute
    expectations: per_hour
"""
RULE = 'expectations: [{id: sane, expect: "total < 1000"}]'


def project_of(folder: Path, spark: SparkSession, *sinks: str) -> SuiteProject:
    rows = "".join(f"  to{i}: {{from: gate.per_hour, {sink}}}\n" for i, sink in enumerate(sinks))
    project = SuiteProject(folder, spark, f"{TABLES}publish:\n{rows}", "per_hour")
    project.write_rules(RULE)
    return project


def deliver(project: SuiteProject, id_: str, level: int) -> None:
    project.land([{"id": id_, "site": "a", "level": level, "at": "2026-03-01T12:00:00Z"}])


def publish(engine: Engine) -> None:
    def are_all_sent() -> bool:
        return all(stage.catch_up(engine.clock()) for stage in engine.runtime.publications)

    wait_until(are_all_sent, "events are sent", 60)


def seen(receiver: Receiver) -> list[str]:
    once = {request.id: json.loads(request.body) for request in receiver.took}
    return [f"{row['event']} {row['batch']} {row['by']}" for row in once.values()]


@pytest.mark.skipif(not is_there, reason="PostgreSQL is not installed")
def test_events_of_a_gate(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PG", PASSWORD)
    with receiving() as receiver, running_server() as server:
        url = server.url.replace(PASSWORD, "${env:PG}")
        to = f"postgres: {{url: '{url}', table: gates}}"
        project = project_of(tmp_path, spark, f"webhook: {{url: '{receiver.url}'}}", to)
        deliver(project, "e1", 1)
        engine = project.engine().run_all()
        publish(engine)
        assert seen(receiver) == []  # a version that meets its rules causes no event
        deliver(project, "e2", 5000)
        engine.run_all()
        publish(engine)
        documents.ask_retry(engine.layout, "per_hour", engine.clock())
        engine.catch_up()
        publish(engine)
        assert seen(receiver) == ["held 2 None"]  # the second try belongs to the same hold
        documents.release(
            engine.layout, "per_hour", Release(2, "ann", "it is right", engine.clock())
        )
        engine.catch_up()
        with failing("publish.sent"):
            publish(engine)
        engine = project.engine()
        publish(engine)
        assert len(receiver.took) == 3
        assert seen(receiver) == ["held 2 None", "released 2 ann"]
        rows = server.ask("SELECT event, batch, by, reason, rules FROM gates ORDER BY at, event")
        assert [row[:4] for row in rows] == [
            ("held", 2, None, None),
            ("released", 2, "ann", "it is right"),
        ]
        assert all("sane" in row[4][0] for row in rows)
