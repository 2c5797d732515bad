"""What `upgrade` waits for, and what it leaves behind if it fails."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from headgate.cli.lifecycle import rolling_back
from headgate.declaration.load import load
from headgate.errors import HeadgateError
from headgate.history.savepoints.declarations import keep_declaration
from headgate.history.savepoints.errors import SavepointError
from headgate.history.savepoints.resets import ResetTarget
from headgate.history.savepoints.store import savepoints
from headgate.lake.control.driver_requests import stop_asked
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.extending import extend
from headgate.lake.tables.table import Table
from headgate.supervision import local
from headgate.supervision.local import NotAliveError
from tests.support.decisions import reset_to
from tests.support.declared import files_of
from tests.unit.cli.conftest import Ask, last_object
from tests.unit.history.savepoints.conftest import NOW, begin
from tests.unit.insight.ledger.conftest import DECLARATION, SCHEMAS, Lake

OfLake = tuple[str, str, str]
EVERYTHING = ("bronze/events", "silver/good", "gold/per_minute")


@dataclass
class Jobs:
    """Stands in for a pipeline's jobs. Each look at them finds the next of ``states``; the last one
    stays. ``declaration`` is the digest of the kept declaration."""

    states: list[str] = field(default_factory=lambda: ["running"])
    rebuilt: tuple[str, ...] = ("gold/per_minute",)
    extended: tuple[str, ...] = ()
    declaration: str = "old"
    ran: str | bool = True  # a text: an operation held the tables
    launched: list[list[str]] = field(default_factory=list)

    def launch(self, _: Layout, __: Path, ___: str, options: list[str], *____: object) -> int:
        self.launched.append(options)
        return 1

    def state(self, _: object) -> str:
        return self.states.pop(0) if self.states[1:] else self.states[0]

    def stopped(self) -> tuple[SimpleNamespace, ...]:
        operation = self.ran if isinstance(self.ran, str) else None
        return (SimpleNamespace(operation=operation),) if self.ran else ()

    def found(self, *_: object) -> SimpleNamespace:
        return SimpleNamespace(
            action="rebuild",
            declaration=self.declaration,
            engine_changed=False,
            engine="",
            tables=(),
            loads=(),
            to_rebuild=lambda: self.rebuilt,
            to_change=lambda: (*self.rebuilt, *self.extended),
        )


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Jobs:
    jobs = Jobs()
    (tmp_path / "landing").mkdir(exist_ok=True)
    monkeypatch.setattr(local, "stop", lambda _: jobs.stopped())
    monkeypatch.setattr("headgate.cli.startable.require_machine", lambda _: None)
    monkeypatch.setattr(local, "kill", lambda _: ())
    monkeypatch.setattr(local, "launch", jobs.launch)
    monkeypatch.setattr("headgate.cli.lifecycle.upgrade.probe", lambda *_: ())
    monkeypatch.setattr("headgate.cli.lifecycle.upgrade.overall_state", jobs.state)
    monkeypatch.setattr("headgate.cli.lifecycle.upgrade.deployment_of", jobs.found)
    monkeypatch.setattr("headgate.cli.lifecycle.upgrade.POLL_EVERY", 0.01)
    return jobs


@pytest.fixture
def impatient() -> tuple[str, str]:
    return "--patience", "0.2"


def test_nothing_is_stopped_where_no_driver_can_start(
    ask: Ask, of_lake: OfLake, jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: object) -> None:
        raise HeadgateError("Java: none", "install it", code=8)

    monkeypatch.setattr("headgate.cli.startable.require_machine", refuse)
    monkeypatch.setattr(local, "stop", lambda _: pytest.fail("it stops the pipeline"))
    code, _, err = ask("upgrade", *of_lake)
    assert (code, jobs.launched) == (8, [])
    assert "Java: none" in err


def test_a_stop_by_another_process_is_not_rolled_back(
    ask: Ask, of_lake: OfLake, lake: Lake, jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    def probe(*_: object) -> tuple[SimpleNamespace, ...]:
        return (SimpleNamespace(epoch=1 + len(jobs.launched), is_alive=False, operation=None),)

    monkeypatch.setattr("headgate.cli.lifecycle.upgrade.probe", probe)
    monkeypatch.setattr("headgate.cli.lifecycle.upgrade.stop_requested", lambda *_: True)
    monkeypatch.setattr(local, "kill", lambda _: pytest.fail("it rolls back"))
    jobs.states = ["stopped"]
    code, _, err = ask("upgrade", *of_lake)
    assert (code, jobs.launched) == (7, [["--apply"]])
    assert "another process has stopped the pipeline; nothing was rolled back" in err
    assert f"savepoint before it: {savepoints(lake.layout)[0].id}" in err


def test_an_operation_that_held_the_tables_is_no_driver(
    ask: Ask, of_lake: OfLake, jobs: Jobs
) -> None:
    jobs.ran, jobs.rebuilt = "compact", ()
    code, out, err = ask("upgrade", *of_lake, "--json")
    assert code == 0, err
    assert not last_object(out)["running"]


def test_an_error_of_the_machine_is_rolled_back_too(
    ask: Ask, of_lake: OfLake, jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    def launch(*given: Any) -> int:
        jobs.launched.append(given[3])
        if "--apply" in given[3]:
            raise OSError(28, "No space left on device")
        return 1

    restored: list[object] = []
    monkeypatch.setattr(rolling_back, "restore_in_place", lambda *_, **__: restored.append(1))
    monkeypatch.setattr(local, "launch", launch)
    code, _, err = ask("upgrade", *of_lake)
    assert (code, restored) == (7, [1])
    assert "rolled back to savepoint" in err
    assert [*jobs.launched[-1]][:1] == ["--declared-as"]


def test_nothing_is_stopped_where_no_savepoint_can_be_taken(
    ask: Ask, of_lake: OfLake, empty_lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While tables await a reset, no savepoint can be taken as the way back, so nothing begins."""
    lake = empty_lake
    Path(files_of(lake.pipeline).path).mkdir(parents=True)
    reset_to(lake.control, {"gold/per_minute": ResetTarget()}, NOW)
    done: list[Any] = []
    for verb in ("stop", "launch"):
        monkeypatch.setattr(local, verb, lambda *given: done.append(given))
    code, _, err = ask("upgrade", *of_lake)
    assert code == 6
    assert "a reset is not finished" in err
    assert "gold/per_minute must still be reset or rebuilt" in err
    assert "headgate start" in err
    assert done == []


def test_where_bronze_has_no_batch_none_is_waited_for(
    ask: Ask, of_lake: OfLake, empty_lake: Lake, jobs: Jobs
) -> None:
    jobs.rebuilt = EVERYTHING
    code, out, _ = ask("upgrade", *of_lake, "--json")
    assert code == 0
    assert last_object(out)["running"] is True
    assert jobs.launched == [["--apply"]]


@pytest.mark.slow
@pytest.mark.parametrize(("state", "code"), [("running", 7), ("paused", 0)])
def test_a_batch_that_bronze_had_is_waited_for_unless_it_takes_in_none(
    ask: Ask,
    of_lake: OfLake,
    lake: Lake,
    jobs: Jobs,
    impatient: Any,
    state: str,
    code: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After the launch the rebuild is empty, as it is until the source has been read again."""
    jobs.rebuilt, jobs.states = EVERYTHING, [state]
    monkeypatch.setattr(
        "headgate.cli.lifecycle.rolling_back.restore_in_place", lambda *_, **__: None
    )

    def launch(*_: object) -> int:
        begin(lake, EVERYTHING)
        return 1

    monkeypatch.setattr(local, "launch", launch)
    jobs.declaration = ""
    ended, _, err = ask("upgrade", *of_lake, *impatient, "--json")
    assert ended == code
    if code:
        assert "no progress in 0 s: bronze/events" in err


@pytest.mark.slow
@pytest.mark.parametrize("is_done", [False, True])
def test_tables_that_get_fields_are_waited_for_and_go_back_with_bronze(
    ask: Ask,
    of_lake: OfLake,
    lake: Lake,
    jobs: Jobs,
    impatient: Any,
    monkeypatch: pytest.MonkeyPatch,
    is_done: bool,
) -> None:
    jobs.rebuilt, jobs.extended = (), EVERYTHING
    restored: list[bool] = []

    def restore(*_: object, reread: bool) -> None:
        restored.append(reread)

    def define(path: str, definition: str) -> None:
        table = Table(lake.layout.storage, path, pipeline="tiny")
        extend(table, table.handle.schema(), definition, NOW)

    def launch(*_: object) -> int:
        for path in EVERYTHING if is_done else ():
            define(path, lake.pipeline.definitions[path])
        return 1

    for path in EVERYTHING:
        define(path, "the one before")
    monkeypatch.setattr("headgate.cli.lifecycle.rolling_back.restore_in_place", restore)
    monkeypatch.setattr(local, "launch", launch)
    code, _, err = ask("upgrade", *of_lake, *impatient, "--json")
    assert (code, restored) == ((0, []) if is_done else (7, [True]))
    assert is_done or "no progress in 0 s: bronze/events, silver/good, gold/per_minute" in err


@pytest.mark.slow
def test_a_job_that_is_silent_for_a_while_is_waited_for(
    ask: Ask, of_lake: OfLake, lake: Lake, jobs: Jobs, impatient: Any
) -> None:
    jobs.states = ["stale", "stale", "running"]
    assert ask("upgrade", *of_lake, "--json")[0] == 0
    jobs.states = ["stale"]
    code, _, err = ask("upgrade", *of_lake, *impatient, "--json")
    assert code == 7
    assert "its job is stale" in err


@pytest.mark.slow
def test_it_says_how_the_old_declaration_comes_back(
    ask: Ask, of_lake: OfLake, lake: Lake, jobs: Jobs
) -> None:
    jobs.states = ["dead"]
    code, _, err = ask("upgrade", *of_lake, "--json")
    file = lake.pipeline.file
    assert code == 7
    assert jobs.launched == [["--apply"], ["--declared-as", "old"]]
    assert f"rolled back to savepoint {savepoints(lake.layout)[0].id}: its job is dead" in err
    assert "the old declaration is started again" in err
    assert f"headgate plan {file} --deployed > {file}.deployed && mv {file}.deployed {file}" in err
    jobs.ran = False
    assert "the old declaration is not running, as before" in ask("upgrade", *of_lake, "--json")[2]


def test_no_supervisor_starts_what_is_rolled_back(
    ask: Ask, of_lake: OfLake, lake: Lake, jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []
    jobs.states, jobs.ran = ["dead"], False
    monkeypatch.setattr(local, "kill", lambda layout: asked.append(stop_asked(layout) is not None))
    assert ask("upgrade", *of_lake, "--json")[0] == 7
    assert asked == [True]


def test_a_rollback_without_a_start_is_not_reported_as_started(
    ask: Ask, of_lake: OfLake, lake: Lake, jobs: Jobs
) -> None:
    jobs.states, jobs.declaration = ["dead"], ""
    err = ask("upgrade", *of_lake, "--json")[2]
    assert jobs.launched == [["--apply"]]
    assert "started again" not in err
    assert "nothing runs: the old declaration is not kept" in err


@pytest.mark.parametrize(
    ("refuses", "stopped"),
    [("kill", "may still be at work"), ("restore", "the pipeline is stopped")],
)
def test_a_way_back_that_is_refused_names_the_savepoint_and_what_to_type(
    ask: Ask,
    of_lake: OfLake,
    lake: Lake,
    jobs: Jobs,
    monkeypatch: pytest.MonkeyPatch,
    refuses: str,
    stopped: str,
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise SavepointError("the source is gone", remedy="find it")

    jobs.states, jobs.rebuilt = ["dead"], EVERYTHING
    module = local if refuses == "kill" else rolling_back
    monkeypatch.setattr(module, {"kill": "kill", "restore": "restore_in_place"}[refuses], refuse)
    code, _, err = ask("upgrade", *of_lake, "--json")
    saved = savepoints(lake.layout)[0].id
    assert code == 7
    assert "its job is dead; and the rollback to savepoint" in err
    assert f"{saved} is not finished: the source is gone" in err
    assert stopped in err
    assert f"headgate savepoint restore {of_lake[0]} {saved} --reread" in err


def test_an_old_declaration_that_does_not_start_leaves_the_tables_restored(
    ask: Ask, of_lake: OfLake, lake: Lake, jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    def launch(_: Layout, __: Path, ___: str, options: list[str], *____: object) -> int:
        if "--declared-as" in options:
            raise NotAliveError("it ended without a word", remedy="log: run.log")
        return 1

    jobs.states = ["dead"]
    monkeypatch.setattr(local, "launch", launch)
    code, _, err = ask("upgrade", *of_lake, "--json")
    assert code == 7
    assert "the tables are restored, and the pipeline is stopped" in err
    assert "--deployed" in err
    assert f"then headgate start {of_lake[0]}" in err


@pytest.fixture
def deployed(tmp_path: Path) -> OfLake:
    """PIPELINE and --root of tables that were created from a declaration with a comment. The file
    has another window now, and no comment."""
    file = tmp_path / "tiny.yml"
    file.write_text(f"# as it was\n{DECLARATION}")
    before = load(file)
    layout = Layout.of(str(tmp_path / "lake"), "tiny")
    for path, digest in before.definitions.items():
        parts = [("final", pa.bool_())] if path.startswith("gold/") else []
        table = Table(layout.storage, path, pipeline="tiny")
        table.create(pa.schema([*SCHEMAS[path], *parts]), digest, time_column="time")
    keep_declaration(layout, before)
    file.write_text(before.text.replace("1 minute", "5 minutes").replace("# as it was", ""))
    return str(file), "--root", str(tmp_path / "lake")


def test_the_deployed_declaration_is_printed_as_it_was_written(
    ask: Ask, deployed: OfLake, tmp_path: Path
) -> None:
    code, out, _ = ask("plan", *deployed, "--deployed")
    assert (code, out) == (0, f"# as it was\n{DECLARATION}")
    document = last_object(ask("plan", *deployed, "--deployed", "--json")[1])
    assert document["text"] == out
    Path(deployed[0]).write_text(out)
    assert document["digest"] == load(Path(deployed[0])).digest


def test_one_that_is_not_kept_is_not_there(ask: Ask, deployed: OfLake, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "lake" / "tiny" / "_headgate" / "declarations")
    code, out, err = ask("plan", *deployed, "--deployed")
    assert (code, out) == (1, "")
    assert "no declaration is kept" in err


@pytest.mark.slow
def test_both_declarations_log_as_it_is_asked(ask: Ask, of_lake: OfLake, jobs: Jobs) -> None:
    jobs.states = ["dead"]
    assert ask("upgrade", *of_lake, "--log-format", "json")[0] == 7
    logs = ["--log-format", "json"]
    assert jobs.launched == [["--apply", *logs], ["--declared-as", "old", *logs]]
