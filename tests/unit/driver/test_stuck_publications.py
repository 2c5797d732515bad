"""A sink that takes no rows is reported with the reason, the start and a command to type."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from headgate.commands import pipeline_command
from headgate.driver.publishing import TRY_AGAIN, NotPublishedError, Publications
from headgate.flow.publish.sinks.writers import SinkRefusalError

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Stage:
    """``patience`` calls are not done. The next one is, unless ``is_away``: then the sink refuses
    rows."""

    def __init__(self, name: str = "sales", *, patience: int = 0, is_away: bool = True) -> None:
        self.publication: Any = SimpleNamespace(name=name, layer="gold", kind="kafka")
        self.is_away, self.asked, self.left, self.patience = is_away, 0, patience, patience

    def catch_up(self, now: datetime) -> bool:
        self.asked += 1
        if self.left:
            self.left -= 1
            return False
        self.left = self.patience
        if self.is_away:
            raise SinkRefusalError(f"type: {pipeline_command('publication reset', 'sales')}")
        return True

    def failure(self, error: Exception) -> str | None:
        return str(error) if isinstance(error, SinkRefusalError) else None


def test_it_is_told_with_its_begin_and_tried_again_later() -> None:
    stage: Any = Stage()
    clock = [0.0]
    publications = Publications([stage], lambda: clock[0])
    publications.catch_up(NOON)
    assert publications.trouble == (
        "publish sales: type: headgate publication reset PIPELINE sales"
    )
    publications.catch_up(NOON + timedelta(seconds=1))
    assert stage.asked == 1
    clock[0] = TRY_AGAIN
    publications.catch_up(NOON + timedelta(minutes=1))
    assert stage.asked == 2
    assert publications.stuck["sales"]["since"] == NOON.isoformat()
    stage.is_away = False
    clock[0] = 2 * TRY_AGAIN
    publications.catch_up(NOON + timedelta(minutes=2))
    assert publications.stuck == {}


def test_a_try_that_has_only_begun_does_not_end_the_trouble() -> None:
    stage: Any = Stage(patience=1)
    clock = [0.0]
    publications = Publications([stage], lambda: clock[0])
    publications.catch_up(NOON)
    assert publications.stuck == {}
    publications.catch_up(NOON + timedelta(seconds=1))
    since = publications.stuck["sales"]["since"]
    clock[0] = TRY_AGAIN
    for second in (61, 62):  # the try begins, the sink refuses
        publications.catch_up(NOON + timedelta(seconds=second))
        assert publications.stuck["sales"]["since"] == since
    stage.is_away = False
    clock[0] = 2 * TRY_AGAIN
    for second in (121, 122):
        publications.catch_up(NOON + timedelta(seconds=second))
    assert publications.stuck == {}


def test_the_end_waits_for_what_goes_on_while_another_is_stuck() -> None:
    away, slow = Stage("away"), Stage("slow", patience=3, is_away=False)
    stages: Any = [away, slow]
    with pytest.raises(NotPublishedError, match="publish away"):
        Publications(stages, lambda: 0.0).require_done(NOON)
    assert slow.asked == 4


def test_a_stop_ends_the_wait_for_what_goes_on() -> None:
    slow = Stage(patience=9, is_away=False)
    stages: Any = [slow]
    stops, looks = iter((False, False, True)), list[None]()
    publications = Publications(stages, lambda: 0.0, lambda: looks.append(None))
    assert not publications.require_done(NOON, lambda: next(stops))
    assert slow.asked == 3
    assert len(looks) == 1, "whether publications pause takes reads of tables"


def test_the_end_does_not_wait_for_what_pauses() -> None:
    slow, paused = Stage(patience=10**6, is_away=False), list[str]()
    stages: Any = [slow]
    publications = Publications(stages, lambda: 0.0, lambda: next(iter(paused), None))
    publications.catch_up(NOON)
    paused.append("the newest batches are bad")
    with pytest.raises(NotPublishedError, match="bad"):
        publications.require_done(NOON)
