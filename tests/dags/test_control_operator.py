"""What the control form does, with a launcher that records its calls."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from headgate.airflow.operators import control_operator
from headgate.airflow.operators.control_operator import (
    ACTIONS,
    LABELS,
    REPLAY,
    RESTORE,
    ControlOperator,
    refusal,
)
from headgate.airflow.operators.decision_operator import DecisionOperator
from headgate.airflow.operators.rows_approval import Question, RowsApproval
from headgate.airflow.run_conf import require_known
from headgate.declaration.errors import DeclarationError
from headgate.declaration.expectations.result import RuleResult
from headgate.declaration.files import project_folder
from headgate.declaration.load import load
from headgate.driver.errors import DefinitionChangedError
from headgate.errors import UsageError
from headgate.flow.gates import documents
from headgate.flow.gates.documents import Hold
from headgate.history.savepoints.errors import SavepointError
from headgate.history.savepoints.store import create_savepoint
from headgate.lake.control.requests import waiting_requests
from headgate.lake.tables.payloads.gold import GoldPayload
from headgate.lake.tables.row_changes import RowChange, RowChanges
from headgate.lake.tables.table import Table
from tests.support.decisions import append, at
from tests.support.stream_task import LAUNCHER, FakeLauncher
from tests.support.task_instance import TaskInstance
from tests.unit.insight.ledger.conftest import DECLARATION, Lake, fill


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    FakeLauncher.forget()
    file = tmp_path / "a tiny.yml"
    file.write_text(DECLARATION)
    lake = Lake(tmp_path / "lake", load(file))
    fill(lake)
    return lake


def act(lake: Lake, action: str, savepoint: str = "", table: str = "") -> None:
    root = Path(lake.layout.storage.uri("")).parent
    operator = ControlOperator(
        task_id="act",
        action=action,
        savepoint=savepoint,
        table=table,
        file=str(lake.pipeline.file),
        name="tiny",
        root=str(root),
        launcher=LAUNCHER,
    )
    assert operator.execute(Context()) == [], "no question is asked"


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
    assert FakeLauncher.done == done


def test_latest_is_the_newest_when_the_restore_begins(lake: Lake) -> None:
    taken = create_savepoint(lake.layout, lake.pipeline, datetime.now(UTC))
    act(lake, RESTORE, "latest")
    assert FakeLauncher.done == ["stop", f"launch --from-savepoint {taken.id}"]


def test_a_savepoint_that_is_none_leaves_the_stream_running(lake: Lake) -> None:
    create_savepoint(lake.layout, lake.pipeline, datetime.now(UTC))
    with pytest.raises(SavepointError):
        act(lake, RESTORE, "nonsense")
    assert FakeLauncher.done == []


@pytest.mark.parametrize("action", ["restart", RESTORE, "stop with savepoint"])
def test_a_wrong_declaration_leaves_the_stream_running(lake: Lake, action: str) -> None:
    taken = create_savepoint(lake.layout, lake.pipeline, datetime.now(UTC))
    lake.pipeline.file.write_text("pipeline: tiny\nsources: 3\n")
    with pytest.raises(DeclarationError, match=r"a tiny\.yml:2"):
        act(lake, action, taken.id if action == RESTORE else "")
    assert FakeLauncher.done == []


def test_tables_of_another_declaration_leave_the_stream_running(lake: Lake) -> None:
    """A restart would fail. A restore may take the tables back to this declaration."""
    file = lake.pipeline.file
    file.write_text(file.read_text().replace("count(*)", "sum(amount)"))
    with pytest.raises(DefinitionChangedError):
        act(lake, "restart")
    assert FakeLauncher.done == []
    create_savepoint(lake.layout, lake.pipeline, datetime.now(UTC))
    act(lake, RESTORE, "latest")
    act(lake, "stop")
    assert [each.split()[0] for each in FakeLauncher.done] == ["stop", "launch", "stop"]


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
    assert FakeLauncher.done == ["stop", "launch"]


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
    assert FakeLauncher.done == []


@pytest.mark.parametrize("table", ["", "gold.per_minute", "per_minute"])
def test_late_rows_are_replayed_by_the_stream(lake: Lake, table: str) -> None:
    act(lake, REPLAY, table=table)
    assert FakeLauncher.done == [], "nothing is started or stopped for it"
    (request,) = waiting_requests(lake.layout)
    assert request.kind == "late_replay"
    assert {**request.document, "id": ""} == {
        "table": "per_minute",
        "from": None,
        "to": None,
        "keys": {},
        "by": "Airflow",
        "id": "",
    }


def test_a_replay_that_would_take_a_backfill_back_is_not_requested(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed: list[Sequence[str]] = []
    code = 1

    def run_verb(words: Sequence[str], *_: object) -> tuple[int, str]:
        typed.append(words)
        return code, "backfill b1 has corrected results"

    monkeypatch.setattr(control_operator, "run_verb", run_verb)
    gold = lake.table("gold/per_minute")
    state = gold.refresh().held("operation", gold.epoch)
    payload = replace(GoldPayload.of(state), backfills={"1": (0, 60_000_000)})
    gold.commit(replace(state, payload=payload, operation=1))
    with pytest.raises(AirflowFailException, match="backfill b1 has corrected"):
        act(lake, REPLAY)
    assert waiting_requests(lake.layout) == ()
    ((*_, root, last),) = typed
    assert (root, last) == (str(Path(lake.layout.storage.uri("")).parent), "--dry-run")
    assert "gold.per_minute" in typed[0]
    code = 0
    act(lake, REPLAY)
    assert len(waiting_requests(lake.layout)) == 1


def test_a_table_that_is_none_is_refused_by_name(lake: Lake) -> None:
    with pytest.raises(AirflowFailException, match=r"no gold table 'gold\.x'.*gold\.per_minute"):
        act(lake, REPLAY, table="gold.x")
    assert waiting_requests(lake.layout) == ()


ROLLUP = """
  per_hour:
    from: per_minute
    window: {tumbling: 1 hour}
    measures: {events: sum(events)}
    allowed_lateness: 0 seconds
"""


def test_late_rows_are_those_of_the_table_that_a_rollup_reads(lake: Lake) -> None:
    file = lake.pipeline.file
    file.write_text(file.read_text() + ROLLUP)
    with pytest.raises(AirflowFailException, match=r"gold\.per_hour reads a gold table, so it has"):
        act(lake, REPLAY, table="gold.per_hour")
    assert waiting_requests(lake.layout) == ()
    act(lake, REPLAY)
    assert [each.document["table"] for each in waiting_requests(lake.layout)] == ["per_minute"]


def test_every_action_has_a_label() -> None:
    assert set(LABELS) == set(ACTIONS)
    assert all(refusal(each, "latest" if each == RESTORE else "") is None for each in ACTIONS)


SINCE = datetime(2026, 3, 1, 12, tzinfo=UTC)
SANE = RuleResult("sane", "critical", "hold", met=False, unexpected=3)


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


ROWS = RowChanges(
    *(("window_start",), ("site",), ("events",)),
    rows=(
        RowChange(
            {"window_start": "2026-03-01 12:00:00", "site": "<b>|", "events": "3"},
            {"window_start": "2026-03-01 12:00:00", "site": "<b>|", "events": "-5000"},
            ("sane",),
        ),
    ),
    total=25,
)


def question(lake: Lake, action: str, **more: Any) -> Question:
    """What a person is asked, as Airflow keeps it."""
    operator = ControlOperator(task_id="act", action=action, **of(lake), **more)
    (found,) = json.loads(json.dumps(operator.execute(cast(Context, {"ti": TaskInstance()}))))
    return cast(Question, found)


def decide(lake: Lake, asked: Question, **answer: Any) -> str:
    """Answer a question, and carry out what was approved."""
    given = {"params_input": {"reason": "a real outlier"}, "responded_by_user": {"name": "anna"}}
    task = TaskInstance(act=[asked], approve={0: given | answer})
    done = DecisionOperator(task_id="carry_out", asks="act", approval="approve", **of(lake))
    return done.execute(cast(Context, {"ti": task}))


def test_a_release_shows_the_rows_and_is_carried_out_as_it_was_asked(held: Lake) -> None:
    (found,) = documents.holds(held.layout, load(held.pipeline.file))
    documents.hold(held.layout, found, ROWS)
    asked = question(held, "release")
    lines = asked["text"].splitlines()
    assert lines[0].startswith("`gold/per_minute`: `batches ")
    assert "Computed by `a tiny.yml, the pipeline's own declaration`." in lines[0]
    assert "* `sane (critical): not met, 3 rows break it` Expected: `events > 0`" in lines
    assert "| Window | `site` | Row | Column | Readers see | Held version | Breaks |" in lines
    row = r"| 2026-03-01 12:00:00 | `<b>\|` | changed | `events` | 3 | -5000 | `sane` |"
    assert row in lines
    assert any(line.startswith("the first 1 of 25 rows; more of them: `") for line in lines)
    assert "*Reject* of" not in asked["text"], "events are not given up"
    (about,) = asked["about"]["held"]
    assert "--current" in asked["text"], "a rebuild may be held, too"
    assert "anna released gold/per_minute, batches" in decide(held, asked)
    given = documents.released(held.layout, "per_minute")
    assert given is not None
    assert (given.upto, given.by, given.reason) == (about["upto"], "anna", "a real outlier")
    assert (given.operation, given.generation) == (7, 0), "a release is for one version alone"


def test_a_version_that_is_no_longer_held_is_not_released(held: Lake) -> None:
    """It became visible by other rules, or the table was reset, while the question was open."""
    asked = question(held, "release")
    (about,) = asked["about"]["held"]
    for earlier in ({"generation": 2}, {"upto": about["n"], "operation": 0}):
        other = {**asked, "about": {**asked["about"], "held": [about | earlier]}}
        with pytest.raises(AirflowFailException, match="nothing to release"):
            decide(held, cast(Question, other))
    assert "anna released" in decide(held, asked)
    documents.use_up(held.layout, "per_minute")
    documents.let_go(held.layout, "per_minute")
    with pytest.raises(AirflowFailException, match="nothing to release"):
        decide(held, asked)
    assert documents.released(held.layout, "per_minute") is None


@pytest.mark.parametrize("given", [{"reason": " "}, {}, None])
def test_an_approval_without_a_reason_releases_nothing(held: Lake, given: Any) -> None:
    """Airflow's API takes an answer without parameters."""
    asked = question(held, "release")
    with pytest.raises(AirflowFailException, match="without a reason.*clear the task approve"):
        decide(held, asked, params_input=given, responded_by_user=None)
    assert documents.released(held.layout, "per_minute") is None


def test_a_held_backfill_is_given_up_by_whoever_approves(held: Lake) -> None:
    with pytest.raises(UsageError, match="events are not given up"):
        question(held, "reject")
    said = {"backfill": "b1", "declaration": {"file": "other.txt", "is_own": False}}
    hold_operation(held, "backfill", said)
    assert "*Reject* of `tiny__control`" in question(held, "release")["text"]
    asked = question(held, "reject", table="gold.per_minute")
    assert "`the backfill b1 after batch" in asked["text"]
    assert "Computed by `other.txt, another declaration`" in asked["text"]
    assert "anna gave up gold/per_minute, the backfill b1 after batch" in decide(held, asked)
    given = documents.rejected(held.layout, "per_minute")
    assert given is not None
    assert (given.operation, given.by, given.reason) == (1, "anna", "a real outlier")


def test_what_is_no_longer_held_is_not_given_up(held: Lake) -> None:
    hold_operation(held, "late_replay", {"table": "per_minute"})
    asked = question(held, "reject")
    documents.let_go(held.layout, "per_minute")
    with pytest.raises(AirflowFailException, match="not held by this change any more"):
        decide(held, asked)
    assert documents.rejected(held.layout, "per_minute") is None


def hold_operation(lake: Lake, name: str, document: dict[str, Any]) -> None:
    append(lake.control, name, document, at(events=1), SINCE)
    n = lake.table("gold/per_minute").refresh().n
    documents.hold(lake.layout, Hold("per_minute", n, n, SINCE, SINCE, (SANE,), operation=1))


@pytest.mark.parametrize("action", ["release", "reject"])
def test_nothing_is_decided_where_nothing_is_held(lake: Lake, action: str) -> None:
    with pytest.raises(AirflowFailException, match="is held by its rules"):
        question(lake, action)


def test_an_answer_to_an_earlier_question_has_no_effect() -> None:
    """The rows were computed again since."""
    approval = RowsApproval(task_id="approve", question=None)
    event = {"chosen_options": ["Approve"], "params_input": {}}
    for answer in (approval.execute, lambda context: approval.execute_complete(context, event)):
        with pytest.raises(AirflowSkipException, match="newer rows"):
            answer(Context())


def test_what_is_rejected_is_skipped() -> None:
    """A mapped task cannot skip what follows it by itself."""
    asked = Question(subject="?", text="{{ rows }}", about={})
    approval = RowsApproval(task_id="approve", question=asked)
    with pytest.raises(AirflowSkipException, match="rejected"):
        approval.execute_complete(Context(), {"chosen_options": ["Reject"], "params_input": {}})


def test_a_conf_that_no_parameter_has_is_refused() -> None:
    dag = SimpleNamespace(params={"action": None, "savepoint": None})

    def check(conf: dict[str, Any] | None) -> None:
        run: Any = {"dag": dag, "dag_run": SimpleNamespace(conf=conf)}
        require_known(run)

    for known in (None, {}, {"action": "stop"}):
        check(known)
    with pytest.raises(
        AirflowFailException, match="has 'actoin', but.*only: action, savepoint"
    ) as e:
        check({"actoin": "stop", "savepoint": "latest"})
    assert "did you mean action?" in str(e.value)
