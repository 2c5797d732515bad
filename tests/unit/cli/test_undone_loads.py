"""Loads that are not done. Gold lacks some of their rows, so a command that could suggest that gold
is complete says so, and what to type."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest

from headgate.cli import load_following
from headgate.cli.lifecycle import per_layer
from headgate.cli.lifecycle import run as verb
from headgate.driver.task import Task
from headgate.history.loads import requests
from headgate.history.loads.requests import LoadRequest
from headgate.lake.control.driver_requests import pause
from headgate.lake.control.ownership import LAYERS, Owner
from headgate.lake.storage.layout import Layout
from headgate.supervision import local
from tests.support.loads import change_load
from tests.unit.cli import test_upgrade
from tests.unit.cli.conftest import Ask, last_object
from tests.unit.cli.test_load_hindrance import NOW, keep, read
from tests.unit.cli.test_upgrade import EVERYTHING, Jobs, OfLake
from tests.unit.history.savepoints.conftest import begin
from tests.unit.insight.ledger.conftest import Lake
from tests.unit.supervision.conftest import lease

LACKS = "load l-1, 4 files of a: 0 of 4 files are read; gold lacks the rest\n"
WAITS = "load l-1, 4 files of a, is read once bronze is rebuilt; until then readers see the old"

Act = Callable[[Layout, LoadRequest], object]

jobs = test_upgrade.jobs


@pytest.fixture
def load(lake: Lake) -> LoadRequest:
    lease(lake.layout, Owner.here(), released=True)
    return keep(lake)


def test_status_says_that_gold_lacks_rows_of_an_open_load(
    ask: Ask, lake: Lake, of_lake: OfLake, load: LoadRequest
) -> None:
    assert f"{LACKS}headgate load {of_lake[0]}" in ask("status", *of_lake)[1]
    (found,) = last_object(ask("status", *of_lake, "--json")[1])["open_loads"]
    assert (found["id"], found["state"], found["total"]) == ("l-1", "reading", 4)
    read(lake, load.id, 4)
    assert "is read; gold may lack its late rows" in ask("status", *of_lake)[1]
    change_load(lake.layout, lake.pipeline.name, load, wish="paused")
    out = ask("status", *of_lake)[1]
    assert "load l-1, 4 files of a, is paused: 4 of 4 files are read" in out
    assert "--resume" in out.splitlines()[-1]
    change_load(lake.layout, lake.pipeline.name, load, wish="done")
    assert "l-1" not in ask("status", *of_lake)[1]


def test_a_load_waits_while_bronze_is_rebuilt_and_readers_see_the_old_rows(
    ask: Ask, lake: Lake, of_lake: OfLake, load: LoadRequest
) -> None:
    """The present bronze has the whole load, but the rebuild will replace it. So the load waits to
    be read again; it is not folding late rows."""
    read(lake, load.id, 4)
    begin(lake, EVERYTHING[1:])
    assert WAITS not in ask("status", *of_lake)[1]
    begin(lake, EVERYTHING)
    assert WAITS in ask("status", *of_lake)[1]
    (found,) = last_object(ask("load", *of_lake, "--json")[1])["loads"]
    assert (found["state"], found["read"], found["rows"]) == ("waiting", 0, 0)


def paused(layout: Layout, _: LoadRequest) -> None:
    pause(layout, NOW)


def stopped(layout: Layout, load: LoadRequest) -> None:
    change_load(layout, "tiny", load, wish="stopped", why="a.json is gone")


def done(layout: Layout, load: LoadRequest) -> None:
    change_load(layout, "tiny", load, wish="done")


def nothing(_: Layout, __: LoadRequest) -> None:
    """Change nothing, as if the driver was asked to end or died."""


def driving(act: Callable[..., object]) -> Callable[..., SimpleNamespace]:
    """Runs ``act`` in place of a driver, which then has done everything."""

    def drive(*given: object) -> SimpleNamespace:
        act(*given)
        return SimpleNamespace(left=None, was_asked_to_stop=False)

    return drive


BECOMES: list[tuple[Act, int, str, str]] = [
    (done, 0, "", ""),
    (paused, 9, "the load l-1 waits: tiny is PAUSED", "headgate resume "),
    (stopped, 3, "the load l-1 is stopped after 0 records: a.json is gone", "--cancel"),
    (nothing, 130, LACKS.strip(), "run"),
]


@pytest.mark.parametrize(("act", "code", "left", "remedy"), BECOMES)
def test_a_run_that_leaves_a_load_says_why(
    ask: Ask,
    lake: Lake,
    of_lake: OfLake,
    load: LoadRequest,
    monkeypatch: pytest.MonkeyPatch,
    act: Act,
    code: int,
    left: str,
    remedy: str,
) -> None:
    monkeypatch.setattr(verb, "_prepare", lambda *_: None)
    monkeypatch.setattr(verb, "_drive", driving(lambda *_: act(lake.layout, load)))
    found, out, err = ask("run", *of_lake, "--once", "--json")
    assert found == code, err
    assert (last_object(out)["left"] or "").startswith(left)
    assert f"not done: {left}" in err or not left
    assert remedy in err


def test_a_run_ends_well_beside_a_load_that_was_stopped_before(
    ask: Ask, lake: Lake, of_lake: OfLake, load: LoadRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if bronze reads again the part of the load that it had before."""
    monkeypatch.setattr(verb, "_prepare", lambda *_: None)
    monkeypatch.setattr(verb, "_drive", driving(lambda *_: stopped(lake.layout, load)))
    change_load(
        lake.layout, lake.pipeline.name, load, wish="open", until={"sequence": 2}, then="stopped"
    )
    assert ask("run", *of_lake, "--once")[0] == 0
    change_load(lake.layout, lake.pipeline.name, load, until=None)
    assert ask("run", *of_lake, "--once")[0] == 0


@pytest.mark.parametrize("is_stopped", [False, True])
@pytest.mark.usefixtures("load")
def test_after_jobs_of_their_own_one_driver_ends_a_load(
    ask: Ask, lake: Lake, of_lake: OfLake, monkeypatch: pytest.MonkeyPatch, is_stopped: bool
) -> None:
    """Bronze's job has already ended when gold's job has the rows of the load."""
    drives: list[Task] = []
    lake.pipeline.file.write_text(f"{lake.pipeline.file.read_text()}\njobs: per_layer\n")
    monkeypatch.setattr(verb, "_prepare", lambda *_: None)
    monkeypatch.setattr(verb, "_drive", driving(lambda task, _: drives.append(task)))
    monkeypatch.setattr(per_layer, "together", lambda _: not is_stopped)
    assert ask("run", *of_lake, "--once")[0] == 130
    ends = (LAYERS, True, True, True)
    found = [(each.layers, each.once, each.only_open, each.loads) for each in drives]
    assert found == [ends] * (not is_stopped)


def test_jobs_that_are_stopped_while_their_tables_are_opened_do_not_start(
    ask: Ask, lake: Lake, of_lake: OfLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before a rebuild, one driver opens the tables for the three jobs."""
    lake.pipeline.file.write_text(f"{lake.pipeline.file.read_text()}\njobs: per_layer\n")
    opened = SimpleNamespace(left=None, was_asked_to_stop=True)
    monkeypatch.setattr(verb, "_prepare", lambda *_: None)
    monkeypatch.setattr(verb, "_drive", lambda *_: opened)
    monkeypatch.setattr(per_layer, "together", lambda _: pytest.fail("jobs are started"))
    refresh = "--full-refresh", "gold.per_minute"
    assert ask("run", *of_lake, *refresh)[0] == 0
    code, _, err = ask("run", *of_lake, *refresh, "--once")
    assert code == 130
    assert "a job was stopped before its end" in err


@pytest.mark.parametrize(("act", "code", "left", "remedy"), BECOMES)
def test_an_upgrade_of_what_did_not_run_waits_for_loads(
    ask: Ask,
    lake: Lake,
    of_lake: OfLake,
    jobs: Jobs,
    load: LoadRequest,
    monkeypatch: pytest.MonkeyPatch,
    act: Act,
    code: int,
    left: str,
    remedy: str,
) -> None:
    """The upgrade waits before it stops the pipeline again."""
    ended: list[str] = []

    def stop(layout: Layout) -> tuple[()]:
        ended.extend(each.wish for each in requests.all_loads(layout, "tiny"))
        return ()

    def is_driven(*_: object) -> bool:
        act(lake.layout, load)
        return act is not nothing

    monkeypatch.setattr(local, "stop", stop)
    monkeypatch.setattr(load_following, "_is_driven", is_driven)
    monkeypatch.setattr(load_following, "_POLL", 0.01)
    monkeypatch.setattr(load_following, "_ALONE", 0.0)
    found, out, err = ask("upgrade", *of_lake)
    (then,) = requests.all_loads(lake.layout, lake.pipeline.name)
    assert (found, ended) == (code, ["open", then.wish]), err
    assert "tiny: upgraded" in out
    assert f"not done: {left}" in err or not left
    assert remedy in err


@pytest.mark.usefixtures("load")
def test_an_upgrade_whose_rebuild_is_not_published_waits_for_no_load(
    ask: Ask, lake: Lake, of_lake: OfLake, jobs: Jobs
) -> None:
    """The upgrade ends before the rebuild is published, and readers still see the old rows."""
    jobs.ran, jobs.states, jobs.rebuilt = False, ["paused"], EVERYTHING
    begin(lake, EVERYTHING)
    code, out, err = ask("upgrade", *of_lake)
    assert code == 0, err
    assert WAITS in out


@pytest.mark.usefixtures("load", "jobs")
def test_an_upgrade_of_what_runs_names_the_loads(ask: Ask, of_lake: OfLake) -> None:
    code, out, _ = ask("upgrade", *of_lake, "--json")
    assert (code, [each["id"] for each in last_object(out)["open_loads"]]) == (0, ["l-1"])
    assert LACKS in ask("upgrade", *of_lake)[1]
