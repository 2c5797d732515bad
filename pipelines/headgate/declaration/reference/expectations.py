"""The tables of expectations in ``docs/quality.md``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from headgate.declaration.suites.arguments import Argument
from headgate.declaration.suites.rows import ROW_EXPECTATIONS
from headgate.declaration.suites.tables import TABLE_EXPECTATIONS

_TABLES = re.compile(
    r"(<!-- expectations: (rows|versions)\.[^\n]*-->\n).*?(<!-- expectations: end -->)", re.S
)
_KINDS = {
    "column": "a column",
    "columns": "columns",
    "value": "a value",
    "values": "a list of values",
    "pairs": "a list of pairs",
    "length": "a whole number",
    "regex": "a regular expression",
    "regexes": "regular expressions",
    "flag": "`true` or `false`",
    "number": "a number",
    "share": "a share of the rows, from 0 to 1",
    "moment": "a number, a time, or `now - 10 minutes`",
    "silver": "an expression over the silver table",
}


def with_expectations(page: str) -> str:
    """The page with tables of the expectations that the code supports."""
    rows = {name: row.arguments for name, row in ROW_EXPECTATIONS.items()}
    versions = {n: known for n, known in TABLE_EXPECTATIONS.items() if n not in rows}
    of = {"rows": rows, "versions": versions}

    def table(found: re.Match[str]) -> str:
        return found[1] + "\n".join(_table(of[found[2]])) + "\n" + found[3]

    return _TABLES.sub(table, page)


def _table(expectations: Mapping[str, Sequence[Argument]]) -> Iterator[str]:
    yield "| Expectation | Arguments |\n|---|---|"
    for name, arguments in expectations.items():
        yield f"| `{name}` | {_arguments(arguments)} |"


def _arguments(arguments: Sequence[Argument]) -> str:
    return ", ".join(map(_argument, arguments))


def _argument(argument: Argument) -> str:
    name = f"**`{argument.name}`**" if argument.required else f"`{argument.name}`"
    if argument.kind == "choice":
        return f"{name} ({', '.join(f'`{choice}`' for choice in argument.choices)})"
    return f"{name} ({_KINDS[argument.kind]})"
