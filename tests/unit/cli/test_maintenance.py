"""What `compact` and `vacuum` print and do without jobs, and with jobs that are only documents."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from headgate.cli.maintain import maintenance
from headgate.driver.lease import Lease
from headgate.history.maintenance.report import Amount, Vacuumed
from headgate.history.maintenance.requests import (
    MaintenanceAnswer,
    requested_maintenance,
    write_answer,
)
from headgate.lake.control.ownership import LAYERS, Owner
from headgate.lake.storage.layout import Layout
from headgate.supervision import local
from headgate.supervision.running_maintenance import maintain_running_jobs
from tests.unit.cli.conftest import Ask, last_object
from tests.unit.history.savepoints.conftest import add_batch, take
from tests.unit.insight.ledger.conftest import Lake
from tests.unit.supervision.conftest import lease, report

OfLake = tuple[str, str, str]


@pytest.fixture
def filled(empty_lake: Lake) -> Lake:
    for n in range(1, 10):
        add_batch(empty_lake, n)
    return empty_lake


def files(lake: Lake, path: str) -> int:
    return len(list(lake.layout.storage.list(f"{path}/data", recursive=True)))


@pytest.mark.slow
def test_compact_then_vacuum(ask: Ask, of_lake: OfLake, filled: Lake) -> None:
    code, out, _ = ask("compact", *of_lake)
    assert code == 0
    assert out.splitlines()[-1].startswith("45 files became 5")
    assert DeltaTable(filled.layout.storage.uri("silver/good")).version() > 9
    code, out, _ = ask("vacuum", *of_lake)
    assert code == 0
    assert "silver/good: 9 files" in out
    assert "written, or in the table, within the time that readers are given" in out
    assert out.splitlines()[-1].startswith("0 files (0 B) removed")
    code, out, _ = ask("vacuum", *of_lake, "--keep-for", "0 s", "--dry-run")
    assert out.splitlines()[-1].startswith("45 files")
    assert out.splitlines()[-1].endswith("would be removed")
    assert files(filled, "silver/good") == 10
    document = last_object(ask("vacuum", *of_lake, "--keep-for", "0 s", "--json")[1])
    by_table = {each["table"]: each for each in document["tables"]}
    assert by_table["silver/good"]["removed"]["files"] == 9
    assert by_table["silver/good"]["kept"]["live"]["files"] == 1
    assert files(filled, "silver/good") == 1


@pytest.mark.slow
def test_files_that_a_savepoint_needs_are_reported(ask: Ask, of_lake: OfLake, filled: Lake) -> None:
    take(filled)
    ask("compact", *of_lake)
    out = ask("vacuum", *of_lake, "--keep-for", "0 s")[1]
    assert "gold/per_minute: 9 files" in out
    assert "kept: of savepoints only" in out


@pytest.mark.parametrize(("time", "expected"), [("soon", "not a duration"), ("24", "24 seconds")])
def test_a_time_that_is_none(ask: Ask, of_lake: OfLake, time: str, expected: str) -> None:
    code, _, err = ask("vacuum", *of_lake, "--keep-for", time)
    assert code == 2
    assert expected in err


@pytest.mark.parametrize(
    "typed", [("compact",), ("vacuum",), ("backfill", "--from", "2 days", "--publish")]
)
def test_a_mistyped_root_is_not_made(
    ask: Ask, of_lake: OfLake, typed: tuple[str, ...], tmp_path: Path
) -> None:
    verb, *options = typed
    code, _, err = ask(verb, of_lake[0], *options, "--root", "elsewhere")
    assert code == 1
    assert "has no tables under" in err
    assert not (tmp_path / "elsewhere").exists()


def running(layout: Layout, *layers: str) -> None:
    names = layers or ("bronze", "silver", "gold")
    lease(layout, Owner.here(), epoch=3, renewed=datetime.now(UTC), layers=names)
    report(layout, names[0] if layers else "fused", epoch=3, n=2)


def answers(monkeypatch: pytest.MonkeyPatch, layout: Layout, job: str, **answer: Any) -> None:
    """Let the job answer as soon as the command waits for it."""

    def wait(_: float) -> None:
        request = requested_maintenance(layout)
        assert request is not None
        write_answer(
            layout, job, MaintenanceAnswer(request.id, request.what, is_done=True, **answer)
        )

    monkeypatch.setattr(
        maintenance, "maintain_running_jobs", partial(maintain_running_jobs, wait=wait)
    )


def test_a_running_job_is_asked(
    ask: Ask, of_lake: OfLake, filled: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    running(filled.layout)
    done = Vacuumed("gold/t", Amount(3, 5000), {"live": Amount(1, 100)}, 7, 99, "batches")
    answers(monkeypatch, filled.layout, "fused", reports=(done,))
    out = ask("vacuum", *of_lake)[1]
    assert "gold/t" in out
    assert "3 files (4.9 KB) removed" in out
    assert "the batches that a downstream table, or the ledger, may still need" in out


def test_a_silent_driver_on_another_machine_is_not_ended(
    ask: Ask, of_lake: OfLake, filled: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its machine may only be busy. A stop says that it may be gone."""
    silent = datetime.now(UTC) - timedelta(minutes=1)
    lease(filled.layout, Owner(1, "another-host", 0.0), renewed=silent)
    code, _, err = ask("compact", *of_lake)
    assert code == 7
    assert "process 1 on another-host is silent, and may still write" in err
    monkeypatch.setattr(local, "EXPIRES_AFTER", timedelta(0))
    code, out, _ = ask("stop", *of_lake)
    assert (code, "process 1 on another-host is silent" in out) == (0, True)
    assert ask("compact", *of_lake)[0] == 0


def test_another_operation_on_the_tables_is_no_driver_to_ask(
    ask: Ask, of_lake: OfLake, filled: Lake
) -> None:
    with Lease(filled.layout, LAYERS, "tiny", "vacuum").held():
        code, _, err = ask("compact", *of_lake)
    assert code == 6
    assert "vacuum" in err


def test_the_error_of_a_job_is_reported_with_its_remedy(
    ask: Ask, of_lake: OfLake, filled: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    running(filled.layout)
    failure = {"error": "a file is damaged", "remedy": "repair it", "exit_code": 5}
    answers(monkeypatch, filled.layout, "fused", **failure)
    code, _, err = ask("compact", *of_lake)
    assert (code, err) == (5, "… merging small files\na file is damaged\nrepair it\n")


@pytest.mark.slow
def test_layers_that_no_job_runs_are_done_here(
    ask: Ask, of_lake: OfLake, filled: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    running(filled.layout, "bronze")
    answers(monkeypatch, filled.layout, "bronze")
    document = last_object(ask("compact", *of_lake, "--json")[1])
    assert {each["table"] for each in document["tables"]} == {
        "quarantine/events",
        "silver/good",
        "late/per_minute",
        "gold/per_minute",
    }
    assert DeltaTable(filled.layout.storage.uri("bronze/events")).version() == 9
