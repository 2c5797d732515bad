"""A sink that takes no rows: why, since when, and with a command that can be typed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

from headgate.commands import pipeline_command
from headgate.jobs.publishing import TRY_AGAIN, Publications
from headgate.sinks.contract import SinkRefusalError

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Stage:
    """A stage whose sink refuses rows as long as ``is_away``."""

    def __init__(self) -> None:
        self.publication: Any = SimpleNamespace(name="sales", layer="gold")
        self.is_away, self.asked = True, 0

    def catch_up(self, now: datetime) -> bool:
        self.asked += 1
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
    assert publications.stuck["sales"].since == NOON
    stage.is_away = False
    clock[0] = 2 * TRY_AGAIN
    publications.catch_up(NOON + timedelta(minutes=2))
    assert publications.stuck == {}
