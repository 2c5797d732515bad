"""What the control form does, with a launcher that records its calls."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, cast

import pytest
from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from headgate.airflow.operators.control_operator import (
    ACTIONS,
    LABELS,
    REPLAY,
    RESTORE,
    ControlOperator,
    refusal,
)
from headgate.airflow.operators.release_approval import ReleaseApproval, ReleaseOperator
from headgate.declaration.errors import DeclarationError
from headgate.declaration.files import project_folder
from headgate.declaration.load import load
from headgate.expectations.result import RuleResult
from headgate.gates import documents
from headgate.gates.documents import Hold
from headgate.jobs.errors import DefinitionChangedError
from headgate.operations import late_replay
from headgate.operations.requests import waiting
from headgate.savepoints.errors import SavepointError
from headgate.savepoints.store import create
from headgate.supervision.launcher import Stream
from headgate.tables.table import Table
from tests.unit.ledger.conftest import DECLARATION, Lake, fill


class StreamReport:
    done: ClassVar[list[str]] = []

    def launch(
        self,
        stream: Stream,
        options: Sequence[str] = (),
        variables: Mapping[str, str] | None = None,
    ) -> str:
        StreamReport.done.append(" ".join(["launch", *options]))
        return "process 1"

    def stop(self, stream: Stream) -> None:
        StreamReport.done.append("stop")


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    StreamReport.done.clear()
    file = tmp_path / "a tiny.yml"
    file.write_text(DECLARATION)
    lake = Lake(tmp_path / "lake", load(file))
    fill(lake)
    return lake


def act(lake: Lake, action: str, savepoint: str = "", table: str = "") -> str:
    root = Path(lake.layout.storage.uri("")).parent
    operator = ControlOperator(
        task_id="act",
        action=action,
        savepoint=savepoint,
        table=table,
        file=str(lake.pipeline.file),
        name="tiny",
        root=str(root),
        launcher=f"{__name__}:StreamReport",
    )
    return operator.execute(Context())


@pytest.mark.parametrize(
    ("action", "done"),
    [
        ("restart", ["stop", "launch"]),
        ("start", ["launch"]),
        ("stop", ["stop"]),
        ("savepoint", []),
        ("stop with savepoint", ["stop"]),
        ("take over", ["launch --take-over"]),
    ],
)
def test_an_action(lake: Lake, action: str, done: list[str]) -> None:
    act(lake, action)
    assert StreamReport.done == done


def test_latest_is_the_newest_when_the_restore_begins(lake: Lake) -> None:
    taken = create(lake.layout, lake.pipeline, datetime.now(UTC))
    act(lake, RESTORE, "latest")
    assert StreamReport.done == ["stop", f"launch --from-savepoint {taken.id}"]


def test_a_savepoint_that_is_none_leaves_the_stream_running(lake: Lake) -> None:
    create(lake.layout, lake.pipeline, datetime.now(UTC))
    with pytest.raises(SavepointError):
        act(lake, RESTORE, "nonsense")
    assert StreamReport.done == []


@pytest.mark.parametrize("action", ["restart", RESTORE, "stop with savepoint"])
def test_a_wrong_declaration_leaves_the_stream_running(lake: Lake, action: str) -> None:
    taken = create(lake.layout, lake.pipeline, datetime.now(UTC))
    lake.pipeline.file.write_text("pipeline: tiny\nsources: 3\n")
    with pytest.raises(DeclarationError, match=r"a tiny\.yml:2"):
        act(lake, action, taken.id if action == RESTORE else "")
    assert StreamReport.done == []


def test_tables_of_another_declaration_leave_the_stream_running(lake: Lake) -> None:
    """A restart would fail. A restore may take the tables back to this declaration."""
    file = lake.pipeline.file
    file.write_text(file.read_text().replace("count(*)", "sum(amount)"))
    with pytest.raises(DefinitionChangedError):
        act(lake, "restart")
    assert StreamReport.done == []
    create(lake.layout, lake.pipeline, datetime.now(UTC))
    act(lake, RESTORE, "latest")
    act(lake, "stop")
    assert [each.split()[0] for each in StreamReport.done] == ["stop", "launch", "stop"]


SECRET = """
publish:
  rows:
    from: gold.per_minute
    postgres: {url: 'postgresql://ann:${env:NO_SUCH}@db.internal/shop', table: sales}
"""


def test_the_form_needs_no_secrets_of_sinks(lake: Lake) -> None:
    file = lake.pipeline.file
    file.write_text(file.read_text() + SECRET)
    act(lake, "restart")
    assert StreamReport.done == ["stop", "launch"]


@pytest.mark.parametrize(
    ("action", "savepoint", "why"),
    [
        ("", "", "no action was chosen; choose one of: restart, start, "),
        ("{explode}", "", "'{explode}' is not an action"),
        (
            RESTORE,
            "",
            r"needs a savepoint.*\n/\S*/headgate savepoint list '.*a tiny\.yml' --root /",
        ),
        ("start", "latest", "'start' takes no savepoint"),
        (REPLAY, "latest", "'replay late rows' takes no savepoint"),
    ],
)
def test_what_does_not_go_together_is_refused(
    lake: Lake, action: str, savepoint: str, why: str
) -> None:
    with pytest.raises(AirflowFailException, match=why):
        act(lake, action, savepoint)
    assert StreamReport.done == []


@pytest.mark.parametrize("table", ["", "gold.per_minute", "per_minute"])
def test_late_rows_are_replayed_by_the_stream(lake: Lake, table: str) -> None:
    assert "late rows of gold.per_minute are replayed" in act(lake, REPLAY, table=table)
    assert StreamReport.done == [], "nothing is started or stopped for it"
    (request,) = waiting(lake.layout)
    assert request.name == "late_replay"
    assert {**request.document, "id": ""} == {
        "table": "per_minute",
        "from": None,
        "to": None,
        "keys": {},
        "by": "Airflow",
        "id": "",
    }


def test_no_replay_is_asked_for_that_would_have_no_effect(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The late table was made by an older version."""
    monkeypatch.setattr(late_replay, "REPLAYED", "no_such_column")
    with pytest.raises(late_replay.UnmarkedError, match="--full-refresh gold.per_minute"):
        act(lake, REPLAY)
    assert waiting(lake.layout) == ()


def test_a_table_that_is_none_is_refused_by_name(lake: Lake) -> None:
    with pytest.raises(AirflowFailException, match=r"no gold table 'gold\.x'.*gold\.per_minute"):
        act(lake, REPLAY, table="gold.x")
    assert waiting(lake.layout) == ()


def test_every_action_has_a_label() -> None:
    assert set(LABELS) == set(ACTIONS)
    assert all(refusal(each, "latest" if each == RESTORE else "") is None for each in ACTIONS)


SINCE = datetime(2026, 3, 1, 12, tzinfo=UTC)
SANE = RuleResult("sane", "critical", "hold", met=False, unexpected=3)


class Task:
    """A task instance, of which only XComs are used."""

    def __init__(self, **pushed: Any) -> None:
        self.pushed = pushed

    def xcom_push(self, key: str, value: Any) -> None:
        self.pushed[key] = value

    def xcom_pull(self, task_ids: str, key: str = "return_value") -> Any:
        return self.pushed.get(task_ids if key == "return_value" else key)


@pytest.fixture
def held(lake: Lake) -> Lake:
    """The lake, with a gold table that a gate holds."""
    file = lake.pipeline.file
    text = file.read_text()
    file.write_text(text.replace("    allowed_", "    expectations: sane\n    allowed_"))
    folder = project_folder(file) / "expectations"
    folder.mkdir()
    (folder / "sane.yml").write_text("expectations: [{id: sane, expect: events > 0}]")
    table = Table(lake.layout.storage, "gold/per_minute", pipeline=lake.pipeline.name)
    n = table.refresh().n
    documents.hold(lake.layout, Hold("per_minute", n, n + 4, SINCE, SINCE, (SANE,), operation=7))
    return lake


def of(lake: Lake) -> dict[str, str]:
    root = Path(lake.layout.storage.uri("")).parent
    return {"file": str(lake.pipeline.file), "name": "tiny", "root": str(root)}


def test_a_release_is_asked_for_and_carried_out_as_it_was_asked(held: Lake) -> None:
    task = Task()
    context = cast(Context, {"ti": task})
    asking = ControlOperator(task_id="act", action="release", **of(held))
    assert asking.execute(context) == "tiny: asks for approval"
    (asked,) = task.pushed["held"] = json.loads(json.dumps(task.pushed["held"]))
    assert (asked["title"], asked["why"]) == ("gold/per_minute", str(SANE))
    assert asked["generation"] == 0
    asked["generation"] = 2  # as after two resets
    task.pushed["approve"] = {
        "chosen_options": ["Approve"],
        "params_input": {"reason": "a real outlier"},
        "responded_by_user": {"id": "1", "name": "anna"},
    }
    done = ReleaseOperator(task_id="release", asks="act", approval="approve", **of(held))
    assert "anna released gold/per_minute, batches" in done.execute(context)
    given = documents.released(held.layout, "per_minute")
    assert given is not None
    assert (given.upto, given.by, given.reason) == (asked["upto"], "anna", "a real outlier")
    assert (given.operation, given.generation) == (7, 2), "a release is for one version alone"


@pytest.mark.parametrize("given", [{"reason": " "}, {}, None])
def test_an_approval_without_a_reason_releases_nothing(held: Lake, given: Any) -> None:
    """Airflow's API takes an answer without parameters."""
    asked = {"gate": "per_minute", "title": "gold/per_minute", "upto": 9, "log": "", "why": "x"}
    answer = {"params_input": given, "responded_by_user": None}
    task = Task(held=[asked], approve=answer)
    done = ReleaseOperator(task_id="release", asks="act", approval="approve", **of(held))
    with pytest.raises(AirflowFailException, match="without a reason.*clear the task approve"):
        done.execute(cast(Context, {"ti": task}))
    assert documents.released(held.layout, "per_minute") is None


def test_nothing_is_released_where_nothing_is_held(lake: Lake) -> None:
    asking = ControlOperator(task_id="act", action="release", **of(lake))
    with pytest.raises(AirflowFailException, match="no gold table is held"):
        asking.execute(cast(Context, {"ti": Task()}))


def test_nobody_is_asked_by_other_actions() -> None:
    approval = ReleaseApproval(task_id="approve", name="tiny", asks="act")
    with pytest.raises(AirflowSkipException):
        approval.execute(cast(Context, {"ti": Task()}))
