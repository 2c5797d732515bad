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


def items_of(record: Stamped, rules: SilverRules) -> list[Row]:
    """The fields of each row that a record becomes before ``where``."""
    explode, fields = rules.explode, record.fields
    if explode is None:
        return [fields]
    return [fields | {explode.name: item} for item in explode.items(fields)]


def offer(record: Stamped, rules: SilverRules) -> Iterator[Offered]:
    """The rows of a record for a table, without those for which ``where`` is false or null."""
    for place, fields in enumerate(items_of(record, rules)):
        row = fields | {name: compute(fields) for name, compute in rules.columns.items()}
        if rules.where is None or rules.where(row):
            yield offer_row(record, place, row, rules)


def offer_row(record: Stamped, place: int, row: Row, rules: SilverRules) -> Offered:
    """``row`` is the one at ``place`` among those of the record."""
    exploded = () if rules.explode is None else {rules.explode.array} & {*row} - {*rules.columns}
    for name in {*rules.drop, *exploded}:
        del row[name]
    row |= {
        "_event_id": record.event_id,
        "_partition": record.source.partition,
        "_offset": record.source.offset,
        "_item": place,
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
    silver: list[Offered] = []
    rejected: list[Offered] = []
    for offered in (each for one in stamped if not one.reason for each in offer(one, table)):
        record = offered.record
        copies = (
            [one for one in found if is_copy(one, offered, rules)] for found in (silver, rejected)
        )
        in_silver, in_rejected = copies
        is_loaded = record.source.arrival is not None
        if record.duplicate and (is_loaded or in_silver or not in_rejected):
            continue
        if not offered.is_rejected:
            silver.append(offered)
            if record.duplicate:
                yield offered
        elif not record.duplicate:
            rejected.append(offered)


def is_copy(one: Offered, other: Offered, rules: Rules) -> bool:
    first, second = (
        (each.record.source.partition, each.record.event_id, each.row["_item"])
        for each in (one, other)
    )
    return first == second and are_near(one.record, other.record, rules)
