"""From bronze rows to silver rows: frames in, frames out."""

from __future__ import annotations

import re

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from headgate.declaration.contracts.source import connector_of
from headgate.declaration.model import Explode, Record, SilverTable, Source
from headgate.declaration.names import ITEM, POSITION, SILVER_POSITION, WARNINGS
from headgate.flow.silver.rules import MASK, RowRules
from headgate.lake.tables.frames import Projection, struct_type
from headgate.lake.tables.payloads.silver import OUTCOMES
from headgate.lake.tables.record_shape import IGNORED

REJECTED = "_rejected"
"""Whether a row breaks a rule that keeps it out of silver: a column that only staged rows have."""
_ITEM, _ITEMS, _PLACE, _SIZE = f"_{ITEM}", "_items", "_place", "_size"


def silver_type(table: SilverTable, record: Record) -> StructType:
    """The declared columns, then those of Headgate: event id, position, watermark at arrival, event
    time, arrival and, with a suite, the ids of broken rules. Structs are last."""
    return struct_type(table.row(record))


class SilverTransform:
    """The rules of one silver table. Its expressions are built once: building them for every
    batch costs more than transforming a small one."""

    def __init__(self, table: SilverTable, record: Record) -> None:
        self.suite = table.suite.digest if table.suite else ""
        has_items = table.explode is not None or _may_read_item(table)
        ours = _ours() | ({_ITEM: F.lit(0).alias(_ITEM)} if has_items else {})
        self._flat = Projection(F.col("record.*"), *ours.values())
        self._exploded: tuple[Projection, ...] = _exploded(table.explode) if table.explode else ()
        derived = {c.name: F.expr(f"cast(({c.expression}) as {c.type})") for c in table.columns}
        kept = [*record.types, *ours]
        if table.explode:
            kept += [table.explode.name, _PLACE, _SIZE]
            derived[_ITEM] = F.coalesce(_PLACE, F.lit(0))
        self._derived = Projection(
            *(
                derived.get(name, F.col(f"`{name}`")).alias(name)
                for name in dict.fromkeys([*kept, *derived])
            )
        )
        rules = RowRules(table.suite) if table.suite else None
        self._masked = Projection("*", rules.mask().alias(MASK)) if rules else None
        self._outcome = Projection("*", _outcome(table, rules).alias("_outcome"))
        self._counts = _counts(table)
        self._is_kept = _is("silver") | _is("rejected") if rules else _is("silver")
        computed = {WARNINGS: rules.warnings()} if rules else {}
        if not has_items:
            # Only the last step has the column: each column of each step costs CPU in each batch.
            computed[_ITEM] = F.lit(0)
        names = silver_type(table, record).fieldNames()
        columns = [computed.get(name, F.col(f"`{name}`")).alias(name) for name in names]
        divided = [_is("rejected").alias(REJECTED)] if rules else []
        self._columns = Projection(*columns, *divided)

    def conformed(self, bronze: DataFrame, counts: Observation) -> DataFrame:
        """The rows of ``silver_type`` among some bronze rows. With a suite, the rows that it
        rejects are among them, and the column ``REJECTED`` says which they are. ``counts`` observes
        how many rows had each of ``OUTCOMES``, once the frame has been computed. Rows with other
        outcomes than ``silver`` and ``rejected`` are only counted."""
        rows = self._flat.of(bronze)
        for step in self._exploded:
            rows = step.of(rows)
        rows = self._derived.of(rows)
        rows = self._masked.of(rows) if self._masked else rows
        rows = self._outcome.of(rows)
        return self._columns.of(rows.observe(counts, *self._counts).where(self._is_kept))


def depends_on_values_alone(source: Source, table: SilverTable) -> bool:
    """Whether the result of the table's rules depends only on the bytes of a record. A CSV line
    depends on its file's header; an expression may use a record's position, or what it says about
    its arrival."""
    rules = table.suite.rules if table.suite else ()
    texts = [*(column.expression for column in table.columns), table.where or ""]
    texts += [rule.condition for rule in rules]
    is_csv = connector_of(source).format(source.reads) == "csv"
    return not is_csv and not any(_ELSEWHERE.search(text) for text in texts)


def _may_read_item(table: SilverTable) -> bool:
    """Whether a rule reads the column ``_ITEM``."""
    return table.suite is not None and any(_ITEM in rule.condition for rule in table.suite.rules)


_ELSEWHERE = re.compile("_(partition|offset|clock|arrived)", re.IGNORECASE)


def _outcome(table: SilverTable, rules: RowRules | None) -> Column:
    passes = F.coalesce(F.expr(table.where), F.lit(False)) if table.where else F.lit(True)
    outcome = F.when(F.col("_duplicate"), _number("duplicate"))
    outcome = outcome.when(F.col("_reason") == IGNORED, _number("filtered"))
    outcome = outcome.when(F.col("_reason").isNotNull(), _number("quarantined"))
    if table.explode and table.explode.empty == "drop":
        outcome = outcome.when(F.col(_PLACE).isNull(), _number("empty"))
    if rules is None:
        return outcome.when(passes, _number("silver")).otherwise(_number("filtered"))
    outcome = outcome.when(~passes, _number("filtered"))
    return outcome.when(rules.rejects(), _number("rejected")).otherwise(_number("silver"))


def _exploded(explode: Explode) -> tuple[Projection, Projection]:
    """Each record once for each item, with the item, its ``_PLACE`` and the number of rows that the
    record becomes (``_SIZE``). A record without items, and one that does not conform, becomes one
    row, whose ``_PLACE`` is null."""
    conforms = ~F.col("_duplicate") & F.col("_reason").isNull()
    items = F.when(conforms, F.col(explode.array))
    sized = Projection("*", items.alias(_ITEMS), F.greatest(F.size(items), F.lit(1)).alias(_SIZE))
    return sized, Projection("*", F.posexplode_outer(_ITEMS).alias(_PLACE, explode.name))


def _counts(table: SilverTable) -> list[Column]:
    """What ``SilverTransform.conformed`` observes. The items that the arrays have are counted
    beside the rows that they became."""
    outcomes = [outcome for outcome in OUTCOMES if outcome != "empty" or table.explode]
    outcomes = [outcome for outcome in outcomes if outcome != "rejected" or table.suite]
    counts = [F.count(F.when(_is(outcome), 1)).alias(outcome) for outcome in outcomes]
    if table.explode is None:
        return counts
    is_item = _is("silver") | _is("filtered") | _is("rejected")
    is_first = is_item & (F.col(_ITEM) == 0)
    return [
        *counts,
        F.count(F.when(is_first, 1)).alias("exploded"),
        F.sum(F.when(is_first, F.col(_SIZE))).alias("items"),
    ]


def _number(outcome: str) -> Column:
    """Outcomes are numbers, because comparing numbers is faster than comparing names."""
    return F.lit(OUTCOMES.index(outcome))


def _is(outcome: str) -> Column:
    return F.col("_outcome") == _number(outcome)


def _ours() -> dict[str, Column]:
    taken = {
        "_event_id": "event_id",
        **dict(zip(SILVER_POSITION, POSITION, strict=True)),
        "_clock": "clock",
        "_event_time": "event_time",
        "_arrival_clock": "arrival_clock",
        "_rescued": "rescued",
        "_duplicate": "duplicate",
        "_reason": "reason",
    }
    arrived = F.coalesce("arrived", "seen_at").alias("_arrived")
    return {**{n: F.col(c).alias(n) for n, c in taken.items()}, "_arrived": arrived}
