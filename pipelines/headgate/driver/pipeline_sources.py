"""The loops of a pipeline's sources. No source waits for another."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from functools import partial

from pyspark.sql import SparkSession

from headgate.declaration.contracts.source import connector_of
from headgate.declaration.kinds import BRONZE, kind_of
from headgate.driver.error_translation import translate_error
from headgate.driver.runtime import PipelineRuntime
from headgate.driver.source_loop import READ_FAILURES, SourceLoop, never
from headgate.errors import is_disk_full
from headgate.flow.bronze.batches import ScratchLostError
from headgate.flow.sources.errors import SourceError
from headgate.flow.sources.micro_batches import SourceContext
from headgate.lake.control.driver_reports import Outage
from headgate.lake.storage.layout import Layout
from headgate.machine.jvm import has_ended


def source_loops(
    spark: SparkSession,
    layout: Layout,
    runtime: PipelineRuntime,
    clock: Callable[[], datetime],
    *,
    cores: int = 2,
    accept_gap: bool = False,
    once: bool = False,
    monotonic: Callable[[], float] = time.monotonic,
    check: Callable[[], None] = lambda: None,
    waits: Callable[[str, Outage], None] = lambda *_: None,
) -> dict[str, SourceLoop]:
    """A loop for each source of a pipeline whose tables are open, by name, but for those whose
    bronze is damaged. A source that does not
    answer is tried again for ever, or with ``once`` for as long as its kind says. One of several
    sources that cannot be read is held; the only one raises its error."""
    pipeline, loops = runtime.pipeline, dict[str, SourceLoop]()
    holds = partial(is_of_the_source, spark, layout) if len(pipeline.sources) > 1 else never
    for name in runtime.readable:
        source = pipeline.sources[name]
        connector = connector_of(source)
        context = SourceContext(
            *(spark, pipeline.name, pipeline.file, source),
            tables={kind_of(s.table.name).name: s.table.twin() for s in runtime.kept[name]},
            epoch=runtime.table(BRONZE.path(name)).epoch,
            clock=clock,
            cores=cores,
            accept_gap=accept_gap,
            monotonic=monotonic,
            check=check,
        )
        loops[name] = SourceLoop(
            *(name, partial(connector.micro_batches, context), runtime.bronze[name]),
            *(clock, monotonic),
            limit=connector.unreachable_after(source.reads) if once else None,
            holds=holds,
            waits=partial(waits, name),
        )
    return loops


def is_of_the_source(spark: SparkSession, layout: Layout, error: Exception) -> bool:
    """Whether an error concerns a source alone. Errors of the machine and of tables end the
    driver."""
    if isinstance(error, SourceError):
        return True
    if isinstance(error, ScratchLostError) or not isinstance(error, READ_FAILURES):
        return False
    has_cause = translate_error(error, layout, java_has_ended=has_ended(spark)) is not None
    return not has_cause and not is_disk_full(error)
