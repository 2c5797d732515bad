"""What the control form asks for, over a launcher that remembers it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar

import pytest
from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowFailException

from headgate.airflow.operators.control_operator import (
    ACTIONS,
    LABELS,
    RESTORE,
    ControlOperator,
    refusal,
)
from headgate.declaration.load import load
from headgate.savepoints.errors import SavepointError
from headgate.savepoints.store import create
from headgate.supervision.launcher import Stream
from tests.unit.ledger.conftest import DECLARATION, Lake, fill


class StreamReport:
    done: ClassVar[list[str]] = []

    def launch(self, stream: Stream, options: Sequence[str] = ()) -> str:
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


def act(lake: Lake, action: str, savepoint: str = "") -> str:
    root = Path(lake.layout.storage.uri("")).parent
    operator = ControlOperator(
        task_id="act",
        action=action,
        savepoint=savepoint,
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


@pytest.mark.parametrize(
    ("action", "savepoint", "why"),
    [
        ("", "", "no action was chosen; choose one of: restart, start, "),
        ("{explode}", "", "'{explode}' is not an action"),
        (
            RESTORE,
            "",
            r"needs a savepoint.*\nheadgate savepoint list '.*a tiny\.yml'",
        ),
        ("start", "latest", "'start' takes no savepoint"),
    ],
)
def test_what_does_not_go_together_is_refused(
    lake: Lake, action: str, savepoint: str, why: str
) -> None:
    with pytest.raises(AirflowFailException, match=why):
        act(lake, action, savepoint)
    assert StreamReport.done == []


def test_every_action_has_a_label() -> None:
    assert set(LABELS) == set(ACTIONS)
    assert all(refusal(each, "latest" if each == RESTORE else "") is None for each in ACTIONS)
