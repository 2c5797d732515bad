"""The payload of bronze: the checkpoint, and the requests to all tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from headgate.lake.tables.load import Load
from headgate.lake.tables.operation import Operation
from headgate.lake.tables.packed import Packed
from headgate.lake.tables.replay import Replay
from headgate.lake.tables.state import Payload


@dataclass(frozen=True)
class BronzePayload(Payload):
    """``offsets`` is where the source continues. ``clocks`` has the watermark of each partition and
    ``watermark`` that of the source, in microseconds since 1970 UTC. ``topics`` are all Kafka
    topics ever read, as ``name@id`` in the order in which they were first listed. ``gaps`` are
    ranges of lost records in these topics; a person has accepted the loss.

    ``operations`` are all operations ever requested, ``replays`` all batches of corrected copies,
    ``loads`` all loads of history. ``reset_commit`` is the log version of the last commit that
    requested resets. Only that commit has ``reset``, which describes them. ``arrived`` is when the
    oldest record of the commit arrived at the source, as far as the source knows, in microseconds
    since 1970 UTC; None for a commit without records of the source.
    """

    kind: ClassVar[str] = "bronze"

    offsets: Mapping[str, int] = field(default_factory=dict)
    clocks: Mapping[str, int] = field(default_factory=dict)
    watermark: int | None = None
    topics: Sequence[str] = ()
    gaps: Sequence[Mapping[str, Any]] = ()
    operations: Sequence[Operation] = ()
    replays: Sequence[Replay] = ()
    loads: Sequence[Load] = ()
    reset_commit: int = 0
    reset: Mapping[str, Any] | None = None
    arrived: int | None = None

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

    @property
    def replay_ends(self) -> frozenset[int]:
        """The batch ids at which a step of silver must end, because a replay begins or ends there.
        A replay is a step of its own, because it looks up the rows that the tables had before
        it."""
        return frozenset(n for replay in self.replays for n in (replay.n - 1, replay.n))

    @property
    def boundaries(self) -> frozenset[int]:
        """All batch ids at which a step of a stage must end."""
        return self.replay_ends | {each.n for each in self.operations}

    def __post_init__(self) -> None:
        object.__setattr__(self, "operations", Packed.of(self.operations))
        object.__setattr__(self, "replays", Packed.of(self.replays))

    def encode(self) -> dict[str, Any]:
        return {
            **vars(self),
            "operations": Packed.of(self.operations).encode(),
            "replays": Packed.of(self.replays).encode(),
            "loads": [{**vars(each), "offsets": dict(each.offsets)} for each in self.loads],
        }

    @classmethod
    def decode(cls, content: Mapping[str, Any]) -> BronzePayload:
        operations = Packed.decode(Operation, content["operations"])
        replays = Packed.decode(Replay, content["replays"])
        loads = tuple(Load(**each) for each in content["loads"])
        return cls(**{**content, "operations": operations, "replays": replays, "loads": loads})

    def as_of(self, watermark: int | None) -> BronzePayload:
        return BronzePayload(watermark=watermark)

    def carried(self) -> BronzePayload:
        return replace(self, reset=None, arrived=None)


MEMBER = BronzePayload()
