"""The payload of bronze: the checkpoint, and what was requested of all tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from headgate.tables.operation import Operation
from headgate.tables.state import Payload


@dataclass(frozen=True)
class BronzePayload(Payload):
    """``offsets`` is where the source continues. ``clocks`` has the watermark of each partition and
    ``watermark`` that of the source, in microseconds since 1970 UTC. ``topics`` are all Kafka
    topics ever read, as ``name@id`` in the order in which they were first listed. ``gaps`` are lost
    records of them that a person has accepted.

    ``operations`` are all operations ever requested. ``reset_commit`` is the log version of the
    last commit that requested resets. Only that commit has ``reset``, which describes them.
    """

    kind: ClassVar[str] = "bronze"

    offsets: Mapping[str, int] = field(default_factory=dict)
    clocks: Mapping[str, int] = field(default_factory=dict)
    watermark: int | None = None
    topics: Sequence[str] = ()
    gaps: Sequence[Mapping[str, Any]] = ()
    operations: Sequence[Operation] = ()
    reset_commit: int = 0
    reset: Mapping[str, Any] | None = None

    @property
    def sequence(self) -> int:
        """The sequence of the last landing file that bronze has absorbed; 0 for none or Kafka."""
        return self.offsets.get("sequence", 0)

    def encode(self) -> dict[str, Any]:
        return {**vars(self), "operations": [vars(each) for each in self.operations]}

    @classmethod
    def decode(cls, content: Mapping[str, Any]) -> BronzePayload:
        operations = tuple(Operation(**each) for each in content.get("operations", ()))
        return cls(**{**content, "operations": operations})

    def carried(self) -> BronzePayload:
        return replace(self, reset=None)


MEMBER = BronzePayload()
