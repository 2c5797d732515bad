"""The part of bronze that the reader of a load uses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime

from headgate.flow.bronze.stage import BronzeStage
from headgate.flow.sources.micro_batches import BatchEnd
from headgate.flow.sources.records import MovedRecords, Records
from headgate.history.loads.requests import LoadRequest
from headgate.lake.tables.load import Load, next_number
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.state import State
from headgate.lake.tables.table import Table


class LoadWriter:
    """A ``BronzeWriter`` for one load."""

    def __init__(self, stage: BronzeStage, request: LoadRequest) -> None:
        self._stage, self._request = stage, request

    @property
    def table(self) -> Table:
        return self._stage.table

    @property
    def load(self) -> Load | None:
        """The load as of bronze's newest commit; None before its first batch."""
        return BronzePayload.of(self.table.refresh()).load(self._request.id)

    @property
    def offsets(self) -> Mapping[str, int]:
        load = self.load
        return self._request.plan.begins if load is None else load.offsets

    def ingest(
        self,
        records: Records,
        reached: BatchEnd,
        now: datetime,
        verify: Callable[[], None] = lambda: None,
    ) -> State:
        """As ``BronzeWriter``. Raises TooManyLoadsError."""
        request = self._request
        payload = BronzePayload.of(self.table.refresh())
        load = payload.load(request.id)
        if load is None:
            load = Load(request.id, next_number(payload.loads), 0, {}, 0, request.reason)
        moved = MovedRecords(records, load.shift, request.plan.details.get("folder"))
        return self._stage.load(load, moved, reached.offsets, now, verify)
