"""The tables of expectations in ``docs/quality.md``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from headgate.declaration.suites.arguments import Argument
from headgate.declaration.suites.rows import ROW_EXPECTATIONS
from headgate.declaration.suites.tables import TABLE_EXPECTATIONS


def expectations() -> dict[str, str]:
    """The tables of the expectations that the code supports: for rows, and for versions."""
    rows = {name: row.arguments for name, row in ROW_EXPECTATIONS.items()}
    versions = {n: known for n, known in TABLE_EXPECTATIONS.items() if n not in rows}
    return {"rows": "\n".join(_table(rows)), "versions": "\n".join(_table(versions))}


def _table(expectations: Mapping[str, Sequence[Argument]]) -> Iterator[str]:
    yield "| Expectation | Arguments |\n|---|---|"
    for name, arguments in expectations.items():
        yield f"| `{name}` | {_arguments(arguments)} |"


def _arguments(arguments: Sequence[Argument]) -> str:
    return ", ".join(map(_argument, arguments))


def _argument(argument: Argument) -> str:
    name = f"**`{argument.name}`**" if argument.required else f"`{argument.name}`"
    if argument.choices:
        return f"{name} ({', '.join(f'`{choice}`' for choice in argument.choices)})"
    return f"{name} ({argument.kind.doc})"
