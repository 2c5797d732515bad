"""Waiting for the answers of jobs that are only documents."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from headgate.errors import HeadgateError
from headgate.history.maintenance.report import Amount, Compacted
from headgate.history.maintenance.requests import (
    MaintenanceAnswer,
    MaintenanceRequest,
    new_maintenance_request,
    read_answer,
    request_maintenance,
    requested_maintenance,
    write_answer,
)
from headgate.lake.control.ownership import Owner
from headgate.lake.storage.layout import Layout
from headgate.supervision.job_state import probe
from headgate.supervision.local import NotAliveError
from headgate.supervision.running_maintenance import maintain_running_jobs
from tests.unit.supervision.conftest import lease, report

DONE = Compacted("silver/good", Amount(9, 900), Amount(1, 800), Amount(2, 20))


class Clock:
    """A clock that moves only during a wait, and then calls ``happens``."""

    def __init__(self, happens: Callable[[float], None] = lambda _: None) -> None:
        self.time = 0.0
        self.happens = happens

    def __call__(self) -> float:
        return self.time

    def wait(self, seconds: float) -> None:
        self.time += seconds
        self.happens(self.time)


def run(layout: Layout, clock: Clock, timeout: float = 20.0) -> dict[str, MaintenanceAnswer]:
    alive = probe(layout, datetime.now(UTC))
    day = timedelta(days=1)
    return dict(
        maintain_running_jobs(
            layout, "compact", day, alive, timeout=timeout, clock=clock, wait=clock.wait
        )
    )


def running(layout: Layout, *layers: str, epoch: int = 3) -> None:
    lease(layout, Owner.here(), epoch=epoch, renewed=datetime.now(UTC), layers=layers)
    report(layout, layers[0], epoch=epoch, n=2)


def request_of(layout: Layout) -> MaintenanceRequest:
    request = requested_maintenance(layout)
    assert request is not None
    return request


def test_an_answer_comes_table_by_table(layout: Layout) -> None:
    running(layout, "gold")

    def happens(time: float) -> None:
        answer = MaintenanceAnswer(request_of(layout).id, "compact").with_one(DONE)
        if time > 30:
            answer = MaintenanceAnswer(answer.id, "compact", True, (DONE, DONE))
        if time > 15:
            write_answer(layout, "gold", answer)

    (answer,) = run(layout, Clock(happens)).values()
    assert answer.reports == (DONE, DONE)


def test_every_job_has_to_answer(layout: Layout) -> None:
    running(layout, "bronze", epoch=3)
    running(layout, "gold", epoch=4)

    def happens(time: float) -> None:
        assert request_of(layout).epoch == 4
        write_answer(layout, "bronze", MaintenanceAnswer(request_of(layout).id, "compact", True))
        if time > 9:
            write_answer(layout, "gold", MaintenanceAnswer(request_of(layout).id, "compact", True))

    clock = Clock(happens)
    assert run(layout, clock).keys() == {"bronze", "gold"}
    assert clock.time > 9


@pytest.mark.parametrize("how", ["ended", "replaced"])
def test_a_job_that_ends_meanwhile(layout: Layout, how: str) -> None:
    running(layout, "gold")

    def happens(_: float) -> None:
        if how == "ended":
            lease(layout, Owner.here(), epoch=3, layers=("gold",), released=True)
        else:
            running(layout, "gold", epoch=9)

    with pytest.raises(NotAliveError, match="the gold job ended during") as error:
        run(layout, Clock(happens))
    assert "headgate compact PIPELINE" in error.value.remedy


def test_a_job_that_says_nothing(layout: Layout) -> None:
    running(layout, "gold")
    clock = Clock()
    with pytest.raises(NotAliveError, match="has not answered for 20 s"):
        run(layout, clock)
    assert 20 < clock.time < 22


def test_somebody_else_asks_for_something(layout: Layout) -> None:
    running(layout, "gold")

    def happens(_: float) -> None:
        request_maintenance(layout, new_maintenance_request("vacuum", timedelta(), 3))

    with pytest.raises(HeadgateError, match="another process has requested vacuum meanwhile"):
        run(layout, Clock(happens))


def test_an_answer_to_another_request_is_none(layout: Layout) -> None:
    request = new_maintenance_request("compact", timedelta(), 3)
    write_answer(layout, "gold", MaintenanceAnswer("another", "compact", True))
    assert read_answer(layout, "gold", request) is None
