"""Event times of the first years, in windows that would begin before the year 1."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from headgate.flow.bronze.decoding import decoder, validator
from headgate.flow.bronze.decoding.times import FIRST
from headgate.insight.ledger.balance import balance
from headgate.insight.ledger.by_id import by_id
from tests.support.engine import Engine
from tests.support.landing import Landing
from tests.support.readings import declare

pytestmark = pytest.mark.spark

ZERO, NOW = "0001-01-01T00:00:00Z", "2026-03-01T11:40:00Z"


def land(landing: Landing, name: str, *times: str) -> None:
    rows = ({"id": f"{name}-{n}", "level": 7, "ok": True, "at": at} for n, at in enumerate(times))
    landing.write(f"{name}.json", b"".join(json.dumps(row).encode() + b"\n" for row in rows))


def starts(engine: Engine, table: str) -> list[int]:
    """Minutes since the beginning of the year 1."""
    found = pa.table(DeltaTable(str(engine.root / "readings" / table)).to_pyarrow_table())
    micros = found.column("window_start").cast(pa.int64()).to_pylist()
    return sorted((time - FIRST) // 60_000_000 for time in micros)


def test_those_of_an_older_version_are_folded_late_and_replayed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (decoder, validator):
        monkeypatch.setattr(module, "EARLIEST", FIRST)
    landing = Landing(tmp_path / "landing")
    engine = Engine(spark, declare(tmp_path, landing.folder, gold=("sliding",)), tmp_path / "root")
    land(landing, "1", ZERO)
    engine.run_all()
    assert starts(engine, "gold/sliding") == [-2, -1, 0]
    land(landing, "2", NOW, ZERO)
    engine.start()
    engine.run_all()
    assert starts(engine, "late/sliding") == [-2, -1, 0]
    engine.operate("late_replay", table="sliding", **{"from": None, "to": None, "keys": {}})
    engine.drain()
    assert starts(engine, "gold/sliding")[:3] == [-2, -1, 0]
    assert balance(engine.layout, engine.pipeline).differences == ()
    assert by_id(engine.layout, engine.pipeline).findings == ()
