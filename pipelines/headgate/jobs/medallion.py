"""The stages of a pipeline that one job owns, and how they move forward together."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from pyspark.sql import SparkSession

from headgate.bronze.stage import BronzeStage
from headgate.gold.stage import GoldStage
from headgate.jobs.errors import DefinitionChangedError
from headgate.publish.stage import PublishStage
from headgate.silver.stage import SilverStage
from headgate.sources.files.log import FilesLog
from headgate.spec.model import Pipeline
from headgate.storage.layout import Layout
from headgate.tables.table import Table


class Medallion:
    """Bronze, silver and gold of one pipeline; ``layers`` says which of them this job writes."""

    def __init__(
        self, spark: SparkSession, pipeline: Pipeline, layout: Layout, layers: Sequence[str]
    ) -> None:
        source, storage, name = pipeline.source, layout.storage, pipeline.name
        self._pipeline = pipeline
        self.layers = tuple(layers)
        self.files_log = FilesLog(storage, name, source.name) if source.files else None
        self.bronze = BronzeStage(spark, storage, name, source)
        self.silver = SilverStage(spark, storage, name, source, pipeline.silver_of(source.name))
        self.gold = {g.name: GoldStage(spark, storage, name, g) for g in pipeline.gold.values()}
        published = (PublishStage(spark, storage, pipeline, p) for p in pipeline.publish.values())
        self.publications = tuple(stage for stage in published if stage.layer in layers)

    def create(self) -> None:
        """Make the tables that are missing, of every layer: each is made empty, by whoever comes
        first. Raises DefinitionChangedError if they were made from another declaration."""
        digest = self._pipeline.digest
        if self.files_log is not None:
            self.files_log.create(digest)
        self.bronze.create(digest)
        self.silver.create(digest)
        for gold in self.gold.values():
            gold.create(digest)
        for publication in self.publications:
            publication.create()
        for table in self._all_tables():
            if (found := table.refresh().definition) != digest:
                raise DefinitionChangedError(self._pipeline, table.name, found)

    def fence(self, epoch: int) -> None:
        """Shut out every older driver from every table of this job, before any stage runs."""
        for table in self.owned():
            table.fence(epoch)

    def owned(self) -> tuple[Table, ...]:
        by_layer = {
            "bronze": (*self._logs(), self.bronze.table),
            "silver": self.silver.tables,
            "gold": tuple(t for g in self.gold.values() for t in g.tables),
        }
        positions = (publication.table for publication in self.publications)
        return (*(t for layer in self.layers for t in by_layer[layer]), *positions)

    def _all_tables(self) -> tuple[Table, ...]:
        gold = tuple(t for g in self.gold.values() for t in g.tables)
        return (*self._logs(), self.bronze.table, *self.silver.tables, *gold)

    def _logs(self) -> tuple[Table, ...]:
        """The files log; a topic is a log already."""
        return () if self.files_log is None else (self.files_log.table,)

    def upstream(self) -> tuple[Table, ...]:
        """Readers of their own for the tables from which this job's layers are fed."""
        if "silver" in self.layers:
            return (self.bronze.table.reader(),)
        return tuple(gold.silver.reader() for gold in self.gold.values())

    def catch_up(self, now: datetime) -> None:
        """Bring the silver and gold tables of this job to where the table above them is."""
        if "silver" in self.layers:
            self.silver.catch_up(self.bronze.table.refresh().n, now)
        if "gold" in self.layers:
            for gold in self.gold.values():
                gold.catch_up(gold.silver.refresh().n, now)
