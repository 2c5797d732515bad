"""The keys of a gold table with the greatest figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headgate.declaration.contracts.operator import operator_of
from headgate.insight.dashboard.questions.cells import cells, exact_of, text_of
from headgate.insight.dashboard.questions.selection import Selection, chosen_rows, span
from headgate.insight.dashboard.questions.sql import Condition, all_of, listed
from headgate.insight.dashboard.questions.view import Figure, GoldView
from headgate.insight.querying.sandbox import quoted

MOST = 50


def top(
    view: GoldView, figure: Figure, by: tuple[str, ...], selection: Selection, most: int = 10
) -> dict[str, Any]:
    """``over`` is the function that combines the windows: that of the figure, or the mean if it
    cannot be combined. ``rows`` have the values of the keys as they are shown, their ``exact``
    texts for a filter (null if there is none), the figure and, for a sum, its ``share`` of the
    total. Of overlapping windows, only a set without overlaps counts."""
    facts, chosen = view.facts, chosen_rows(view, selection)
    chosen = all_of(chosen, _apart(view, chosen))
    over = figure.across or "avg"
    rows = view.ask(
        _sql(view.types, by, f"{over}({quoted(figure.name)})", chosen),
        [*chosen.parameters, min(most, MOST)],
        (*facts.bounds, *facts.keys, figure.name),
    )
    return {
        "figure": figure.name,
        "over": over,
        "by": by,
        "groups": rows[0][-1] if rows else 0,
        "rows": [
            {
                "keys": cells(row[: len(by)]),
                "exact": row[len(by) : -4],
                "value": row[-4],
                "text": row[-3],
                "share": row[-2] if over == "sum" else None,
            }
            for row in rows
        ],
    }


def _sql(types: Mapping[str, str], by: tuple[str, ...], value: str, chosen: Condition) -> str:
    shown = ", ".join([*(text_of(k, types[k], 80) for k in by), *map(exact_of, by)])
    return f"""
        SELECT {shown}, CAST(v AS DOUBLE), CAST(v AS VARCHAR), CAST(v / nullif(whole, 0) AS DOUBLE),
            groups FROM (
            SELECT {listed(by)}, {value} AS v, sum({value}) OVER () AS whole,
                count(*) OVER () AS groups
            FROM gold WHERE {chosen.text} GROUP BY {listed(by)}
            ORDER BY v DESC NULLS LAST, {listed(by)} LIMIT ?
        )
    """


def values(view: GoldView, key: str, begins: str, most: int = 20) -> list[dict[str, str | None]]:
    """Values of a key that contain the text ``begins``, which a person has typed: as they are
    ``shown``, and the ``exact`` text for a filter, null if there is none."""
    name = f"CAST({quoted(key)} AS VARCHAR)"
    rows = view.ask(
        f"SELECT {text_of(key, view.types[key])}, {exact_of(key)} FROM gold "
        f"WHERE contains(lower({name}), lower(?)) "
        f"GROUP BY {quoted(key)} ORDER BY count(*) DESC, 1 LIMIT ?",
        (begins, most),
        (key,),
    )
    return [{"shown": cells(row)[0], "exact": row[1]} for row in rows]


def _apart(view: GoldView, chosen: Condition) -> Condition:
    """The condition for windows without overlaps: all windows if each row is in one, and otherwise
    those whose distance from the newest chosen one is a multiple of their size."""
    facts, found = view.facts, span(view)
    if facts.begin is None or facts.end is None or found is None:
        return Condition()
    if operator_of(view.table).pairs_per_row(view.table.operator) == 1:
        return Condition()
    if found.step % max(found.end - found.last, 1) == 0:
        return Condition()
    begin, end = (f"epoch_us({quoted(column)})" for column in (facts.begin, facts.end))
    newest = f"(SELECT max({begin}) FROM gold WHERE {chosen.text})"
    text = f"({newest} - {begin}) % nullif({end} - {begin}, 0) = 0"
    return Condition(text, chosen.parameters)
