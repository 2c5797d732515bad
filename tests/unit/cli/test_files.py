"""headgate files list | accept | skip."""

from __future__ import annotations

import os
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from headgate.commands import Place, commands_in
from headgate.driver.refusing import require_tables, require_unchanged
from headgate.driver.rereading import what_is_gone
from headgate.flow.sources.errors import FileChangedError
from headgate.flow.sources.files.log import FilesLog
from headgate.lake.control.driver_requests import (
    SkipRequest,
    ask_to_skip,
    asked_to_skip,
    has_skipped,
)
from headgate.lake.control.ownership import LAYERS, Owner
from headgate.lake.storage.files import Storage
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.table import Table
from headgate.supervision.job_state import probe
from tests.support.declared import files_of
from tests.support.waiting import wait_until
from tests.unit.cli.conftest import Ask, last_object
from tests.unit.insight.ledger.conftest import Lake
from tests.unit.supervision.conftest import lease

OfLake = tuple[str, str, str]
NOW = datetime(2026, 5, 4, tzinfo=UTC)
NOW_NANOS = int(NOW.timestamp()) * 1_000_000_000


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
    gone = partial(what_is_gone, empty_lake.layout, empty_lake.pipeline, "events", topics=())
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


def test_a_driver_skips_files_that_are_set_aside(
    ask: Ask, landing: Path, of_lake: OfLake, empty_lake: Lake
) -> None:
    log, layout = set_aside(empty_lake, 1, 2), empty_lake.layout
    lease(layout, Owner.here(), renewed=datetime.now(UTC))

    def drive() -> None:
        """What the driver does between two listings."""
        wait_until(lambda: asked_to_skip(layout) is not None, "nothing is asked", 30)
        wanted = asked_to_skip(layout)
        assert wanted is not None
        log.load()
        files = [log.get(sequence) for sequence in wanted.sequences]
        log.append([replace(f, status="skipped", reason=wanted.reason) for f in files if f], NOW)
        has_skipped(layout)

    with ThreadPoolExecutor() as pool:
        done = pool.submit(drive)
        pipeline, *root = of_lake
        code, out, _ = ask(
            "files", "skip", pipeline, "--set-aside", "--reason", "sent again", *root
        )
        done.result(30)
    assert (code, out) == (0, "skipped 2 files; the ledger lists them\n")
    assert {f["reason"] for f in files(ask, of_lake).values()} == {"sent again"}


def test_a_request_that_another_one_has_replaced_is_made_again(
    ask: Ask, landing: Path, of_lake: OfLake, empty_lake: Lake
) -> None:
    """Two commands at the same time: no command says that a file is skipped that is not."""
    log, layout = set_aside(empty_lake, 1, 2), empty_lake.layout
    lease(layout, Owner.here(), renewed=datetime.now(UTC))

    def drive() -> None:
        """The request of the other command replaces that of this one; the driver carries out one
        request after the other."""
        wait_until(lambda: asked_to_skip(layout) is not None, "nothing is asked", 30)
        ask_to_skip(layout, SkipRequest("events", (2,), "of another command"))
        for _ in range(2):
            wait_until(lambda: asked_to_skip(layout) is not None, "nothing is asked", 30)
            wanted = asked_to_skip(layout)
            assert wanted is not None
            log.load()
            files = [log.get(sequence) for sequence in wanted.sequences]
            skipped = [replace(f, status="skipped", reason=wanted.reason) for f in files if f]
            log.append(skipped, NOW)
            has_skipped(layout)

    with ThreadPoolExecutor() as pool:
        done = pool.submit(drive)
        pipeline, *root = of_lake
        code, out, _ = ask("files", "skip", pipeline, "1", "--reason", "broken", *root)
        listed = files(ask, of_lake)
        done.result(60)
    assert (code, out) == (0, "skipped file 1 a.json; the ledger lists it\n")
    assert [(f["status"], f["reason"]) for f in listed.values()] == [
        ("skipped", "broken"),
        ("skipped", "of another command"),
    ]


def test_skip_of_all_that_are_set_aside_without_a_driver(
    ask: Ask, landing: Path, of_lake: OfLake, empty_lake: Lake
) -> None:
    set_aside(empty_lake, 2)
    pipeline, *root = of_lake
    assert ask("files", "skip", pipeline, "--set-aside", *root)[0] == 0
    assert [f["status"] for f in files(ask, of_lake).values()] == ["waiting", "skipped"]
    code, out, _ = ask("files", "skip", pipeline, "--set-aside", *root)
    assert (code, out.splitlines()[0]) == (0, "no file is set aside")


def set_aside(lake: Lake, *sequences: int) -> FilesLog:
    log = FilesLog.of(lake.layout.storage, "tiny", "events")
    log.load()
    aside = [file for file in log.files if file.sequence in sequences]
    log.append([replace(file, status="set_aside", reason="no field") for file in aside], NOW)
    return log


def test_skip_lets_go_of_the_lease(
    ask: Ask, landing: Path, of_lake: OfLake, empty_lake: Lake
) -> None:
    pipeline, *root = of_lake
    ask("files", "skip", pipeline, "1", *root)
    (job,) = probe(empty_lake.layout, datetime.now(UTC))
    assert (job.state, job.layers) == ("stopped", LAYERS)


def restored(landing: Path) -> None:
    """Every file has a new time, as after a restore from a backup; b.json is cut off, and c.json is
    missing."""
    for name in ("a.json", "b.json"):
        os.utime(landing / name, (NOW.timestamp() + 9, NOW.timestamp() + 9))
    (landing / "b.json").write_text("{")
    os.utime(landing / "b.json", (NOW.timestamp(), NOW.timestamp()))
    (landing / "c.json").unlink()


@pytest.fixture
def backup(landing: Path, empty_lake: Lake) -> Path:
    log = FilesLog.of(empty_lake.layout.storage, "tiny", "events")
    log.load()
    for name in ("c.json", "d.json"):
        (landing / name).write_text("{}\n")
    new = Storage(str(landing))
    log.record([stat for name in ("c.json", "d.json") if (stat := new.stat(name))], NOW)
    restored(landing)
    return landing


def test_all_changed_files_are_told_at_once(backup: Path, empty_lake: Lake) -> None:
    os.utime(backup / "a.json", ns=(NOW_NANOS + 123_456_000, NOW_NANOS + 123_456_000))
    with pytest.raises(FileChangedError) as refused:
        require_tables(empty_lake.pipeline, empty_lake.layout)
    assert re.sub(r"\(3 bytes of [^,]*", "(3 bytes of TIME", refused.value.message) == (
        f"{backup}: 3 files are not as they were recorded: "
        "1 a.json (3 bytes of TIME, now 3 bytes of 2026-05-04 00:00:00.123456), "
        "2 b.json (3 bytes of TIME, now 1 byte of 2026-05-04 00:00:00.000000), "
        "3 c.json (3 bytes of TIME, vanished)"
    )
    assert commands_in(refused.value.remedy, Place()) == (
        "headgate files list PIPELINE --changed",
        "headgate files accept PIPELINE",
        "headgate files skip PIPELINE --changed",
    )


def test_of_many_changed_files_the_first_are_named(
    ask: Ask, backup: Path, of_lake: OfLake, empty_lake: Lake
) -> None:
    os.utime(backup / "d.json", (1, 1))
    with pytest.raises(FileChangedError, match=": 4 files are .*, vanished\\) and 1 more\n"):
        require_unchanged(empty_lake.pipeline, empty_lake.layout)


def test_one_command_accepts_the_new_times_of_all(
    ask: Ask, backup: Path, of_lake: OfLake, empty_lake: Lake
) -> None:
    """When the files were seen stays the same, so that their records keep their stamps."""
    log = FilesLog.of(empty_lake.layout.storage, "tiny", "events")
    log.load()
    seen = [file.seen for file in log.files]
    pipeline, *root = of_lake
    code, out, err = ask("files", "accept", *of_lake)
    assert (code, err) == (0, "")
    assert "recorded the new times of 1 file\n2 files have another size, or vanished" in out
    listed = last_object(ask("files", "list", *of_lake, "--changed", "--json")[1])["files"]
    assert [(f["sequence"], f["now"]) for f in listed] == [
        (2, "1 byte of 2026-05-04 00:00:00.000000"),
        (3, "vanished"),
    ]
    assert ask("files", "skip", pipeline, "--changed", *root)[0] == 0
    require_tables(empty_lake.pipeline, empty_lake.layout)
    statuses = [(f["path"], f["status"]) for f in files(ask, of_lake).values()]
    assert statuses == [
        ("a.json", "waiting"),
        ("b.json", "skipped"),
        ("c.json", "skipped"),
        ("d.json", "waiting"),
    ]
    log.load()
    assert [file.seen for file in log.files] == seen
    assert ask("files", "accept", *of_lake)[1].startswith("recorded the new times of 0 files\n")


def test_new_times_of_files_that_were_read_are_accepted(
    ask: Ask, landing: Path, of_lake: OfLake, empty_lake: Lake
) -> None:
    """Their records are in bronze, and can still be read again."""
    bronze = Table(empty_lake.layout.storage, "bronze/events", pipeline="tiny")
    bronze.commit(bronze.refresh().advanced_to(1, NOW, BronzePayload({"sequence": 2})))
    for name in ("a.json", "b.json"):
        os.utime(landing / name, (1, 1))
    assert "2 files are not as they were recorded" in ask("start", *of_lake)[2]
    assert ask("files", "accept", *of_lake)[0] == 0
    assert [file["status"] for file in files(ask, of_lake).values()] == ["read", "read"]
    assert what_is_gone(empty_lake.layout, empty_lake.pipeline, "events", {}, ()) is None


def test_several_files_are_skipped_at_once(ask: Ask, landing: Path, of_lake: OfLake) -> None:
    pipeline, *root = of_lake
    assert ask("files", "skip", pipeline, "1", "9", *root)[0] == 1
    assert ask("files", "skip", pipeline, *root)[0] == 2
    assert ask("files", "skip", pipeline, "1", "--changed", *root)[0] == 2
    assert {file["status"] for file in files(ask, of_lake).values()} == {"waiting"}
    assert ask("files", "skip", pipeline, "2", "1", "2", *root)[0] == 0
    assert {file["status"] for file in files(ask, of_lake).values()} == {"skipped"}


@pytest.mark.parametrize("verb", ["run", "start", "restart", "upgrade"])
def test_no_start_reaches_spark_while_files_have_changed(
    ask: Ask, backup: Path, of_lake: OfLake, verb: str
) -> None:
    code, _, err = ask(verb, *of_lake)
    assert code == 3
    assert "3 files are not as they were recorded" in err
    assert "files accept" in err


def test_the_list_names_what_cannot_be_recorded(ask: Ask, landing: Path, of_lake: OfLake) -> None:
    assert last_object(ask("files", "list", *of_lake, "--json")[1])["unnamed"] == []
    (landing / os.fsdecode(b"bad\xff.json")).touch()
    assert last_object(ask("files", "list", *of_lake, "--json")[1])["unnamed"] == [r"bad\xff.json"]
    assert (
        r"not recorded, because their names are not UTF-8: bad\xff.json; rename"
        in (ask("files", "list", *of_lake)[1])
    )


def test_a_terminal_obeys_no_name_of_a_file(
    ask: Ask, landing: Path, of_lake: OfLake, empty_lake: Lake
) -> None:
    (landing / "\x1b[31mred\u202e.json").touch()
    log = FilesLog.of(empty_lake.layout.storage, "tiny", "events")
    log.load()
    log.record([s for s in Storage(str(landing)).list() if "red" in s.path], NOW)
    assert r"\x1b[31mred\u202e.json" in ask("files", "list", *of_lake)[1]
    (landing / "\x1b[31mred\u202e.json").unlink()
    code, _, err = ask("start", *of_lake)
    assert (code, r"/\x1b[31mred\u202e.json: the file was recorded" in err) == (3, True)
    out = ask("files", "skip", "--changed", *of_lake)[1]
    assert r"\x1b[31mred\u202e.json; the ledger lists it" in out
