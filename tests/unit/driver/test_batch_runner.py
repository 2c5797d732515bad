"""What a job says while it runs a batch."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from headgate.driver.batch_runner import BatchRunner
from headgate.driver.run_control import BatchLock, PauseLatch
from tests.support.reported import at_b


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        ("fused", ["batch 5: reading", "batch 5: committed to bronze; next: silver and gold"]),
        ("bronze", ["batch 5: reading", "batch 5: committed to bronze"]),
        ("silver", ["processing what is committed upstream"]),
        ("gold", ["processing what is committed upstream"]),
    ],
)
def test_only_a_job_that_writes_bronze_says_that_it_does(job: str, expected: list[str]) -> None:
    said: list[str] = []
    control = SimpleNamespace(check=lambda: None, pause_latch=PauseLatch(), batch_lock=BatchLock())
    run: Any = SimpleNamespace(
        job=job,
        writes_bronze=job in ("fused", "bronze"),
        control=control,
        progress=SimpleNamespace(sources=at_b(n=4), batch_done=lambda *_: None),
        publications=SimpleNamespace(stuck={}),
        catch_up=SimpleNamespace(run=lambda **_: None),
        runtime=None,
        say=said.append,
        report=lambda _: None,
    )
    source: Any = SimpleNamespace(ingest=lambda: True, batch_took=lambda _: None, reports=dict)
    BatchRunner(run, "b", source, BatchLock()).run(lambda: 1)
    assert said == expected
