"""The engine in this process, without streaming: the test chooses where batches end, when silver
and gold catch up, and when the driver is replaced by a new one."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from headgate.declaration.contracts.source import connector_of
from headgate.declaration.kinds import BRONZE
from headgate.declaration.model import Pipeline
from headgate.driver.lease import Lease, highest_table_epoch
from headgate.driver.loading import Loading
from headgate.driver.opening import open_tables
from headgate.driver.operating import take_in_requests
from headgate.driver.pipeline_sources import source_loops
from headgate.driver.progress import JobProgress
from headgate.driver.publishing import Publications
from headgate.driver.run import CatchUp, DriverRun
from headgate.driver.run_control import RunControl
from headgate.driver.runtime import PipelineRuntime
from headgate.driver.source_loop import SourceLoop
from headgate.driver.task import NO_REBUILD, RebuildRequest, Task
from headgate.flow.sources.deployed_source import DeployedSource
from headgate.flow.sources.files.log import FilesLog
from headgate.flow.sources.files.micro_batches import (
    FilesMicroBatches,
    FilesRange,
    sequence_of,
)
from headgate.flow.sources.loading import LoadWanted
from headgate.history.loads import requests as loads
from headgate.history.loads.requests import LoadRequest
from headgate.history.savepoints.restore import restore_savepoint
from headgate.history.savepoints.savepoint import Savepoint
from headgate.history.savepoints.store import create_savepoint
from headgate.lake.control.ownership import LAYERS
from headgate.lake.control.requests import send_request
from headgate.lake.storage.documents import new_id
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.decisions import (
    LOAD,
    LOAD_CHANGE,
    ControlTable,
    Decisions,
    Operation,
)
from headgate.lake.tables.load import Load
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.table import Table


@dataclass
class Engine:
    """One pipeline under ``root``. Every start takes the next epoch, as a lease would give it."""

    spark: SparkSession
    pipeline: Pipeline
    root: Path
    now: datetime = field(default_factory=lambda: datetime.now(UTC))
    anew: RebuildRequest = NO_REBUILD
    epoch: int = field(init=False)

    def __post_init__(self) -> None:
        self.layout = Layout.of(str(self.root), self.pipeline.name)
        # Existing tables refuse a lower epoch, as that of a zombie.
        self.epoch = highest_table_epoch(self.layout, self.pipeline.name)
        self.start()

    def start(self, layers: Sequence[str] = LAYERS) -> Engine:
        """Start a new driver: it has nothing in memory and fences every table."""
        self.epoch += 1
        self.runtime = PipelineRuntime(self.spark, self.pipeline, self.layout, layers)
        open_tables(self.runtime, self.layout, self.epoch, self.clock(), self.anew)
        self.sources = self.open_sources()
        return self

    def open_sources(self) -> dict[str, SourceLoop]:
        return begun(source_loops(self.spark, self.layout, self.runtime, self.clock))

    def only(self, source: str | None) -> str:
        """The name of a source; without one, that of the only source."""
        if source is None:
            (source,) = self.pipeline.sources
        return source

    @property
    def source(self) -> SourceLoop:
        return self.sources[self.only(None)]

    def clock(self) -> datetime:
        """The current time; each call returns a later one."""
        self.now += timedelta(milliseconds=1)
        return self.now

    def list_new(self, source: str | None = None) -> bool:
        return bool(self.files_of(source).list_new())

    @property
    def files(self) -> FilesMicroBatches:
        return self.files_of(None)

    def files_of(self, name: str | None) -> FilesMicroBatches:
        source = self.sources[self.only(name)].source
        assert isinstance(source, FilesMicroBatches), "the source does not read files"
        return source

    @property
    def files_log(self) -> FilesLog:
        return self.files.log

    @property
    def last_sequence(self) -> int:
        return self.files_log.last_sequence

    @property
    def position(self) -> int:
        return self.position_of(None)

    def position_of(self, source: str | None) -> int:
        """The sequence up to which bronze has ingested the files log."""
        stage = self.runtime.bronze[self.only(source)]
        return sequence_of(BronzePayload.of(stage.table.refresh()))

    def ingest(self, end: int | None = None, source: str | None = None) -> None:
        """Process one bronze batch: the files recorded up to sequence ``end`` (None: all)."""
        upto = self.files_of(source).log.last_sequence if end is None else end
        range_ = FilesRange(self.position_of(source), upto)
        assert self.sources[self.only(source)].ingest(range_)

    def catch_up(self) -> None:
        self.runtime.catch_up(self.clock())

    def catch_up_per_layer(self) -> None:
        """Catch up as two separate jobs do. After this, the fused driver is fenced from silver and
        gold, but not from bronze."""
        for layer in ("silver", "gold"):
            self.epoch += 1
            runtime = PipelineRuntime(self.spark, self.pipeline, self.layout, (layer,))
            open_tables(runtime, self.layout, self.epoch, self.clock(), NO_REBUILD)
            runtime.catch_up(self.clock())

    def run_all(self) -> Engine:
        """List all new input, process it in one batch, and catch up."""
        self.list_new()
        self.ingest()
        self.catch_up()
        return self

    def savepoint(self) -> Savepoint:
        return create_savepoint(self.layout, self.pipeline, self.clock())

    def restore(self, savepoint: Savepoint, *, reread: bool = False) -> None:
        """Restore as the verb does, in the role of another process: this driver is a zombie
        afterwards."""
        self.epoch += 1
        restore_savepoint(
            self.layout, self.pipeline, savepoint, self.epoch, self.clock(), reread=reread
        )

    def operate(self, operation: str, **document: Any) -> None:
        """Request an operation; the next catch-up carries it out."""
        self.runtime.decide_operation(operation, document, self.clock())

    def publish(self) -> None:
        """Send all rows that publications have not sent."""
        for stage in self.runtime.publications:
            while not stage.catch_up(self.clock()):
                pass

    def take_in(self) -> None:
        """Take in requested replays and operations, as bronze's job does between two batches."""
        take_in_requests(self.layout, self.runtime, self.clock, lambda _: None)
        self.catch_up()

    def begin_load(
        self, *topics: str, files: str | None = None, into: str | None = None, **more: Any
    ) -> LoadRequest:
        """Request a load ``into`` a source, as a person does."""
        source = self.pipeline.sources[self.only(into)]
        now = self.clock()
        id_ = new_id(now)
        place = DeployedSource(self.layout.storage, self.pipeline.name, source)
        folder = loads.load_folder(self.layout, id_)
        wanted = LoadWanted(files, topics)
        plan = connector_of(source).plan_load(
            place, wanted, folder, lambda: nullcontext(self.spark), now
        )
        request = LoadRequest(id_, source.name, plan, "a test", now, **more)
        send_request(self.layout, LOAD, request.document(), now, id_)
        take_in_requests(self.layout, self.runtime, self.clock, lambda _: None)
        return request

    def change_load(self, load: LoadRequest, **changes: Any) -> None:
        """Change a load, as a person does."""
        asked = {"load": load.id, "changes": changes}
        send_request(self.layout, LOAD_CHANGE, asked, self.clock())
        take_in_requests(self.layout, self.runtime, self.clock, lambda _: None)

    def loading(self) -> Loading:
        """The part of bronze's job that carries out loads."""
        control = RunControl(
            self.layout, self.pipeline.name, Lease(self.layout, LAYERS, self.pipeline.name)
        )
        publications = Publications(self.runtime.publications, time.monotonic)
        return Loading(
            DriverRun(
                *(Task(self.pipeline, str(self.root)), self.layout, self.epoch, self.spark),
                self.runtime,
                catch_up=CatchUp(self.runtime, publications, self.clock),
                publications=publications,
                progress=JobProgress.begin(
                    self.pipeline, self.layout, "fused", self.epoch, self.runtime
                ),
                control=control,
                report=lambda _: None,
                say=lambda _: None,
                tell=lambda _: None,
                clock=self.clock,
            )
        )

    def load(self, steps: int | None = None) -> None:
        """Take ``steps`` steps of the open loads, or all (None)."""
        loading = self.loading()
        while (steps is None or steps > 0) and loading.is_open():
            loading.step(dict, lambda: False)
            steps = None if steps is None else steps - 1
        loading.close()

    @property
    def bronze(self) -> Table:
        return self.bronze_of(None)

    def bronze_of(self, source: str | None) -> Table:
        """The current bronze table of a source."""
        return self.runtime.table(BRONZE.path(self.only(source)))

    def bronze_loads(self, source: str | None = None) -> Sequence[Load]:
        return BronzePayload.of(self.bronze_of(source).refresh()).loads

    def decisions(self) -> Decisions:
        return ControlTable.of(self.layout.storage, self.pipeline.name).refresh()

    def operations(self, source: str | None = None) -> Sequence[Operation]:
        """The operations that the tables of a source carry out."""
        return self.decisions().operations_of(self.only(source))

    def drain(self) -> None:
        self.operate("drain")
        self.catch_up()


def begun(loops: dict[str, SourceLoop]) -> dict[str, SourceLoop]:
    """The loops, whose sources are open."""
    try:
        for loop in loops.values():
            loop.begin()
    except BaseException:
        for loop in loops.values():
            loop.close()
        raise
    return loops
