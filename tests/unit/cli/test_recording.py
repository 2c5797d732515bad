"""What a run that fails leaves behind."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest

from headgate.cli.lifecycle import concluding
from headgate.cli.lifecycle.concluding import failure_recorded
from headgate.cli.lifecycle.per_layer import LayerFailedError
from headgate.commands import pipeline_command, program
from headgate.declaration.model import Pipeline
from headgate.driver.lease import LeaseHeldError
from headgate.errors import HeadgateError
from headgate.flow.sources.errors import SourceError
from headgate.lake.control.driver_reports import Failure, last_failure, record_failure
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.errors import FencedError
from tests.support.readings import declare_kafka

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
OLD = Failure(3, "a file is gone", "headgate files skip", NOON)


@pytest.fixture
def root(tmp_path: Path) -> str:
    return str(tmp_path / "a lake")


def run(root: str, error: Exception | None, *, forgets: bool = True, **options: str) -> Layout:
    pipeline = declared(root, **options)
    with suppress(Exception), failure_recorded(pipeline, root, forgets=forgets):
        if error is not None:
            raise error
    return Layout.of(root, pipeline.name)


def declared(root: str, **options: str) -> Pipeline:
    return declare_kafka(Path(root).parent, "h:1", topic="t", **options)  # type: ignore[arg-type]


def test_code_reason_and_a_remedy_that_can_be_typed_anywhere(root: str) -> None:
    failure = last_failure(
        run(root, SourceError("a file is gone", pipeline_command("files skip", "3")))
    )
    assert failure is not None
    assert (failure.code, failure.reason) == (3, "a file is gone")
    assert (
        failure.remedy
        == f"{program(anywhere=True)} files skip {declared(root).file} --root '{root}' 3"
    )
    assert failure.commands == (failure.remedy,)


def test_a_fault_of_the_machine_and_one_of_ours(root: str) -> None:
    full = last_failure(run(root, OSError(28, "No space left on device")))
    assert full is not None
    assert (full.code, "disk is full" in full.reason) == (8, True)
    ours = last_failure(run(root, ValueError("one\ntwo")))
    assert ours is not None
    assert (ours.code, ours.reason) == (70, "ValueError: one")


def test_no_secret_is_left_behind(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAAS", 'x username="ann" password="hush-hush";')
    options = '{sasl.jaas.config: "${env:JAAS}"}'
    failure = last_failure(run(root, ValueError("refused: hush-hush"), options=options))
    assert failure is not None
    assert failure.reason == "ValueError: refused: ***"


def test_a_new_run_forgets_and_one_that_did_nothing_does_not(root: str) -> None:
    layout = run(root, None)
    record_failure(layout, OLD)
    run(root, LeaseHeldError("another one runs", "wait"))
    assert last_failure(layout) == OLD
    run(root, None, forgets=False)
    assert last_failure(layout) == OLD
    run(root, None)
    assert last_failure(layout) is None


def test_a_driver_that_was_taken_over_brings_back_no_earlier_failure(root: str) -> None:
    """It may have run for weeks since, and supervisors start nothing while a failure needs a
    person."""
    layout = run(root, None)
    record_failure(layout, OLD)
    run(root, FencedError("another driver has taken over", "wait"))
    assert last_failure(layout) is None


def test_what_a_layer_has_recorded_stays(root: str) -> None:
    layout = run(root, SourceError("a file is gone", "skip it"), forgets=False)
    with pytest.raises(LayerFailedError), failure_recorded(declared(root), root, forgets=False):
        raise LayerFailedError("bronze", 3)
    failure = last_failure(layout)
    assert failure is not None
    assert failure.reason == "a file is gone"


def test_what_cannot_be_written_hides_no_error(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(concluding, "record_failure", full)
    recorded = failure_recorded(declared(root), root, forgets=True)
    with pytest.raises(HeadgateError, match="the first"), recorded:
        raise HeadgateError("the first", "see")


class OfADeadJvmError(Exception):
    def __str__(self) -> str:
        raise ConnectionRefusedError


def test_an_error_that_cannot_say_anything_is_recorded(root: str) -> None:
    failure = last_failure(run(root, OfADeadJvmError()))
    assert failure is not None
    assert (failure.code, failure.reason) == (70, "OfADeadJvmError")
