"""How a backlog moved: samples that a job of bronze leaves in its status document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

SAMPLE_EVERY = timedelta(seconds=5)
KEPT = 20


@dataclass(frozen=True)
class Sample:
    """``backlog`` records were unread at ``at``, and ``read`` had been since the tables began."""

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
    """``samples`` with one more at the end, unless it comes too soon; the oldest are dropped."""
    if samples and sample.at - samples[-1].at < SAMPLE_EVERY:
        return samples
    return (*samples, sample)[-KEPT:]
