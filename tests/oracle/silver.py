"""Silver: a pure function of one conformed record."""

from __future__ import annotations

from tests.oracle.rules import Row, SilverRules
from tests.oracle.stamps import Stamped


def conform(record: Stamped, rules: SilverRules) -> Row | None:
    """The record's silver row, or None where the table's ``where`` is false or null."""
    row = dict(record.fields)
    row.update({name: compute(record.fields) for name, compute in rules.columns.items()})
    if rules.where is not None and not rules.where(row):
        return None
    for name in rules.drop:
        del row[name]
    return row | {
        "_event_id": record.event_id,
        "_partition": record.source.partition,
        "_offset": record.source.offset,
        "_clock": record.clock,
        "_event_time": record.event_time,
    }
