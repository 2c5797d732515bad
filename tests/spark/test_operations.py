"""Operations on real rows: each is carried out at its place, however a driver fails, and also after
tables go back or are rebuilt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headgate.driver.task import RebuildRequest
from tests.support import forget
from tests.support.engine import Engine
from tests.support.events import readings
from tests.support.failing import failing
from tests.support.landing import Landing, split
from tests.support.prepared import Prepared, after
from tests.support.readings import declare
from tests.support.rounds import in_full
from tests.support.tables import read

pytestmark = pytest.mark.spark

STEPS = ("operation.intended", "operation.staged", "operation.table_done")
TABLES = ("gold/sliding", "late/sliding")
DOCUMENTS: Mapping[str, Mapping[str, Any]] = {
    "drain": {},
    "forget": {"table": "sliding", "column": "ok", "value": "true"},
    "late_replay": {"table": "sliding", "from": None, "to": None, "keys": {}},
}


@pytest.fixture(autouse=True)
def toy(tmp_path: Path) -> Iterator[None]:
    with forget.installed(tmp_path / "site-packages"):
        yield


@pytest.fixture(scope="module")
def landing(tmp_path_factory: pytest.TempPathFactory) -> Landing:
    landing = Landing(tmp_path_factory.mktemp("landing"))
    landing.write_all(split(readings(160, seed=10), 4))
    return landing


@pytest.fixture(scope="module")
def begun(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, landing: Landing
) -> Prepared:
    """The first of four files is in the tables."""
    folder = tmp_path_factory.mktemp("begun")
    engine = Engine(spark, declare(folder, landing.folder, gold=("sliding",)), folder / "root")
    return after(1, engine)


@pytest.fixture(scope="module")
def without(begun: Prepared, tmp_path_factory: pytest.TempPathFactory) -> list[list[str]]:
    """The rows without any operation."""
    return rows(begun.copy(tmp_path_factory.mktemp("without")).run_all())


def rows(engine: Engine) -> list[list[str]]:
    """The rows of gold and late, without the times at which they were written."""
    return [
        sorted(str({k: v for k, v in row.items() if k != "updated_at"}) for row in found)
        for found in (read(engine.root, path) for path in TABLES)
    ]


def run(engine: Engine, operation: str) -> None:
    """Run the operation after the second of four files; nothing fails."""
    engine.ingest(2)
    engine.catch_up()
    engine.operate(operation, **DOCUMENTS[operation])
    engine.catch_up()
    engine.ingest(4)
    engine.catch_up()


# In short runs, other tests cover the other operations. For a drain: the steps in
# tests/recovery/test_failures.py, restores and rebuilds in test_savepoints.py and test_upgrades.py
# here. For a late replay: the steps in test_late_replay.py, a rebuild in test_trimmed_replays.py.
# Restores use the same code for all operations.
@pytest.mark.parametrize(
    "operation",
    [
        "forget",
        pytest.param("drain", marks=in_full),
        pytest.param("late_replay", marks=in_full),
    ],
)
def test_it_is_carried_out_at_its_place(
    begun: Prepared, tmp_path: Path, without: list[list[str]], operation: str
) -> None:
    plain = begun.copy(tmp_path / "plain")
    run(plain, operation)
    expected = rows(plain)
    assert expected != without, "it changed something"
    engine = begun.copy(tmp_path / "here")
    before = engine.savepoint()
    engine.ingest(2)
    with failing(STEPS[0]):
        engine.operate(operation, **DOCUMENTS[operation])
    for end, place in enumerate(STEPS[1:], 3):
        engine.start().ingest(end)
        with failing(place):
            engine.catch_up()
    engine.start().catch_up()
    assert rows(engine) == expected
    after = engine.savepoint()
    for savepoint in (before, after):
        engine.restore(savepoint)
        engine.start().catch_up()
        assert rows(engine) == expected
    # Silver is rebuilt, and then gold over the rebuilt silver.
    for path in ("silver/strong", "gold/sliding"):
        anew = RebuildRequest((path,))
        engine = Engine(engine.spark, engine.pipeline, engine.root, anew=anew)
        engine.catch_up()
        assert engine.runtime.rebuild is None
        assert rows(engine) == expected
