"""headgate files list | skip."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from headgate.jobs.refusing import require_tables
from headgate.jobs.rereading import what_is_gone
from headgate.sources.errors import FileChangedError
from headgate.sources.files.log import FilesLog
from headgate.storage.files import Storage
from headgate.storage.ownership import LAYERS, Owner
from headgate.supervision.job_state import probe
from headgate.tables.payloads.bronze import BronzePayload
from headgate.tables.table import Table
from tests.support.declared import files_of
from tests.unit.cli.conftest import Ask, last_object
from tests.unit.ledger.conftest import Lake
from tests.unit.supervision.conftest import lease

OfLake = tuple[str, str, str]
NOW = datetime(2026, 5, 4, tzinfo=UTC)


@pytest.fixture
def landing(empty_lake: Lake) -> Path:
    """Two files, recorded; bronze has read neither."""
    folder = Path(files_of(empty_lake.pipeline).path)
    folder.mkdir(parents=True)
    for name in ("a.json", "b.json"):
        (folder / name).write_text("{}\n")
    empty_lake.layout.storage.remove("_headgate/files/events")
    log = FilesLog.of(empty_lake.layout.storage, "tiny", "events")
    log.shape.create("digest")
    log.load()
    log.record(sorted(Storage(str(folder)).list(), key=lambda s: s.path), NOW)
    return folder


def files(ask: Ask, of_lake: OfLake) -> dict[int, dict[str, object]]:
    listed = last_object(ask("files", "list", *of_lake, "--json")[1])["files"]
    return {file["sequence"]: file for file in listed}


def test_list_says_what_was_read(ask: Ask, landing: Path, of_lake: OfLake) -> None:
    listed = files(ask, of_lake)
    assert [(s, f["path"], f["status"]) for s, f in listed.items()] == [
        (1, "a.json", "waiting"),
        (2, "b.json", "waiting"),
    ]


def test_skip_keeps_the_sequence_and_says_why(ask: Ask, landing: Path, of_lake: OfLake) -> None:
    pipeline, *root = of_lake
    code, _, err = ask("files", "skip", pipeline, "1", "--reason", "sent twice", *root)
    assert (code, err) == (0, "")
    listed = files(ask, of_lake)
    assert (listed[1]["status"], listed[1]["reason"]) == ("skipped", "sent twice")
    assert listed[2]["status"] == "waiting"


def test_skip_accepts_a_rewritten_file_as_it_is_now(
    ask: Ask, landing: Path, of_lake: OfLake
) -> None:
    """Otherwise the next listing would refuse it again."""
    (landing / "a.json").write_text("{} {}\n")
    os.utime(landing / "a.json", (NOW.timestamp(), NOW.timestamp()))
    pipeline, *root = of_lake
    ask("files", "skip", pipeline, "1", *root)
    file = files(ask, of_lake)[1]
    assert (file["size"], file["modified"]) == (6, NOW.isoformat())


def test_what_was_read_before_it_was_skipped_can_never_be_read_again(
    ask: Ask, landing: Path, of_lake: OfLake, empty_lake: Lake
) -> None:
    """Only bronze has its records, so bronze must not go back to before them."""
    bronze = Table(empty_lake.layout.storage, "bronze/events", pipeline="tiny")
    bronze.commit(bronze.refresh().advanced_to(1, NOW, BronzePayload({"sequence": 1})))
    (landing / "a.json").unlink()
    pipeline, *root = of_lake
    assert ask("files", "skip", pipeline, "1", *root)[0] == 0
    assert files(ask, of_lake)[1]["status"] == "withdrawn"
    assert ask("files", "skip", pipeline, "1", *root)[0] == 0
    assert files(ask, of_lake)[1]["status"] == "withdrawn"
    gone = partial(what_is_gone, empty_lake.layout, empty_lake.pipeline, topics=())
    assert "only bronze still has its records" in str(gone(offsets={}))
    assert gone(offsets={"sequence": 1}) is None


def test_skip_of_a_vanished_file(ask: Ask, landing: Path, of_lake: OfLake) -> None:
    """If the same file comes back, it does not count as rewritten."""
    before = files(ask, of_lake)[2]
    (landing / "b.json").unlink()
    pipeline, *root = of_lake
    assert ask("files", "skip", pipeline, "2", *root)[0] == 0
    skipped = files(ask, of_lake)[2]
    assert skipped["status"] == "skipped"
    assert [skipped[key] for key in ("size", "modified")] == [before["size"], before["modified"]]


def test_a_start_names_a_file_that_vanished_before_it_was_read(
    landing: Path, empty_lake: Lake
) -> None:
    """The check runs before a JVM is started."""
    require_tables(empty_lake.pipeline, empty_lake.layout)
    (landing / "b.json").unlink()
    with pytest.raises(FileChangedError, match=r"b\.json: .* has vanished before it was read"):
        require_tables(empty_lake.pipeline, empty_lake.layout)


def test_skip_of_an_unknown_sequence(ask: Ask, landing: Path, of_lake: OfLake) -> None:
    pipeline, *root = of_lake
    code, _, err = ask("files", "skip", pipeline, "9", *root)
    assert code == 1
    assert "headgate files list" in err


def test_skip_is_refused_while_the_pipeline_runs(
    ask: Ask, landing: Path, of_lake: OfLake, empty_lake: Lake
) -> None:
    lease(empty_lake.layout, Owner.here(), renewed=datetime.now(UTC))
    pipeline, *root = of_lake
    assert ask("files", "skip", pipeline, "1", *root)[0] == 6
    assert files(ask, of_lake)[1]["status"] == "waiting"


def test_skip_lets_go_of_the_lease(
    ask: Ask, landing: Path, of_lake: OfLake, empty_lake: Lake
) -> None:
    pipeline, *root = of_lake
    ask("files", "skip", pipeline, "1", *root)
    (job,) = probe(empty_lake.layout, datetime.now(UTC))
    assert (job.state, job.layers) == ("stopped", LAYERS)
