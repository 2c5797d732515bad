"""A gated and published gold table with a step: a version is validated, and sent, once a step has
made it. A hold has its own pauses, so the table does not wait for a step too."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.driver.publishing import Publications
from headgate.driver.run import CatchUp
from tests.support import gated
from tests.support.engine import Engine
from tests.support.gated import TABLE, GatedProject
from tests.support.toys import toys

pytestmark = pytest.mark.spark


@pytest.fixture(autouse=True)
def _installed() -> Iterator[None]:
    with toys():
        yield


def test_a_version_of_a_step_is_validated_and_published(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headgate.flow.gates.gate.PAUSE", 0)
    file = tmp_path / "rows.jsonl"
    to = f"publish: {{rows: {{from: gold.{TABLE}, when: update, jsonl: {{path: {file}}}}}}}\n"
    project = GatedProject(tmp_path, spark, f"{gated.TABLES}    step: 1 hour\n{to}")
    engine = project.engine()
    publications = Publications(engine.runtime.publications, time.monotonic)
    run = CatchUp(engine.runtime, publications, engine.clock)

    def batch(site: str, minute: int | None = None) -> None:
        project.deliver(site, minute)
        engine.list_new()
        engine.ingest()
        run.run(one_step=True)

    def sent() -> list[int]:
        return [json.loads(line)["value"]["total"] for line in file.read_text().splitlines()]

    batch("good")
    batch("bad")
    batch("good")
    assert (reached(engine), project.hold(engine)) == (1, None), "a version that waits is not held"
    assert sent() == [1]
    run.run()  # the end of a run
    held = project.hold(engine)
    assert held is not None
    assert (reached(engine), held.upto) == (1, 3)
    batch("corrected", 1)
    assert (reached(engine), project.hold(engine)) == (4, None), "a held table does not wait"
    assert project.versions() == [(), (1,), project.version(4)]
    assert sent() == [1, 2 + 8, 4]
    batch("good")
    run.run_rest()
    assert (reached(engine), sent()) == (4, [1, 2 + 8, 4])


def reached(engine: Engine) -> int:
    return engine.runtime.table(f"gold/{TABLE}").reader().refresh().n
