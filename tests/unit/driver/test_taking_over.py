"""What a job does after a reset that was decided since it opened its tables."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from headgate.driver.errors import ResetAskedError
from headgate.history.savepoints.resets import ResetTarget
from tests.support.decisions import control_of, reset_to
from tests.support.fake_stages import Record, without_spark
from tests.support.lake import Lake, declared

RESTORE = {"gold/per_minute": ResetTarget()}
PUBLICATION = {"silver/good": ResetTarget(0, rebuilt="_headgate/rebuild/9")}
NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Lake]:
    """The job of gold, which has opened its tables."""
    with without_spark():
        lake = Lake(declared(tmp_path), tmp_path / "root")
        lake.land([Record()])
        lake.ingest()
        lake.catch_up()
        yield lake.start(["gold"])


def decide(job: Lake, tables: dict[str, ResetTarget]) -> None:
    reset_to(control_of(job.layout.storage, "tiny"), tables, NOW)


def test_it_goes_on_after_a_publication(job: Lake) -> None:
    decide(job, PUBLICATION)
    job.catch_up()


@pytest.mark.parametrize("resets", [[RESTORE], [RESTORE, PUBLICATION], [PUBLICATION, RESTORE]])
def test_it_ends_after_a_restore_also_if_a_publication_came_after_it(
    job: Lake, resets: list[dict[str, ResetTarget]]
) -> None:
    for tables in resets:
        decide(job, tables)
    with pytest.raises(ResetAskedError):
        job.catch_up()
