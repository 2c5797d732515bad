"""Which driver carries out what a person requests."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from headgate.cli import driving, requesting
from headgate.cli.requesting import await_request, carried_out
from headgate.driver.driver import Driver
from headgate.driver.lease import LeaseHeldError, TablesInUseError
from headgate.errors import HeadgateError
from headgate.lake.control import requests
from headgate.lake.tables.decisions import Decision
from tests.support.decisions import append, at
from tests.unit.insight.ledger.conftest import Lake

WORDS = HeadgateError("neither happens", remedy="look")


@pytest.mark.parametrize("runs", [False, True])
def test_a_driver_that_runs_or_one_that_ends_after_it(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], runs: bool
) -> None:
    driven: list[Driver] = []

    def drive(driver: Driver) -> None:
        driven.append(driver)
        if runs:
            raise LeaseHeldError("another holds it", remedy="wait")

    monkeypatch.setattr(driving, "drive", drive)
    monkeypatch.setattr(driving, "jars_for", lambda declared: ())
    found = await_request(
        lake.pipeline, "lake", lambda: (len(driven), True), gone=WORDS, waits=WORDS
    )
    assert found == 1
    task = driven[0]._task
    assert (task.once, task.only_open, task.root) == (True, True, "lake")
    assert ("the running driver does it between two batches" in capsys.readouterr().err) is runs


def test_an_operation_has_the_tables_first(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No driver can start until it has ended; then one is started here."""
    driven: list[Driver] = []

    def drive(driver: Driver) -> None:
        driven.append(driver)
        if len(driven) < 3:
            raise TablesInUseError("tables in use by compact", remedy="wait")

    monkeypatch.setattr(driving, "drive", drive)
    monkeypatch.setattr(driving, "jars_for", lambda declared: ())
    monkeypatch.setattr(requesting, "_POLL", 0.0)

    def look() -> tuple[int | None, bool]:
        return (3 if len(driven) == 3 else None), True

    assert await_request(lake.pipeline, "lake", look, gone=WORDS, waits=WORDS) == 3
    assert capsys.readouterr().err == "waiting: tables in use by compact\n"
    monkeypatch.setattr(requesting, "PATIENCE", 0.0)
    driven.clear()
    with pytest.raises(HeadgateError, match="neither happens"):
        await_request(lake.pipeline, "lake", look, gone=WORDS, waits=WORDS)


def test_a_request_is_carried_out_when_every_table_has_it(lake: Lake) -> None:
    tables = [lake.table("gold/per_minute"), lake.table("silver/good")]

    def found() -> tuple[Decision | None, bool]:
        return carried_out(lake.pipeline, lake.layout, request, tables)

    request = requests.send_request(
        lake.layout, "late_replay", {}, datetime(2026, 1, 2, tzinfo=UTC)
    )
    assert found() == (None, True)
    decided = lake.control, "late_replay", request.document, at(events=2), request.at
    decision = append(*decided, request=request.id)
    requests.remove_request(lake.layout, request)
    for table in tables:
        assert found() == (decision, True)
        table.commit(replace(table.refresh(), kind="operation", operation=decision.number))
    assert found() == (decision, False)
    other = requests.send_request(lake.layout, "late_replay", {}, datetime(2026, 1, 3, tzinfo=UTC))
    requests.remove_request(lake.layout, other)
    assert carried_out(lake.pipeline, lake.layout, other, tables) == (None, False)
