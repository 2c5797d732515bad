"""The payload of bronze: the checkpoint, and the requests to all tables.

Some of its lists only grow, and every commit repeats them. A commit has each ``PACK`` entries of
them as one compressed text, and only the entries after them as JSON objects. A text is the same in
all commits, so it is unpacked once.
"""

from __future__ import annotations

import json
import sys
import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, ClassVar, Generic, TypeVar

from headgate.lake.tables.load import Load
from headgate.lake.tables.replay import Replay
from headgate.lake.tables.state import Payload


@dataclass(frozen=True)
class Operation:
    """The ``number``-th operation of a pipeline. ``name`` is its kind, ``document`` has its
    parameters. It takes place after bronze's batch id ``n``, at the ``watermark`` of that batch
    (microseconds since 1970 UTC; None if there was none). The watermark is repeated here because a
    log does not keep the commit of the batch for ever."""

    number: int
    name: str
    n: int
    document: Mapping[str, Any]
    watermark: int | None = None


PACK = 64
"""The entries of a pack. Packs of other sizes can be read, too."""
_CACHED_PACKS = 8192

Entry = TypeVar("Entry")


class Packed(tuple[Entry, ...], Generic[Entry]):
    """The entries, which are dataclasses of JSON values. ``packs`` are texts of the first ones, and
    ``rest`` are the entries after these."""

    packs: tuple[str, ...]
    rest: tuple[Entry, ...]

    @staticmethod
    def of(entries: Iterable[Entry]) -> Packed[Entry]:
        if isinstance(entries, Packed):
            return entries
        found = tuple(entries)
        whole = len(found) - len(found) % PACK
        packs = tuple(_pack(found[at : at + PACK]) for at in range(0, whole, PACK))
        return _packed(found, packs, found[whole:])

    @staticmethod
    def decode(kind: type[Entry], content: Sequence[Any]) -> Packed[Entry]:
        """Raises TypeError or ValueError if ``content`` is not a result of ``encode``."""
        packs = tuple(sys.intern(each) for each in content if isinstance(each, str))
        rest = tuple(kind(**each) for each in content[len(packs) :])
        make: Callable[..., Any] = kind
        unpacked = (entry for pack in packs for entry in _unpacked(make, pack))
        return _packed((*unpacked, *rest), packs, rest)

    def encode(self) -> list[Any]:
        """JSON values: the packs, then the entries after them."""
        return [*self.packs, *map(vars, self.rest)]


def _packed(
    entries: tuple[Entry, ...], packs: tuple[str, ...], rest: tuple[Entry, ...]
) -> Packed[Entry]:
    made = Packed(entries)
    made.packs, made.rest = packs, rest
    return made


def _pack(entries: Sequence[Any]) -> str:
    text = json.dumps([vars(each) for each in entries], separators=(",", ":"))
    return b64encode(zlib.compress(text.encode(), 9)).decode()


@lru_cache(_CACHED_PACKS)
def _unpacked(make: Callable[..., Any], pack: str) -> tuple[Any, ...]:
    try:
        content = json.loads(zlib.decompress(b64decode(pack, validate=True)))
    except zlib.error as error:
        raise ValueError(f"a packed list cannot be read: {error}") from error
    return tuple(make(**each) for each in content)


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
