"""What a job that ends by itself leaves behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from headgate.jobs.failing import failure_told
from headgate.spec.errors import HeadgateError
from headgate.storage.layout import Layout
from headgate.tables.errors import FencedError
from tests.support.readings import declare_kafka


class Job:
    """Stands for lease and progress."""

    def __init__(self, folder: Path) -> None:
        self.is_lost = False
        self.layout = Layout.of(str(folder), "p")
        self.told: list[str] = []

    def failed(self, failure: str) -> None:
        self.told.append(failure)


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path)


def end(job: Job, error: Exception, **options: str) -> None:
    pipeline = declare_kafka(Path(job.layout.storage.root).parent, "h:1", topic="t", **options)  # type: ignore[arg-type]
    told: Any = job
    with pytest.raises(type(error)), failure_told(told, told, pipeline):
        raise error


def test_the_words_of_the_error_and_no_remedy(job: Job) -> None:
    end(job, HeadgateError("the brokers are gone", "ask again"))
    assert job.told == ["the brokers are gone"]


def test_of_an_error_that_is_not_ours_the_first_line(job: Job) -> None:
    end(job, ValueError("one\ntwo"))
    assert job.told == ["ValueError: one"]


def test_no_secret_is_left_behind(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAAS", 'x username="ann" password="hush-hush";')
    options = '{sasl.jaas.config: "${env:JAAS}"}'
    end(job, ValueError("refused: hush-hush"), options=options)
    assert job.told == ["ValueError: refused: ***"]


def test_who_was_fenced_off_is_silent(job: Job) -> None:
    end(job, FencedError("another driver has taken it", "see"))
    job.is_lost = True
    end(job, ValueError("late"))
    assert job.told == []


def test_what_cannot_be_written_hides_no_error(job: Job) -> None:
    def full(_: str) -> None:
        raise OSError(28, "No space left on device")

    cast(Any, job).failed = full
    end(job, ValueError("the first"))
