"""The freshness of a pipeline's tables in ``headgate status``."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from headgate.errors import HeadgateError

if TYPE_CHECKING:
    from headgate.declaration.model import Pipeline
    from headgate.storage.layout import Layout
    from headgate.supervision.freshness import Freshness


def describe_freshness(
    layout: Layout, declared: Pipeline, now: datetime
) -> tuple[str, dict[str, Any] | None]:
    """The freshness as text and as plain values. If a table is damaged, the text is a message, so
    that the jobs are still shown."""
    from headgate.supervision.freshness import freshness

    try:
        fresh = freshness(layout, declared)
    except HeadgateError as error:
        return f"how fresh gold is cannot be read: {error}", None
    return in_words(fresh, now), fresh.document(now)


def in_words(fresh: Freshness, now: datetime) -> str:
    """When gold changed (per table if there are several; nothing if there is none), the watermark's
    lag, the last record."""
    from headgate.declaration.quantities import span

    def ago(at: datetime | None) -> str:
        return "not known" if at is None else f"{span(now - at)} ago"

    gold = ago(fresh.changed)
    if len(fresh.gold) > 1:
        gold += f" ({', '.join(f'{table} {ago(at)}' for table, at in fresh.gold.items())})"
    clock = "not known"
    if fresh.clock is not None:
        way = "ahead" if fresh.clock > now else "behind"
        clock = f"{span(abs(now - fresh.clock))} {way}"
    told = [f"gold changed {gold}"] if fresh.gold else []
    return "; ".join([*told, f"watermark {clock}", f"last record {ago(fresh.arrived)}"])
