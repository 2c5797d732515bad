"""If a pause or a gate keeps a load open, the output says which of them and what to type."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from headgate.cli import load as verb
from headgate.cli import load_following as following
from headgate.cli import log_file
from headgate.cli.load_following import follow, hindrance
from headgate.driver.driver import Driver
from headgate.driver.lease import LeaseHeldError
from headgate.flow.gates import documents
from headgate.flow.sources.loading import LoadPlan
from headgate.history.loads import requests
from headgate.history.loads.requests import LoadRequest, LoadState, load_state
from headgate.lake.control.driver_requests import pause
from headgate.lake.tables.load import Load
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.supervision.logs import spark_log
from tests.support.loads import begin_load
from tests.support.waiting import wait_until
from tests.unit.cli.conftest import Ask, hold, last_object
from tests.unit.insight.ledger.conftest import Lake

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
PLAN = LoadPlan({"sequence": 0}, {"sequence": 4}, "4 files of a", "files")


def keep(lake: Lake, id_: str = "l-1") -> LoadRequest:
    request = LoadRequest(id_, "events", PLAN, "me", NOW)
    return begin_load(lake.layout, lake.pipeline.name, request)


def read(lake: Lake, id_: str, sequence: int) -> None:
    """Commit to bronze that it has read a load up to a sequence."""
    table = lake.table("bronze/events")
    state = table.refresh()
    had = Load(id_, 1, state.n + 1, {"sequence": sequence}, 40)
    payload = BronzePayload.of(state).with_load(had)
    table.commit(replace(state, kind="data", n=state.n + 1, payload=payload))


@pytest.fixture
def no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver that ends at once, because it can do nothing for a load."""

    def ended(driver: Driver) -> None:
        assert driver is not None

    monkeypatch.setattr(verb, "drive", ended)
    monkeypatch.setattr(log_file, "divert_to", spark_log)
    monkeypatch.setattr(verb, "require_machine", lambda _: None)


@pytest.mark.usefixtures("no_driver")
def test_a_load_that_a_running_driver_takes_is_reported_once(
    ask: Ask, lake: Lake, of_lake: tuple[str, str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reporter for a driver of one's own has ended before the other one begins."""
    request, telling, told = keep(lake), list[str](), list[tuple[str, ...]]()

    def follow(*_: object, is_over: Callable[[], bool] | None = None) -> LoadState:
        if is_over is None:
            told.append((*telling, "other"))
        else:
            telling.append("own")
            wait_until(is_over, "the reporter was not ended", 10)
            telling.remove("own")
        return load_state(lake.layout, lake.pipeline.name, request)

    def held(_: Driver) -> None:
        wait_until(lambda: telling == ["own"], "nobody reports", 10)
        raise LeaseHeldError("another runs", remedy="wait")

    monkeypatch.setattr(verb, "follow", follow)
    monkeypatch.setattr(verb, "drive", held)
    ask("load", *of_lake, "--resume")
    assert told == [("other",)]


@pytest.mark.usefixtures("no_driver")
def test_a_load_of_a_paused_pipeline_says_so(
    ask: Ask, lake: Lake, of_lake: tuple[str, str, str], tmp_path: Path
) -> None:
    pause(lake.layout, NOW)
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "a.json").write_text("{}")
    code, out, err = ask("load", *of_lake, "--files", "old", "--json")
    (request,) = requests.all_loads(lake.layout, lake.pipeline.name)
    assert code == 9
    assert f"the load {request.id} waits: tiny is PAUSED since 2026-05-04 12:00:00Z" in err
    assert "headgate resume " in err
    assert f"--resume --id {request.id}" in err
    assert last_object(out)["error"]["exit_code"] == 9


@pytest.mark.usefixtures("no_driver")
def test_a_load_whose_late_rows_a_gate_holds_back_says_so(
    ask: Ask, gated: Lake, of_lake: tuple[str, str, str]
) -> None:
    keep(gated)
    hold(gated)
    read(gated, "l-1", 4)
    code, _, err = ask("load", *of_lake, "--resume")
    assert code == 10
    assert "the load l-1 waits: gold/per_minute is held by its rules" in err
    assert "gate status" in err


@pytest.mark.usefixtures("no_driver")
def test_a_load_that_a_person_interrupts_is_carried_on_by_the_same_command(
    ask: Ask, lake: Lake, of_lake: tuple[str, str, str]
) -> None:
    keep(lake)
    code, _, err = ask("load", *of_lake, "--resume")
    assert code == 130
    said, again = err.splitlines()[-2:]
    assert said.startswith("load l-1: [....................] 0 of 4 files")
    assert again == f"go on: headgate load {of_lake[0]} --resume --id l-1"


def test_a_gate_is_in_the_way_once_all_is_read_and_of_the_loads_after_it(gated: Lake) -> None:
    declared, layout = gated.pipeline, gated.layout
    keep(gated)
    keep(gated, "l-2")
    hold(gated)
    assert hindrance(layout, declared, "l-1") is None
    read(gated, "l-1", 3)
    assert hindrance(layout, declared, "l-1") is None
    read(gated, "l-1", 4)
    for id_ in ("l-1", "l-2"):
        assert f"the load {id_} waits: gold/per_minute" in str(hindrance(layout, declared, id_))
    documents.let_go(layout, "per_minute")
    assert hindrance(layout, declared, "l-1") is None


def test_who_follows_a_load_is_told_of_a_pause(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "_POLL", 0)
    keep(lake)
    pause(lake.layout, NOW)
    said: list[str] = []
    follow(lake.layout, lake.pipeline, "l-1", said.append, is_over=lambda: bool(said))
    assert said == [
        "[....................] 0 of 4 files, 0 records; "
        "the load l-1 waits: tiny is PAUSED since 2026-05-04 12:00:00Z"
    ]
