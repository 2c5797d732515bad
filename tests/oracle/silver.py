"""Silver: a pure function of one conformed record and, with rules, of its earlier copies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tests.oracle.rules import Row, Rules, SilverRules
from tests.oracle.stamps import Stamped, are_near


@dataclass(frozen=True)
class Offered:
    """A row that passes a table's ``where``. ``broken`` are the rules that it breaks, in their
    order."""

    record: Stamped
    row: Row
    broken: tuple[str, ...]
    is_rejected: bool


def offer(record: Stamped, rules: SilverRules) -> Offered | None:
    """The row of a record for a table; None if the table's ``where`` is false or null."""
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
        "_item": 0,
        "_clock": record.clock,
        "_event_time": record.event_time,
    }
    broken = tuple(name for name, rule in rules.suite.items() if rule.is_met(row) is False)
    if rules.suite:
        row["_warnings"] = list(broken) or None
    is_rejected = any(rules.suite[name].rejects for name in broken)
    return Offered(record, row, broken, is_rejected)


def replacements(stamped: Iterable[Stamped], table: SilverRules, rules: Rules) -> Iterator[Offered]:
    """The duplicates that replace rejected rows: the first copy that meets the rules."""
    if rules.within is None or rules.differing == "keep" or not table.suite:
        return
    silver: list[Stamped] = []
    rejected: list[Stamped] = []
    for record in stamped:
        if record.reason:
            continue
        copies = (
            [one for one in found if is_copy(one, record, rules)] for found in (silver, rejected)
        )
        in_silver, in_rejected = copies
        is_loaded = record.source.arrival is not None
        if record.duplicate and (is_loaded or in_silver or not in_rejected):
            continue
        offered = offer(record, table)
        if offered is None:
            continue
        if not offered.is_rejected:
            silver.append(record)
            if record.duplicate:
                yield offered
        elif not record.duplicate:
            rejected.append(record)


def is_copy(one: Stamped, other: Stamped, rules: Rules) -> bool:
    ids = ((each.source.partition, each.event_id) for each in (one, other))
    first, second = ids
    return first == second and are_near(one, other, rules)
