"""The logs of real tables, compared with the model: killed drivers, take-overs, resets,
rebuilds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from headgate.driver.task import RebuildRequest
from headgate.lake.tables.errors import CommitRefusedError, FencedError
from tests.property.protocol.histories import history_faults
from tests.support.failing import dying
from tests.support.fake_stages import Record, without_spark
from tests.support.lake import NARROW, WIDE, Lake, declared
from tests.support.rounds import in_full
from tests.support.several_sources import TWO, ingest, land, only

DECLARATIONS = pytest.mark.parametrize(
    "declaration",
    # The wide one has all tables of the narrow one.
    [pytest.param(NARROW, marks=in_full, id="narrow"), pytest.param(WIDE, id="wide")],
)
FILE = (Record(0), Record(7, bad=True), Record(3, late=True), Record(5, filtered=True))
COPY = (Record(2, duplicate=True), Record(0), Record(9))
PLACES = (
    "fence",
    "files.committed",
    "bronze.staged",
    "bronze.committed",
    "quarantine.committed",
    "silver.staged",
    "silver.committed",
    "late.committed",
    "gold.staged",
    "gold.committed",
    "operation.intended",
    "operation.staged",
    "reset.table_done",
)


@pytest.fixture(autouse=True)
def arrow() -> Iterator[None]:
    with without_spark():
        yield


def faults(lake: Lake) -> list[str]:
    return history_faults(lake.layout, lake.pipeline)


@pytest.mark.slow
@DECLARATIONS
def test_drivers_die_everywhere_and_others_go_on(tmp_path: Path, declaration: str) -> None:
    """The intents of a drain and of a restore are among the work that is half done."""
    lake = Lake(declared(tmp_path, declaration), tmp_path / "root")
    lake.land(FILE)
    lake.ingest()
    lake.catch_up()
    savepoint = lake.savepoint()
    for number, place in enumerate(PLACES):
        with dying(place):
            lake.start().land(FILE, COPY)
            lake.ingest(lake.last_sequence - 1)
            lake.catch_up()
            lake.drain()
            lake.ingest()
            lake.catch_up()
            lake.restore(savepoint, reread=number % 2 == 0)
    lake.start().run_all()
    assert faults(lake) == []


@pytest.mark.slow
def test_drivers_of_two_sources_die_everywhere(tmp_path: Path) -> None:
    """Source ``clicks`` is added after an operation and a savepoint of ``orders``."""
    one = Lake(declared(tmp_path, only("orders")), tmp_path / "root")
    land(one, "orders", FILE)
    ingest(one, "orders")
    one.drain()
    one.savepoint()
    lake = Lake(declared(tmp_path, TWO), one.root, now=one.now)
    land(lake, "clicks", FILE)
    ingest(lake, "clicks")
    lake.catch_up()
    savepoint = lake.savepoint()
    for number, place in enumerate(PLACES):
        with dying(place):
            lake.start()
            for source, files in (("orders", (COPY,)), ("clicks", (FILE, COPY))):
                land(lake, source, *files)
                ingest(lake, source)
                lake.catch_up()
                lake.drain()
            lake.restore(savepoint, reread=number % 2 == 0)
    lake.start()
    for source in ("clicks", "orders"):
        land(lake, source, COPY)
        ingest(lake, source)
        lake.catch_up()
    assert faults(lake) == []


@pytest.mark.slow
@DECLARATIONS
@pytest.mark.parametrize("reread", [False, True])
def test_a_zombie_wakes_after_a_restore(tmp_path: Path, declaration: str, reread: bool) -> None:
    lake = Lake(declared(tmp_path, declaration), tmp_path / "root")
    lake.land(FILE, COPY)
    lake.ingest(1)
    lake.catch_up()
    savepoint = lake.savepoint()
    lake.ingest(2)
    zombie = lake.runtime
    lake.restore(savepoint, reread=reread)
    with pytest.raises((FencedError, CommitRefusedError)):
        zombie.catch_up(lake.clock())
    lake.start().land(COPY)
    lake.ingest()
    lake.catch_up_per_layer()
    assert faults(lake) == []


@pytest.mark.slow
@DECLARATIONS
def test_tables_are_rebuilt_and_the_driver_dies_meanwhile(tmp_path: Path, declaration: str) -> None:
    lake = Lake(declared(tmp_path, declaration), tmp_path / "root")
    for records in (FILE, COPY):
        lake.land(records)
        lake.ingest()
        lake.drain()
    for above in ("gold/per_minute", "silver/good", "bronze/events"):
        lake.anew = RebuildRequest((above,))
        for place in ("rebuild.recorded", "reset.intended", "reset.table_done"):
            with dying(place, certainly=False):
                lake.start().run_all()
            lake.anew = RebuildRequest()
        lake.start().land(COPY)
        lake.ingest()
        lake.catch_up()
    assert lake.runtime.table("gold/per_minute").refresh().generation == 3
    assert faults(lake) == []
