"""Checks from commit metadata that every event is accounted for. No data file is read and no JVM is
started."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from headgate.declaration.contracts.operator import operator_of
from headgate.declaration.contracts.source import connector_of
from headgate.declaration.graph import Graph, graph_of
from headgate.declaration.kinds import GOLD, kind_of
from headgate.declaration.model import GoldTable, Pipeline, SilverTable
from headgate.flow.sources.deployed_source import DeployedSource
from headgate.insight.ledger.account import (
    AcceptedGap,
    Difference,
    GoldAccount,
    Ledger,
    SilverAccount,
    SourceAccount,
)
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.live_files import live_files
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.payloads.silver import records_in, rows_in
from headgate.lake.tables.snapshot import (
    Positions,
    TablePosition,
    as_of,
    followed_by,
    late_as_of,
    newest,
    silver_read,
)


def balance(layout: Layout, pipeline: Pipeline) -> Ledger:
    """Account for every event of a pipeline, running or not.

    Each table is compared with its upstream table as of the table's own batch id. Raises
    HeadgateError if there are no tables, LogGapError if a log is damaged.
    """
    at, graph = newest(layout, pipeline), graph_of(pipeline)
    silver = tuple(_silver(t, at) for t in pipeline.silver.values())
    tables = chain(at.bronze.values(), at.silver.values(), at.gold.values())
    return Ledger(
        pipeline=pipeline.name,
        generation=max(each.state.generation for each in tables),
        sources=tuple(
            _source(
                DeployedSource(layout.storage, pipeline.name, source),
                at.bronze[name],
                [each for each in silver if each.source == name],
            )
            for name, source in pipeline.sources.items()
        ),
        silver=silver,
        gold=tuple(_gold(g, graph, at) for g in pipeline.gold.values()),
        differences=tuple(_differences(pipeline, at)),
    )


def _source(
    place: DeployedSource, bronze: TablePosition, silver: Sequence[SilverAccount]
) -> SourceAccount:
    files = connector_of(place.source).unread(place)
    return SourceAccount(
        source=place.source.name,
        n=bronze.n,
        read=bronze.total("read"),
        replayed=bronze.total("replayed"),
        duplicate=bronze.total("duplicate"),
        differing=bronze.total("differing"),
        quarantined=max((each.quarantined for each in silver), default=0),
        corrected=max((each.corrected for each in silver), default=0),
        files=None if files is None else tuple(files),
        gaps=tuple(AcceptedGap(**gap) for gap in BronzePayload.of(bronze.state).gaps),
    )


def _silver(declared: SilverTable, at: Positions) -> SilverAccount:
    silver, bronze = at.silver[declared.name], at.bronze[declared.source]
    above = as_of(bronze, silver.n)
    return SilverAccount(
        table=declared.name,
        source=declared.source,
        n=silver.n,
        lag=bronze.n - silver.n,
        read=above.total("read"),
        duplicate=silver.total("duplicate"),
        quarantined=silver.total("quarantined"),
        corrected=above.total("corrected"),
        rejected=silver.total("rejected"),
        silver=silver.total("silver"),
        filtered=silver.total("filtered"),
        replaced=silver.total("replaced"),
        **({key: silver.total(key) for key in _OF_ITEMS} if declared.explode else {}),
    )


_OF_ITEMS = ("empty", "exploded", "items")


def _gold(declared: GoldTable, graph: Graph, at: Positions) -> GoldAccount:
    gold, path = at.gold[declared.name], GOLD.path(declared.name)
    return GoldAccount(
        table=declared.name,
        source=", ".join(graph.sources_of(path)),
        silver=declared.reads or ", ".join(declared.inputs),
        n=gold.n,
        lag=at.numbering[graph.numbered_by(path).name].n - gold.n,
        pairs=gold.total("pairs"),
        folded=gold.total("folded") + gold.total("replayed"),
        late=gold.total("late") - gold.total("replayed"),
        replayed=gold.total("replayed"),
        rows=_rows(gold),
        final=gold.total("final"),
    )


def _differences(pipeline: Pipeline, at: Positions) -> Iterator[Difference]:
    held = _Laws()
    tables = at.bronze, at.quarantine, at.silver, at.rejected, at.late
    for position in chain.from_iterable(each.values() for each in tables):
        key = kind_of(position.table.name).counted_as
        assert key is not None
        held.check(position, f"rows of its files = {key}", position.total(key), _rows(position))
    for name, silver in at.silver.items():
        _check_silver(silver, pipeline.silver[name], at, held)
        if name in at.rejected:
            side = as_of(at.rejected[name], silver.state.n).total("rejected")
            law = "rejected = rows of its table of rejected rows"
            held.check(silver, law, silver.total("rejected"), side)
    for declared in pipeline.gold.values():
        _check_gold(declared, at, held)
    yield from held.broken


class _Laws:
    def __init__(self) -> None:
        self.broken: list[Difference] = []

    def check(self, position: TablePosition, law: str, expected: int, found: int) -> None:
        if expected != found:
            table, n = position.table.name, position.state.n
            self.broken.append(Difference(table, law, n, expected, found))


def _check_silver(silver: TablePosition, declared: SilverTable, at: Positions, laws: _Laws) -> None:
    above = as_of(at.bronze[declared.source], silver.state.n)
    side = as_of(at.quarantine[declared.source], silver.state.n)
    if above.state.n != silver.state.n:
        laws.check(silver, "n is a batch of bronze", above.state.n, silver.state.n)
    rows, law, replacing = rows_in(silver.state.total), "rejected + silver + filtered", "replaced"
    if declared.explode is not None:
        laws.check(silver, f"items = {law}", silver.total("items"), rows)
        law, replacing = "empty + exploded", "replacing"
    law = f"read = duplicate + quarantined + {law}"
    laws.check(silver, law, above.total("read"), records_in(silver.state.total))
    # A copy that takes the place of a rejected row is a duplicate to bronze.
    duplicates = silver.total("duplicate") + silver.total(replacing)
    laws.check(silver, "duplicates of bronze", above.total("duplicate"), duplicates)
    laws.check(
        silver,
        "quarantined = rows of quarantine",
        silver.total("quarantined"),
        side.total("quarantined"),
    )


def _check_gold(declared: GoldTable, at: Positions, laws: _Laws) -> None:
    gold = at.gold[declared.name]
    outcomes = gold.total("folded") + gold.total("late")
    laws.check(gold, "pairs = folded + late", gold.total("pairs"), outcomes)
    if not declared.is_rollup:
        late = late_as_of(at.late[declared.name], gold)
        laws.check(gold, "late = rows of its late table", gold.total("late"), late.total("late"))
        replayed = late.total("replayed")
        law = "replayed = marked rows of its late table"
        laws.check(gold, law, gold.total("replayed"), replayed)
    laws.check(gold, "final rows = rows of its final files", gold.total("final"), _final_rows(gold))
    windows = operator_of(declared).pairs_per_row(declared.operator)
    if declared.where is None and windows is not None:
        # Every row is selected and is in exactly this many windows.
        if declared.reads is not None:
            rows = followed_by(at.gold[declared.reads], gold).total("final")
            law = f"pairs = final rows of gold.{declared.reads} × windows a row"
        else:
            read = silver_read(declared, gold.state)
            above = (as_of(at.silver[each], n) for each, n in read.items())
            rows = sum(each.total("silver") for each in above)
            law = "pairs = silver rows × windows a row"
        laws.check(gold, law, rows * windows, gold.total("pairs"))


def _rows(position: TablePosition) -> int:
    return sum(f.rows for f in live_files(position.table.handle))


def _final_rows(position: TablePosition) -> int:
    files = live_files(position.table.handle)
    return sum(f.rows for f in files if f.is_final)
