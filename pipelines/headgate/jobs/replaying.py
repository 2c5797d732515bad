"""Carries out requested replays, in bronze's job."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from headgate.jobs.operating import takes_requests
from headgate.jobs.runtime import PipelineRuntime
from headgate.replay import requests
from headgate.replay.carrying_out import carry_out
from headgate.storage.layout import Layout


def is_asked(layout: Layout, runtime: PipelineRuntime) -> bool:
    """Whether there is a requested replay that can be carried out now."""
    return takes_requests(runtime) and requests.waiting(layout) is not None


def replay(
    layout: Layout,
    runtime: PipelineRuntime,
    clock: Callable[[], datetime],
    say: Callable[[str], None] = lambda _: None,
) -> bool:
    """Commit a waiting replay to bronze. The caller must hold the batch lock, and then bring silver
    and gold up. Returns whether one was waiting. Raises CommitRefusedError or FencedError."""
    if not is_asked(layout, runtime):
        return False
    for name, stage in runtime.bronze.items():
        done = carry_out(layout, runtime.pipeline.sources[name], stage, clock)
        if done is not None:
            say(done)
    return True
