"""Restores while one of two sources is no longer declared."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.history.savepoints.errors import SavepointError
from headgate.history.savepoints.restore import restore_savepoint
from tests.support.fake_stages import Record
from tests.support.lake import Lake, declared
from tests.support.several_sources import ONE, land
from tests.support.several_sources import two_sources as _two_sources

two_sources = _two_sources


def test_its_tables_do_not_go_back_to_batches_that_its_bronze_has_lost(
    two_sources: Lake, tmp_path: Path
) -> None:
    lake = two_sources
    first = lake.savepoint()
    land(lake, "clicks", [Record(minute=3)], [Record(minute=4)])
    lake.ingest(2, "clicks")
    lake.catch_up()
    second = lake.savepoint()
    lake.restore(first, reread=True)
    lake.start().ingest(source="clicks")
    lake.catch_up()
    alone, now = declared(tmp_path / "alone", ONE), lake.clock()
    place, epoch = (lake.layout, alone), lake.epoch + 1
    with pytest.raises(SavepointError, match="bronze/clicks was reset") as error:
        restore_savepoint(*place, second, epoch, now, reread=True)
    assert "declare the source again" in error.value.remedy
    restore_savepoint(*place, first, epoch, now, reread=True)
    lake.epoch = epoch
    lake.restore(second, reread=True)
