"""What `pause` and `resume` print and write, with jobs that are only documents."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

from headgate.lake.control.driver_requests import pause, paused_since
from headgate.lake.control.ownership import Owner
from headgate.lake.storage.layout import Layout
from tests.unit.cli.conftest import Ask, last_object
from tests.unit.insight.ledger.conftest import Lake
from tests.unit.supervision.conftest import lease, report

OfLake = tuple[str, str, str]
NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)


@pytest.fixture
def stopped(lake: Lake) -> Layout:
    lease(lake.layout, Owner.here(), released=True)
    return lake.layout


@pytest.fixture
def running(lake: Lake) -> Callable[[datetime | None], Layout]:
    """A job that has just reported whether it is paused."""

    def says(paused: datetime | None) -> Layout:
        lease(lake.layout, Owner.here(), epoch=3, renewed=datetime.now(UTC))
        report(lake.layout, "fused", epoch=3, n=2, paused=paused)
        return lake.layout

    return says


def test_pause_and_resume(ask: Ask, of_lake: OfLake, stopped: Layout) -> None:
    code, out, _ = ask("pause", *of_lake)
    assert code == 0
    assert out.splitlines()[-1].startswith(f"headgate resume {of_lake[0]}")
    since = paused_since(stopped)
    assert since is not None
    again = last_object(ask("pause", *of_lake, "--json")[1])
    said = {"pipeline": "tiny", "paused": since.isoformat(), "state": "stopped"}
    assert again == {"schema": 1, **said}
    code, out, _ = ask("resume", *of_lake)
    assert code == 0
    assert "resumed; it was paused since" in out
    assert f"it does not run: headgate start {of_lake[0]}" in out
    assert paused_since(stopped) is None
    assert ask("resume", *of_lake)[1] == "tiny: not paused\n"
    assert last_object(ask("resume", *of_lake, "--json")[1])["was_paused"] is None


def test_a_pause_of_a_dead_pipeline_says_that_it_is_dead(
    ask: Ask, of_lake: OfLake, lake: Lake
) -> None:
    gone = Owner(os.getpid(), Owner.here().host, 0.0)  # an earlier process with the same pid
    lease(lake.layout, gone, renewed=datetime.now(UTC))
    code, out, err = ask("pause", *of_lake)
    assert code == 0
    assert "does not run (DEAD" in err
    assert f"headgate start {of_lake[0]}" in err
    assert paused_since(lake.layout) is not None
    assert f"headgate resume {of_lake[0]}" in out


@pytest.mark.parametrize("verb", ["pause", "resume"])
def test_a_mistyped_root_is_not_made(ask: Ask, of_lake: OfLake, verb: str, tmp_path: Path) -> None:
    code, _, err = ask(verb, of_lake[0], "--root", "elsewhere")
    assert code == 1
    assert "has never run under" in err
    assert not (tmp_path / "elsewhere").exists()


def test_run_once_refuses_and_says_what_ends_the_pause(
    ask: Ask, of_lake: OfLake, stopped: Layout
) -> None:
    pause(stopped, NOON)
    code, _, err = ask("run", *of_lake, "--once")
    assert code == 9
    assert "tiny is PAUSED since 2026-05-04 12:00:00Z" in err
    assert f"headgate resume {of_lake[0]}" in err


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["run", "start", "restart"])
def test_a_start_says_loudly_that_it_is_paused(
    ask: Ask, of_lake: OfLake, stopped: Layout, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from headgate.cli.lifecycle import background, run
    from headgate.supervision import local

    pause(stopped, NOON)
    monkeypatch.setattr(background, "_require_startable", lambda *_: None)
    monkeypatch.setattr(run, "check_startable", lambda *_, **__: None)
    monkeypatch.setattr(local, "launch", lambda *_: local.Started(1))
    monkeypatch.setattr(run, "_drive", lambda *_: SimpleNamespace(left=None))
    code, _, err = ask(verb, *of_lake)
    assert code == 0
    assert "tiny is PAUSED since 2026-05-04 12:00:00Z" in err
    assert f"headgate resume {of_lake[0]}" in err


def test_status_and_list_of_a_paused_job(
    ask: Ask, of_lake: OfLake, running: Callable[[datetime | None], Layout]
) -> None:
    pause(running(NOON), NOON)
    code, out, _ = ask("status", *of_lake)
    assert code == 0
    assert "paused since 2026-05-04 12:00:00Z: it reads no new data, until:" in out
    document = last_object(ask("status", *of_lake, "--json")[1])
    assert (document["state"], document["paused"]) == ("paused", NOON.isoformat())
    assert document["jobs"][0]["paused"] == NOON.isoformat()
    listed = last_object(ask("list", *of_lake[1:], "--json")[1])["pipelines"]
    assert {p["name"]: p["state"] for p in listed}["tiny"] == "paused"
    assert "paused since 2026-05-04 12:00:00Z" in ask("list", *of_lake[1:])[1]


def test_a_pause_that_was_asked_for_is_not_there_yet(
    ask: Ask, of_lake: OfLake, running: Callable[[datetime | None], Layout]
) -> None:
    pause(running(None), NOON)
    assert "after its current batch" in ask("status", *of_lake)[1]
    assert last_object(ask("status", *of_lake, "--json")[1])["state"] == "running"


def test_a_stopped_pipeline_stays_paused(ask: Ask, of_lake: OfLake, stopped: Layout) -> None:
    pause(stopped, NOON)
    document = last_object(ask("status", *of_lake, "--json")[1])
    assert (document["state"], document["paused"]) == ("stopped", NOON.isoformat())
    assert "stopped, paused since 2026-05-04 12:00:00Z" in ask("list", *of_lake[1:])[1]
