"""What publications still have to send, and what a publication that is declared later finds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from headgate.declaration.load import load
from headgate.declaration.model import Pipeline, Publication
from headgate.flow.publish.changes import changes
from headgate.lake.tables.errors import LogGapError
from headgate.lake.tables.live_files import live_files
from headgate.lake.tables.log import entry_path, list_log
from headgate.lake.tables.payloads.publication import PublicationPayload
from headgate.lake.tables.table import Table
from tests.unit.history.maintenance.conftest import Fill, compacted, owned, vacuumed
from tests.unit.history.savepoints.conftest import add_batch
from tests.unit.insight.ledger.conftest import DECLARATION, Lake

PUBLISH = """
publish:
  out:
    from: {source}
    kafka: {{servers: "127.0.0.1:9", topic: out}}
"""


@pytest.fixture(autouse=True)
def _checkpoints_are_made_of_short_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headgate.history.maintenance.retention.WORTH_A_CHECKPOINT", 4)


def publishing(lake: Lake, source: str) -> Pipeline:
    file = lake.pipeline.file
    file.write_text(DECLARATION + PUBLISH.format(source=source))
    lake.pipeline = load(file)
    return lake.pipeline


def published(lake: Lake, version: int) -> None:
    """Commit ``version`` as sent, as the publication's stage does."""
    table = Table(lake.layout.storage, "_headgate/publish/out", pipeline="tiny")
    schema = pa.schema([("at", pa.timestamp("us", "UTC"))])
    table.create(schema, "digest", time_column="at")
    state = table.refresh().advanced_to(1, datetime.now(UTC), PublicationPayload(version))
    table.commit(state)


def to_send(lake: Lake, path: str, after: int) -> Iterator[tuple[int, list[str]]]:
    table = Table(lake.layout.storage, path, pipeline="tiny")
    table.refresh()
    for commit in changes(table, after, table.version):
        assert all(table.storage.exists(f.path) for f in commit.files)
        yield commit.version, [f.path for f in commit.files]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "path"),
    [
        ("gold.per_minute", "gold/per_minute"),
        ("late.per_minute", "late/per_minute"),
        ("quarantine.events", "quarantine/events"),
    ],
)
def test_what_is_to_be_sent_is_kept_as_it_was_committed(fill: Fill, source: str, path: str) -> None:
    lake = fill(9)
    publishing(lake, source)
    published(lake, 5)  # batches 6 to 9 are not sent yet
    wanted = list(to_send(lake, path, 5))
    assert len(wanted) == 4
    done = compacted(lake)
    assert done[path].merged.files == 5
    assert done["silver/good"].merged.files == 9
    for each in owned(lake):
        DeltaTable(each.storage.uri()).create_checkpoint()
    assert vacuumed(lake)[path].log_why == "unpublished"
    assert list_log(lake.layout.storage.at(path)).oldest == 5
    assert list(to_send(lake, path, 5)) == wanted


@pytest.mark.slow
def test_one_that_never_ran_begins_with_the_first_commit(fill: Fill) -> None:
    lake = fill(6)
    publishing(lake, "late.per_minute")
    wanted = list(to_send(lake, "late/per_minute", 0))
    assert compacted(lake)["late/per_minute"].merged.files == 0
    vacuumed(lake)
    assert list(to_send(lake, "late/per_minute", 0)) == wanted


@pytest.mark.slow
def test_one_that_is_declared_later_finds_what_is_live(fill: Fill) -> None:
    lake = fill(6)
    compacted(lake)
    vacuumed(lake)
    (only,) = to_send(lake, "late/per_minute", 0)
    assert only[1] == [next(iter(live(lake, "late/per_minute")))]
    table = Table(lake.layout.storage, "late/per_minute", pipeline="tiny")
    table.refresh()
    assert only[0] == table.version
    add_batch(lake, 7)
    (next_one,) = to_send(lake, "late/per_minute", only[0])
    assert "/0-7-" in next_one[1][0]


@pytest.mark.slow
def test_events_of_a_gate_keep_no_file(fill: Fill) -> None:
    """They are documents. Their position follows gold, but is rarely moved."""
    lake = fill(6)
    gate = Publication("out", "gate", "per_minute", None, "kafka", None)
    lake.pipeline = replace(lake.pipeline, publish={"out": gate})
    published(lake, 0)
    assert compacted(lake)["gold/per_minute"].merged.files == 6
    done = vacuumed(lake)["gold/per_minute"]
    assert "unpublished" not in done.kept
    assert done.removed.files == 6


def live(lake: Lake, path: str) -> Iterator[str]:
    table = Table(lake.layout.storage, path, pipeline="tiny")
    table.refresh()
    yield from (f.path for f in live_files(table.handle))


@pytest.mark.slow
def test_and_so_it_does_where_the_log_begins_later(fill: Fill) -> None:
    lake = fill(9)
    vacuumed(lake)
    for each in owned(lake):
        DeltaTable(each.storage.uri()).create_checkpoint()
    vacuumed(lake)
    assert list_log(lake.layout.storage.at("gold/per_minute")).oldest > 0
    (only,) = to_send(lake, "gold/per_minute", 0)
    assert len(only[1]) == 9


def test_an_entry_that_is_missing_is_damage_for_publications_too(fill: Fill) -> None:
    lake = fill(4)
    table = Table(lake.layout.storage, "late/per_minute", pipeline="tiny")
    table.refresh()
    table.storage.remove(entry_path(2))
    with pytest.raises(LogGapError, match="it is missing"):
        list(changes(table, 0, 4))
