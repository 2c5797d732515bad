"""The tables of expectations in ``docs/quality.md``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from headgate.declaration.suites.arguments import Argument
from headgate.declaration.suites.rows import ROW_EXPECTATIONS

_TABLE = re.compile(r"(<!-- expectations: rows\.[^\n]*-->\n).*?(<!-- expectations: end -->)", re.S)
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
}


def with_expectations(page: str) -> str:
    """The page with the table of what the code supports now."""
    table = "\n".join(_table()) + "\n"
    return _TABLE.sub(lambda found: found[1] + table + found[2], page)


def _table() -> Iterator[str]:
    yield "| Expectation | Arguments |\n|---|---|"
    for name, expectation in ROW_EXPECTATIONS.items():
        yield f"| `{name}` | {_arguments(expectation.arguments)} |"


def _arguments(arguments: Sequence[Argument]) -> str:
    return ", ".join(map(_argument, arguments))


def _argument(argument: Argument) -> str:
    name = f"**`{argument.name}`**" if argument.required else f"`{argument.name}`"
    if argument.kind == "choice":
        return f"{name} ({', '.join(f'`{choice}`' for choice in argument.choices)})"
    return f"{name} ({_KINDS[argument.kind]})"
