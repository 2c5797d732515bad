"""One of two sources has a damaged table when a driver starts. The verbs name it, the other source
goes on, and after a repair the tables of both are the oracle's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate import exit_codes
from headgate.errors import HeadgateError
from headgate.insight.ledger.by_id import by_id
from headgate.lake.control.ownership import LAYERS
from headgate.lake.storage.layout import Layout
from headgate.supervision.job_state import probe
from tests.oracle import derive
from tests.support.driver_here import run_here
from tests.support.market import Market, folders, market_rules
from tests.support.rounds import in_full
from tests.support.said import SaidHere
from tests.support.several_readings import tables_of
from tests.support.tables import differences, state

pytestmark = pytest.mark.spark

DAMAGED, OTHER = "in1", "in2"
Harm = Callable[[Path], Sequence[Path]]
"""Returns the files of a table to be deleted."""


def file(table: Path) -> Sequence[Path]:
    return sorted(table.rglob("*.parquet"))[:1]


def last(table: Path) -> Sequence[Path]:
    """The entries from the last batch on, which later tables have processed."""
    entries = sorted((table / "_delta_log").glob("*.json"))
    batches = [number for number, each in enumerate(entries) if '"kind":"data"' in said_in(each)]
    return entries[batches[-1] :]


def entry(table: Path) -> Sequence[Path]:
    return sorted((table / "_delta_log").glob("*.json"))[2:3]


def said_in(path: Path) -> str:
    return path.read_text().replace('\\"', '"').replace('": "', '":"')


CASES: dict[str, Harm] = {"silver/in1_clean": file, "bronze/in1": last}
MORE: dict[str, Harm] = {
    "quarantine/in1": file,
    "late/in1_sliding": entry,
    "gold/in1_bands": file,
    "silver/in1_strong": last,
}


def differing(market: Market, name: str) -> dict[str, list[str]]:
    """How the tables of a source differ from the oracle's."""
    records = market.sources[name].records()
    return differences(tables_of(market.root, name), derive(records, market_rules()))


@pytest.mark.parametrize("path", [*CASES, *(pytest.param(path, marks=in_full) for path in MORE)])
def test_the_other_source_goes_on(spark: SparkSession, tmp_path: Path, path: str) -> None:
    market = Market(tmp_path, folders(tmp_path, 2, 3))
    said = SaidHere(tmp_path, spark)
    place = str(market.declaration), "--root", str(market.root)
    market.deliver(2)
    run_here(spark, market.task)
    table = market.root / "readings" / path
    gone = (CASES | MORE)[path](table)
    assert gone
    for each in gone:
        each.unlink()
    kept = sorted((table / "_delta_log").iterdir())
    market.deliver(1)
    run = said("run", *place, "--once")
    assert run.returncode == exit_codes.LOG_GAP, run.stderr
    assert f"source {DAMAGED}: " in run.stderr
    assert path in run.stderr
    assert f"headgate repair {market.declaration}" in run.stderr
    assert differing(market, OTHER) == {}
    assert market.read(OTHER) == len(market.sources[OTHER].records())
    if path != f"bronze/{DAMAGED}":
        assert market.read(DAMAGED) == len(market.sources[DAMAGED].records())
    if gone[0].suffix == ".json":
        assert sorted((table / "_delta_log").iterdir()) == kept, "its evidence would be lost"
    (job,) = probe(Layout.of(str(market.root), "readings"), datetime.now(UTC))
    failure, other = job.sources[DAMAGED].failure, job.sources[OTHER].failure
    assert other is None
    assert failure is not None
    assert path in failure.reason
    assert any("repair" in each for each in failure.commands)
    status = said("status", *place)
    assert status.returncode == exit_codes.LOG_GAP
    assert f"source {DAMAGED}: " in status.stdout
    repair = said("repair", *place)
    assert repair.returncode == 0, repair.stdout + repair.stderr
    run = said("run", *place, "--once")
    assert run.returncode == 0, run.stderr
    for name in market.sources:
        assert differing(market, name) == {}, name
        assert state(market.root, f"gold/{name}_sliding")["n"] > 0
    assert by_id(Layout.of(str(market.root), "readings"), market.pipeline).findings == ()


@in_full
def test_a_job_of_one_layer_is_held_by_what_it_reads(spark: SparkSession, tmp_path: Path) -> None:
    market = Market(tmp_path, folders(tmp_path, 2, 3))
    market.deliver(2)
    run_here(spark, market.task)
    for each in last(market.root / f"readings/silver/{DAMAGED}_clean"):
        each.unlink()
    market.deliver(1)
    jobs = [replace(market.task, layers=(layer,)) for layer in LAYERS]
    run_here(spark, jobs[0])
    for job in jobs[1:]:
        with pytest.raises(HeadgateError, match=f"source {DAMAGED}: silver/") as error:
            run_here(spark, job)
        assert error.value.exit_code == exit_codes.LOG_GAP
    assert differing(market, OTHER) == {}
    done = SaidHere(tmp_path)("repair", str(market.declaration), "--root", str(market.root))
    assert done.returncode == 0, done.stderr
    for job in jobs:
        run_here(spark, job)
    assert differing(market, DAMAGED) == differing(market, OTHER) == {}
