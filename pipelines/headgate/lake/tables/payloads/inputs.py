"""The payload of input logs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from headgate.lake.tables.state import Payload, SourceWatermarks


@dataclass(frozen=True)
class InputsPayload(Payload):
    """``inputs`` are the batch ids of the sources up to which tables with this batch id read.
    ``watermark`` is the lowest of the sources that are not idle, and never goes back;
    ``arrival_watermark`` is the same for the times at which records arrived. Both are microseconds
    since 1970 UTC. None if they are not known. ``holds`` is the source that has the lowest
    watermark, or none yet; empty if all are idle."""

    kind: ClassVar[str] = "inputs"

    inputs: Mapping[str, int] = field(default_factory=dict)
    watermark: int | None = None
    arrival_watermark: int | None = None
    holds: str = ""

    @property
    def watermarks(self) -> SourceWatermarks:
        return SourceWatermarks(self.watermark, self.arrival_watermark, self.inputs)

    def as_of(self, watermarks: SourceWatermarks) -> InputsPayload:
        return InputsPayload(watermarks.inputs, watermarks.event, watermarks.arrival)


MEMBER = InputsPayload()
