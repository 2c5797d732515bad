"""The declaration of a pipeline with joins, for tests without Spark."""

from __future__ import annotations

from headgate.declaration.load import load
from headgate.declaration.model import Pipeline

DECLARATION = """\
pipeline: shop
sources:
  raw:
    files: {path: landing, format: json}
    record:
      event_id: [id]
      event_time: {column: at}
      schema:
        id: string
        kind: string
        user: string
        amount: int
        tags: array<string>
        at: timestamp
  visits:
    files: {path: visited, format: json}
    record:
      event_id: [id]
      event_time: {column: at}
      schema: {id: string, user: string, at: timestamp}
silver:
  clicks: {from: raw, where: "kind = 'click'"}
  purchases: {from: raw, columns: {buyer: user}, where: "kind = 'purchase'"}
  seen: {from: visits}
gold:
  bought:
    join:
      left: clicks
      right: purchases
      on: [user]
      within: 1 hour
    columns:
      who: clicks.user
      paid: purchases.amount
    allowed_lateness: 20 seconds
"""

ROLLUP = """\
  paid_per_day:
    from: bought
    window: {tumbling: 1 day}
    by: [who]
    measures: {pairs: count(*), paid: sum(paid), last: max(bought.event_time)}
    allowed_lateness: 1 minute
"""

FOLD = """\
  per_hour:
    from: clicks
    window: {tumbling: 1 hour}
    measures: {clicks: count(*)}
    allowed_lateness: 20 seconds
"""


def changed(*changes: tuple[str, str], more: str = "") -> str:
    """The text of the declaration after some changes, with ``more`` gold tables."""
    text = DECLARATION + more
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return text


def declared(*changes: tuple[str, str], more: str = "") -> Pipeline:
    """The pipeline with the text of ``changed``. Raises DeclarationError."""
    return load("/shop/pipelines/shop.yml", text=changed(*changes, more=more))
