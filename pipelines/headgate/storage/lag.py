"""How a backlog has changed: samples that a job of bronze keeps in its status document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

SAMPLE_EVERY = timedelta(seconds=5)
KEPT = 20


@dataclass(frozen=True)
class Sample:
    """At the time ``at``, ``backlog`` records were unread, and ``read`` records had been read since
    the tables were created."""

    at: datetime
    backlog: int
    read: int

    @staticmethod
    def from_document(content: Mapping[str, Any]) -> Sample:
        at = datetime.fromisoformat(content["at"])
        return Sample(at, content["backlog"], content["read"])

    def document(self) -> dict[str, Any]:
        return {"at": self.at.isoformat(), "backlog": self.backlog, "read": self.read}


def taken(samples: tuple[Sample, ...], sample: Sample) -> tuple[Sample, ...]:
    """``samples`` with ``sample`` at the end, unless it is too soon after the last one. The oldest
    samples are dropped."""
    if samples and sample.at - samples[-1].at < SAMPLE_EVERY:
        return samples
    return (*samples, sample)[-KEPT:]
