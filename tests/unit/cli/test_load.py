"""``headgate load``, without a driver: what is refused, listed, held and ended."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from headgate.cli.load_following import Speed, progress_in_words, require_done
from headgate.errors import HeadgateError
from headgate.flow.sources.files.log import FilesLog
from headgate.flow.sources.loading import LoadPlan
from headgate.history.loads import requests
from headgate.history.loads.requests import LoadRequest, LoadState
from headgate.lake.control.ownership import Owner
from headgate.lake.control.requests import send_request
from headgate.lake.tables.decisions import LOAD
from headgate.lake.tables.load import Load
from headgate.lake.tables.payloads.bronze import BronzePayload
from tests.support.loads import begin_load, change_load, take_in_loads, wishes
from tests.unit.cli.conftest import Ask, last_object
from tests.unit.insight.ledger.conftest import Lake
from tests.unit.supervision.conftest import lease

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
PLAN = LoadPlan({"sequence": 0}, {"sequence": 4}, "4 files of a", "files")
STATE = LoadState("l-1", "4 files of a", "files", "reading", "", 1, 4, 1_500, "me", "events")


def keep(lake: Lake, id_: str, **more: str) -> LoadRequest:
    request = LoadRequest(id_, "events", PLAN, "me", NOW, **more)  # type: ignore[arg-type]
    return begin_load(lake.layout, lake.pipeline.name, request)


def brought(lake: Lake, id_: str, files: int) -> None:
    """Commit to bronze that it has the first ``files`` files of a load."""
    bronze = lake.table("bronze/events")
    state = bronze.refresh()
    has = Load(id_, 1, state.n, {"sequence": files}, files)
    payload = replace(BronzePayload.of(state), loads=(has,))
    bronze.commit(replace(state.held("fence", bronze.epoch), payload=payload))


def test_a_pipeline_without_loads_says_how_to_begin_one(
    ask: Ask, lake: Lake, of_lake: tuple[str, str, str]
) -> None:
    code, out, _ = ask("load", *of_lake)
    assert code == 0
    assert "has no loads" in out
    assert "--files archive" in out
    assert last_object(ask("load", *of_lake, "--json")[1])["loads"] == []


def test_loads_are_listed_with_what_stopped_them(
    ask: Ask, lake: Lake, of_lake: tuple[str, str, str]
) -> None:
    keep(lake, "l-1", wish="done")
    keep(lake, "l-2", wish="stopped", why="a.json has vanished")
    code, out, _ = ask("load", *of_lake)
    assert code == 0
    assert "l-2: a.json has vanished" in out
    loads = last_object(ask("load", *of_lake, "--json")[1])["loads"]
    assert all("source" not in each for each in loads)
    states = [(each["id"], each["state"]) for each in loads]
    assert states == [("l-1", "taken back"), ("l-2", "stopped")], "bronze has nothing of them"


def test_a_load_is_held_and_ended(ask: Ask, lake: Lake, of_lake: tuple[str, str, str]) -> None:
    keep(lake, "l-1")
    code, out, _ = ask("load", *of_lake, "--pause")
    assert code == 0
    assert "load l-1 (paused): [....................] 0 of 4 files, 0 records" in out
    assert "--resume" in out
    code, out, _ = ask("load", *of_lake, "--cancel")
    assert code == 0
    assert "is ended after 0 records, which stay" in out
    code, _, err = ask("load", *of_lake, "--resume")
    assert code == 2
    assert "no load is open" in err


def test_a_load_that_waits_is_ended_although_its_clock_was_ahead(
    ask: Ask, lake: Lake, of_lake: tuple[str, str, str]
) -> None:
    """Else the driver would decide on the change before the load, and then begin the load."""
    load = LoadRequest("l-1", "events", PLAN, "me", datetime.now(UTC) + timedelta(hours=1))
    send_request(lake.layout, LOAD, load.document(), load.at, load.id)
    assert ask("load", *of_lake, "--cancel")[0] == 0
    assert wishes(lake.layout, lake.pipeline.name) == {"l-1": "cancelled"}


def test_a_load_that_was_taken_back_goes_on_where_it_is_named(
    ask: Ask, lake: Lake, of_lake: tuple[str, str, str]
) -> None:
    keep(lake, "l-1", wish="done")
    keep(lake, "l-2", wish="cancelled")
    assert ask("load", *of_lake, "--resume", "--no-wait")[0] == 2
    assert ask("load", *of_lake, "--resume", "--id", "l-2", "--no-wait")[0] == 2
    assert ask("load", *of_lake, "--resume", "--id", "l-1", "--no-wait")[0] == 0
    assert wishes(lake.layout, lake.pipeline.name) == {"l-1": "open", "l-2": "cancelled"}


def test_of_several_loads_one_is_named(ask: Ask, lake: Lake, of_lake: tuple[str, str, str]) -> None:
    keep(lake, "l-1")
    keep(lake, "l-2", wish="paused")
    code, _, err = ask("load", *of_lake, "--pause")
    assert code == 2
    assert "2 loads are open; say which: --id" in err
    assert ask("load", *of_lake, "--cancel", "--id", "l-1")[0] == 0
    assert ask("load", *of_lake, "--resume", "--id", "l-2", "--no-wait")[0] == 0
    assert wishes(lake.layout, lake.pipeline.name) == {"l-1": "cancelled", "l-2": "open"}


def test_a_load_that_is_not_open_is_no_other(
    ask: Ask, lake: Lake, of_lake: tuple[str, str, str]
) -> None:
    keep(lake, "l-1", wish="done")
    brought(lake, "l-1", 4)
    keep(lake, "l-2", wish="cancelled")
    keep(lake, "l-3", wish="paused")
    for id_, said in (
        ("l-1", "the load l-1 is done"),
        ("l-2", "the load l-2 is cancelled"),
        ("l-4", "it has no load l-4"),
    ):
        code, _, err = ask("load", *of_lake, "--resume", "--id", id_)
        assert (code, f"tiny: {said}" in err) == (2, True), err
    assert wishes(lake.layout, lake.pipeline.name)["l-3"] == "paused"


def test_files_of_other_times_are_not_said_to_be_missing(
    ask: Ask, lake: Lake, of_lake: tuple[str, str, str], tmp_path: Path
) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "a.json").write_text("{}")
    os.utime(tmp_path / "old" / "a.json", (NOW.timestamp(), NOW.timestamp()))
    code, _, err = ask("load", *of_lake, "--files", "old/a.json", "--to", "2026-01-01")
    assert code == 3
    assert "1 file of old/a.json: none was written between --from and --to" in err
    assert "from 2026-05-04 12:00:00Z to 2026-05-04 12:00:00Z" in err
    assert requests.all_loads(lake.layout, lake.pipeline.name) == ()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--files", "a", "--pause"), 2, "begin a load, or one of"),
        (("--pause", "--cancel"), 2, "begin a load, or one of"),
        (("--files", "nothing/**"), 3, "no file matches nothing/**"),
        (("--kafka", "orders"), 2, "reads files"),
        (("--files", "a", "--source", "x"), 2, "tiny has no source 'x'"),
        (("--files", "a", "--from", "soon"), 2, "neither a time"),
        (("--files", "a", "--from", "2026-02-01", "--to", "2026-01-01"), 2, "not after --from"),
        (("--files", "a", "--share", "0"), 2, "0.01"),
        (("--files", "a", "--id", "l-1"), 2, "it belongs to --pause"),
        (("--id", "l-1"), 2, "it belongs to --pause"),
        (("--from", "2026-01-01"), 2, "Invalid value for --from: it is only for a new load"),
        (("--resume", "--rate", "9"), 2, "Invalid value for --rate: it is only for a new load"),
        (("--share", "0.2"), 2, "Invalid value for --share: it is only for a new load"),
    ],
)
def test_what_cannot_be_loaded_is_refused(
    ask: Ask,
    lake: Lake,
    of_lake: tuple[str, str, str],
    arguments: tuple[str, ...],
    code: int,
    said: str,
) -> None:
    found, _, err = ask("load", *of_lake, *arguments)
    assert (found, said in err) == (code, True), err
    assert requests.all_loads(lake.layout, lake.pipeline.name) == ()


def test_files_are_recorded_for_the_load_alone(
    ask: Ask, lake: Lake, of_lake: tuple[str, str, str], tmp_path: Path
) -> None:
    for name in ("b.json", "a.json", "_hidden.json", "c.csv"):
        (tmp_path / "old" / "2025").mkdir(parents=True, exist_ok=True)
        (tmp_path / "old" / "2025" / name).write_text("{}")
    code, out, err = ask(
        *("load", *of_lake, "--files", "old/**/*.json", "--no-wait", "--note", "n", "--json")
    )
    assert code == 0, err
    state = last_object(out)
    assert (state["state"], state["total"], state["unit"]) == ("reading", 2, "files")
    assert state["what"] == "2 files of old/**/*.json"
    assert state["passed_over"] == {}
    assert state["reason"].endswith(": n")
    (request,) = requests.all_loads(lake.layout, lake.pipeline.name)
    assert request.plan.details["folder"] == str(tmp_path / "old")


def test_a_file_that_was_passed_over_is_named(
    ask: Ask, lake: Lake, of_lake: tuple[str, str, str], tmp_path: Path
) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "a.json").write_text("{}")
    assert ask("load", *of_lake, "--files", "old", "--no-wait")[0] == 0
    (request,) = requests.all_loads(lake.layout, lake.pipeline.name)
    folder = requests.load_folder(lake.layout, request.id)
    log = FilesLog.of(folder, lake.pipeline.name, request.source)
    log.load()
    aside = [replace(file, status="set_aside", reason="it is cut off") for file in log.files]
    log.append(aside, NOW)
    code, out, _ = ask("load", *of_lake, "--pause")
    assert code == 0
    assert "passed over: a.json: it is cut off" in out


def test_a_line_says_how_far_it_is() -> None:
    assert progress_in_words(STATE) == "[#####...............] 1 of 4 files, 1,500 records"
    ends = NOW + timedelta(hours=1)
    assert progress_in_words(STATE, ends).endswith("read by about 2026-05-04 13:00:00Z")


def test_the_expected_end_does_not_move_while_a_step_runs() -> None:
    speed, ends = Speed(), NOW + timedelta(seconds=30)
    seen = [(0, 1), (9, 1), (10, 2), (15, 2), (29, 2), (30, 2), (40, 3)]
    found = [speed.expected_end(NOW + timedelta(seconds=at), read, 4) for at, read in seen]
    assert found == [None, None, ends, ends, ends, None, NOW + timedelta(seconds=60)]


def test_a_stopped_load_is_an_error_with_two_ways_on() -> None:
    require_done(STATE)
    stopped = LoadState(**{**vars(STATE), "state": "stopped", "why": "x is gone"})
    with pytest.raises(HeadgateError, match="after 1,500 records: x is gone") as refused:
        require_done(stopped)
    assert refused.value.exit_code == 3
    assert "--resume" in refused.value.remedy
    assert "--cancel" in refused.value.remedy


def test_status_names_a_load_that_is_stopped(
    ask: Ask, lake: Lake, of_lake: tuple[str, str, str]
) -> None:
    lease(lake.layout, Owner.here(), released=True)
    keep(lake, "l-1")
    assert last_object(ask("status", *of_lake, "--json")[1])["stopped_loads"] == []
    keep(lake, "l-2", wish="stopped", why="a.json has vanished")
    code, out, _ = ask("status", *of_lake)
    assert code == 0
    assert "load l-2, 4 files of a, is stopped: a.json has vanished" in out
    assert "headgate load" in out
    (stopped,) = last_object(ask("status", *of_lake, "--json")[1])["stopped_loads"]
    assert (stopped["id"], stopped["why"]) == ("l-2", "a.json has vanished")


@pytest.mark.slow
def test_bronze_is_read_again_only_with_what_it_has_of_loads(
    ask: Ask, lake: Lake, of_lake: tuple[str, str, str], tmp_path: Path
) -> None:
    (tmp_path / "old").mkdir()
    for name in ("a.json", "b.json"):
        (tmp_path / "old" / name).write_text("{}")
    for _ in range(2):
        assert ask("load", *of_lake, "--files", "old", "--no-wait")[0] == 0
    take_in_loads(lake.layout, lake.pipeline.name)
    request, _ = requests.all_loads(lake.layout, lake.pipeline.name)
    brought(lake, request.id, 1)
    change_load(lake.layout, lake.pipeline.name, request, wish="cancelled")
    text = lake.pipeline.file.read_text()
    lake.pipeline.file.write_text(text.replace("amount: int}", "amount: int, more: int}"))

    (tmp_path / "old" / "b.json").unlink()  # bronze has not read it
    code, out, _ = ask("plan", *of_lake)
    assert code == 0
    assert "then what bronze has of 1 load of history is read again" in out
    deployed = last_object(ask("plan", *of_lake, "--json")[1])["deployed"]
    assert deployed["action"] == "reread"
    of_load = {"id": request.id, "what": "2 files of old", "gone": None, "folds": False}
    assert deployed["loads"] == [of_load]

    (tmp_path / "old" / "a.json").unlink()
    code, out, _ = ask("plan", *of_lake)
    assert "is read again" not in out
    assert f"load {request.id}: {tmp_path}/old/a.json" in out.replace("\n", "")
    assert last_object(ask("plan", *of_lake, "--json")[1])["deployed"]["action"] == "refuse"
    code, _, err = ask("upgrade", *of_lake)
    assert code == 2
    assert f"{tmp_path}/old/a.json: the file was recorded as sequence 1 and has vanished" in err
