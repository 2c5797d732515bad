"""The payload of bronze: the checkpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from headgate.lake.tables.load import Load
from headgate.lake.tables.state import Payload, SourceWatermarks


@dataclass(frozen=True)
class BronzePayload(Payload):
    """``offsets`` is where the source continues. ``clocks`` has the watermark of each partition and
    ``watermark`` that of the source, in microseconds since 1970 UTC. ``arrival_clocks`` and
    ``arrival_watermark`` are the same for the times at which records arrived
    (``flow.bronze.arrivals``). ``topics`` are all Kafka topics ever read, as ``name@id`` in the
    order in which they were first listed. ``gaps`` are ranges of lost records in these topics; a
    person has accepted the loss.

    ``loads`` are all loads of history. ``arrived`` is when the oldest record of the commit arrived
    at the source, as far as the source knows, in microseconds since 1970 UTC; None for a commit
    without records of the source.
    """

    kind: ClassVar[str] = "bronze"

    offsets: Mapping[str, int] = field(default_factory=dict)
    clocks: Mapping[str, int] = field(default_factory=dict)
    watermark: int | None = None
    topics: Sequence[str] = ()
    gaps: Sequence[Mapping[str, Any]] = ()
    loads: Sequence[Load] = ()
    arrived: int | None = None
    arrival_clocks: Mapping[str, int] = field(default_factory=dict)
    arrival_watermark: int | None = None

    @property
    def watermarks(self) -> SourceWatermarks:
        return SourceWatermarks(self.watermark, self.arrival_watermark)

    @property
    def sequence(self) -> int:
        """The sequence of the last landing file that bronze has ingested; 0 for none or Kafka."""
        return self.offsets.get("sequence", 0)

    def load(self, id_: str) -> Load | None:
        """The load ``id_``; None if bronze has no batch of it."""
        return next((load for load in self.loads if load.id == id_), None)

    def with_load(self, load: Load) -> BronzePayload:
        others = (each for each in self.loads if each.number != load.number)
        return replace(self, loads=(*others, load))

    def encode(self) -> dict[str, Any]:
        return {
            **vars(self),
            "loads": [{**vars(each), "offsets": dict(each.offsets)} for each in self.loads],
        }

    @classmethod
    def decode(cls, content: Mapping[str, Any]) -> BronzePayload:
        loads = tuple(Load(**each) for each in content["loads"])
        return cls(**{**content, "loads": loads})

    def as_of(self, watermarks: SourceWatermarks) -> BronzePayload:
        return BronzePayload(watermark=watermarks.event, arrival_watermark=watermarks.arrival)

    def carried(self) -> BronzePayload:
        return replace(self, arrived=None)


MEMBER = BronzePayload()
