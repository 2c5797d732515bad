"""Silver: a pure function of one conformed record."""

from __future__ import annotations

from dataclasses import dataclass

from tests.oracle.rules import Row, SilverRules
from tests.oracle.stamps import Stamped


@dataclass(frozen=True)
class Offered:
    """What passes a table's ``where``. ``broken`` are the rules that it breaks, in their order."""

    record: Stamped
    row: Row
    broken: tuple[str, ...]
    is_rejected: bool


def offer(record: Stamped, rules: SilverRules) -> Offered | None:
    """None where the table's ``where`` is false or null."""
    row = dict(record.fields)
    row.update({name: compute(record.fields) for name, compute in rules.columns.items()})
    if rules.where is not None and not rules.where(row):
        return None
    for name in rules.drop:
        del row[name]
    row |= {
        "_event_id": record.event_id,
        "_partition": record.source.partition,
        "_offset": record.source.offset,
        "_clock": record.clock,
        "_event_time": record.event_time,
    }
    broken = tuple(name for name, rule in rules.suite.items() if rule.is_met(row) is False)
    if rules.suite:
        row["_warnings"] = list(broken) or None
    is_rejected = any(rules.suite[name].rejects for name in broken)
    return Offered(record, row, broken, is_rejected)
