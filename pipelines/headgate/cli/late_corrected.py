"""Late rows of results that a published backfill has corrected: a replay would take the correction
back, so it leaves them waiting."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from headgate.cli.driving import require_java
from headgate.cli.log_file import divert_to
from headgate.cli.rows import as_text
from headgate.cli.screen import waiting as shown_waiting
from headgate.commands import pipeline_command
from headgate.declaration.contracts.operator import columns_of, operator_of
from headgate.declaration.kinds import GOLD
from headgate.declaration.model import GoldTable, Pipeline
from headgate.errors import HeadgateError
from headgate.insight.querying.sql import select
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.decisions import ControlTable
from headgate.lake.tables.payloads.gold import GoldPayload
from headgate.lake.tables.table import Table

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class LeftOut:
    """Late rows of ``table`` in the windows ``[first, end)`` wait: the backfill ``backfill`` has
    corrected these results. ``operation`` is the replay that has left them out last; None if none
    has yet."""

    table: str
    backfill: str
    first: datetime
    end: datetime
    operation: int | None = None

    def document(self) -> dict[str, object]:
        return {**vars(self), "first": self.first.isoformat(), "end": self.end.isoformat()}

    @property
    def why(self) -> str:
        return (
            f"gold.{self.table}: backfill {self.backfill} has corrected results from "
            f"{as_text(self.first)} to {as_text(self.end)}, and a replay of their late rows would "
            "take this back"
        )

    @property
    def remedy(self) -> str:
        """What to type to replay other rows, and what to replay these."""
        name, first, end = f"gold.{self.table}", as_text(self.first), as_text(self.end)
        before = pipeline_command("late replay", name, "--to", first)
        after = pipeline_command("late replay", name, "--from", end)
        span = ("--from", first, "--to", end)
        back = pipeline_command("backfill", name, *span, "--publish")
        return (
            f"replay other rows: {before}, {after}; or compute these results by the pipeline's own "
            f"declaration first: {back}, then replay, and publish the correction again: it then "
            "has the late rows, too"
        )


def left_out(declared: Pipeline, layout: Layout) -> Iterator[LeftOut]:
    """What earlier replays have left waiting, of each gold table. No data file is read."""
    for name in declared.gold:
        payload = _payload(declared, layout, name)
        if payload.left_out:
            ids = _ids(declared, layout)
            for number, each in payload.left_out.items():
                first, end = map(_time, (each["first"], each["end"]))
                yield LeftOut(name, ids[int(number)], first, end, each["operation"])


def require_not_corrected(
    declared: Pipeline, layout: Layout, table: GoldTable, wanted: dict[str, Any]
) -> None:
    """Raises HeadgateError if a replay would take back what a published backfill has corrected. It
    starts Spark only if one of the selected rows is in the range of such a backfill."""
    payload = _payload(declared, layout, table.name)
    if not payload.backfills or not _is_near(declared, layout, table, payload, wanted):
        return
    require_java()
    divert_to(layout, "late")
    from headgate.driver.session import passing_session
    from headgate.flow.gold.stage import gold_stage_of

    opened = partial(Table, layout.storage, pipeline=declared.name)
    with (
        shown_waiting("comparing with published backfills"),
        passing_session("headgate-late", os.cpu_count() or 2) as spark,
    ):
        found = gold_stage_of(spark, opened, table).left_out(wanted).collect()
    earlier = operator_of(table).reach(table.operator)
    for number, (first, end) in payload.corrected(found, earlier).items():
        id_ = _ids(declared, layout)[int(number)]
        corrected = LeftOut(table.name, id_, _time(first), _time(end))
        raise HeadgateError(f"{corrected.why}; nothing was replayed", remedy=corrected.remedy)


def _is_near(
    declared: Pipeline,
    layout: Layout,
    table: GoldTable,
    payload: GoldPayload,
    wanted: dict[str, Any],
) -> bool:
    """Whether a late row that waits and has a selected time is in the range of a backfill."""
    begin, earlier = next(iter(columns_of(table))), operator_of(table).reach(table.operator)
    spans = (
        f"epoch_us({begin}) BETWEEN {first - earlier} AND {last + payload.longest}"
        for first, last in _spans(payload)
    )
    near = " OR ".join(spans)
    sql = f"SELECT count(*) FROM late.{table.name} WHERE replayed IS NULL AND ({near})"
    for bound, sign in (("from", ">="), ("to", "<")):
        if wanted[bound] is not None:
            sql += f" AND epoch_us(_event_time) {sign} {wanted[bound]}"
    return bool(select(declared, layout, sql)[1][0][0])


def _spans(payload: GoldPayload) -> Iterator[tuple[int, int]]:
    for first, last in payload.backfills.values():
        yield int(first), int(last)


def _payload(declared: Pipeline, layout: Layout, name: str) -> GoldPayload:
    """Raises FileNotFoundError if there is no table."""
    gold = Table(layout.storage, GOLD.path(name), pipeline=declared.name)
    return GoldPayload.of(gold.refresh())


def _ids(declared: Pipeline, layout: Layout) -> dict[int, str]:
    """The ids of the published backfills, by the number of the operation."""
    operations = ControlTable.of(layout.storage, declared.name).refresh().operations
    return {o.number: str(o.document["backfill"]) for o in operations if "backfill" in o.document}


def _time(micros: int) -> datetime:
    return _EPOCH + timedelta(microseconds=micros)
