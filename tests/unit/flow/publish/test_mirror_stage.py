"""Which versions of a table a mirror gets, without Spark: the rows are left out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest

from headgate.declaration.load import load
from headgate.declaration.model import Publication
from headgate.flow.publish import mirror_calls
from headgate.flow.publish.mirror_stage import MirrorStage, NetFiles, net_files
from headgate.flow.publish.publication import PublishedPosition, log_id
from headgate.flow.publish.sinks.writers import (
    Mirror,
    MirrorVersion,
    SinkRefusalError,
    VersionDifference,
)
from headgate.lake.tables.table import Table
from tests.unit.insight.ledger.conftest import DECLARATION, NOON, Lake

NOW = datetime(2026, 5, 4, 13, tzinfo=UTC)


@dataclass
class Versions(Mirror):
    """``got`` has the version of each change."""

    version: MirrorVersion | None = None
    got: list[int] = field(default_factory=list)

    def held(self) -> MirrorVersion | None:
        return self.version

    def apply(self, difference: VersionDifference) -> None:
        if difference.after != self.version:
            raise SinkRefusalError("another driver has written")
        self.version = difference.upto
        self.got.append(difference.upto.number)

    def failure(self, error: Exception) -> str | None:
        return None


class _WithoutRows(MirrorStage):
    def _difference(
        self, net: NetFiles, held: MirrorVersion | None, upto: MirrorVersion
    ) -> VersionDifference:
        return VersionDifference((), None, pa.schema([]), (), held, upto)


class Mirrored:
    """A lake whose gold table is mirrored."""

    def __init__(self, folder: Path) -> None:
        file = folder / "tiny.yml"
        file.write_text(DECLARATION)
        self.lake = Lake(folder / "lake", load(file))
        out = Publication("out", "gold", "per_minute", "update", "postgres", None)
        self.lake.pipeline = replace(self.lake.pipeline, publish={"out": out})
        self.mirror = Versions()
        position = PublishedPosition(self.lake.layout.storage, self.lake.pipeline, out)
        position.create()
        self.position = position
        self.stage = _WithoutRows(cast(Any, None), self.lake.pipeline, position, self.mirror)

    def commit(self) -> int:
        """Commit a batch. Returns the version of gold."""
        n = self.gold.refresh().n + 1
        self.lake.commit("gold/per_minute", n, [{"window_start": NOON, "events": n}], {})
        return self.version

    def fence(self) -> int:
        """Commit nothing. Returns the version of gold."""
        self.gold.fence(1 + self.gold.refresh().epoch)
        return self.version

    @property
    def gold(self) -> Table:
        return self.lake.table("gold/per_minute")

    @property
    def version(self) -> int:
        self.gold.refresh()
        return self.gold.version


@pytest.fixture
def mirrored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mirrored]:
    monkeypatch.setattr(mirror_calls, "BRIEFLY", 60.0)
    found = Mirrored(tmp_path)
    with closing(found.stage):
        yield found


def test_it_gets_each_version_with_rows_and_the_position_follows(mirrored: Mirrored) -> None:
    first = mirrored.commit()
    assert mirrored.stage.catch_up(NOW)
    second = mirrored.commit()
    assert mirrored.stage.catch_up(NOW)
    assert mirrored.stage.catch_up(NOW)
    assert mirrored.mirror.got == [first, second]
    assert mirrored.position.version == second


def test_commits_without_rows_are_read_once(
    mirrored: Mirrored, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = list[int]()

    def counted(table: Table, after: int, rows: int) -> Any:
        reads.append(table.version)
        return net_files(table, after, rows)

    monkeypatch.setattr("headgate.flow.publish.mirror_stage.net_files", counted)
    first = mirrored.commit()
    assert mirrored.stage.catch_up(NOW)
    fences = [mirrored.fence()]
    for _ in range(3):
        assert mirrored.stage.catch_up(NOW)
    fences.append(mirrored.fence())
    assert mirrored.stage.catch_up(NOW)
    assert reads == fences
    assert mirrored.mirror.got == [first]
    assert mirrored.position.version == first


def test_the_position_is_corrected_if_the_mirror_is_ahead(mirrored: Mirrored) -> None:
    """A driver may end between the two."""
    newest = mirrored.commit()
    files = mirrored.gold.refresh().files
    mirrored.mirror.version = MirrorVersion(log_id(mirrored.gold), newest, files, 1)
    assert mirrored.stage.catch_up(NOW)
    assert mirrored.mirror.got == []
    assert mirrored.position.version == newest


def test_a_reset_while_the_driver_runs_is_found_at_the_next_change(mirrored: Mirrored) -> None:
    first = mirrored.commit()
    assert mirrored.stage.catch_up(NOW)
    mirrored.mirror.version = None
    second = mirrored.commit()
    with pytest.raises(SinkRefusalError):
        mirrored.stage.catch_up(NOW)
    assert mirrored.stage.catch_up(NOW)
    assert mirrored.mirror.got == [first, second]
