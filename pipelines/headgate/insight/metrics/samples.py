"""Samples of metrics, as plain values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from headgate.insight.metrics.definitions import METRICS


@dataclass(frozen=True)
class Sample:
    """``labels`` are the values of the metric's labels, in their order."""

    metric: str
    labels: tuple[str, ...]
    value: float


@dataclass
class Samples:
    """Collects the samples of one pipeline. A metric or a label that is not declared raises
    KeyError: only metrics that the docs name are served."""

    pipeline: str
    found: list[Sample] = field(default_factory=list)

    def add(self, metric: str, value: float | bool | datetime | None, **labels: str) -> None:
        """A time becomes seconds since 1970. None means that the value is unknown: nothing is
        added."""
        if value is None:
            return
        declared = METRICS[f"headgate_{metric}"]
        if set(labels) != set(declared.labels):
            raise KeyError(f"{declared.name} has the labels {', '.join(declared.labels)}")
        number = value.timestamp() if isinstance(value, datetime) else float(value)
        values = (self.pipeline, *(labels[name] for name in declared.labels))
        self.found.append(Sample(declared.name, values, number))

    def __iter__(self) -> Iterator[Sample]:
        return iter(self.found)
