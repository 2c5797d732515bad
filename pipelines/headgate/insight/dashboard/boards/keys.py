"""The keys of a dashboard's file."""

from __future__ import annotations

from headgate.declaration.keys.key import Key

CHART = Key(
    "NAME",
    "section",
    children=(
        Key(
            "kind",
            "choice",
            "`line`: figures over time or another rising column. `bar`: figures of categories. "
            "`number`: the first row's value, large. `table`: the rows.",
            required=True,
            choices=("line", "bar", "number", "table"),
        ),
        Key("title", "text", "Above the chart. Default: its name."),
        Key(
            "sql",
            "text",
            "One SELECT of DuckDB over gold tables: `gold.TABLE`, or `shop.gold.TABLE` where "
            "several pipelines are shown.",
            required=True,
        ),
        Key("x", "column", "The column of the horizontal axis. Default: the first one."),
        Key("y", "names", "The columns with the figures. Default: all numbers but `x`."),
        Key("series", "column", "A column whose values each have a line of their own."),
        Key("unit", "text", "Written after the figures, such as EUR."),
        Key(
            "width",
            "choice",
            "The part of the row that the chart takes.",
            default="half",
            choices=("third", "half", "full"),
        ),
    ),
)
BOARD = Key(
    "",
    "section",
    children=(
        Key("dashboard", "name", "The name, as in its address.", required=True),
        Key("title", "text", "The heading of the page. Default: its name."),
        Key("charts", "table", "The charts, in this order.", required=True, entry=CHART),
    ),
)
