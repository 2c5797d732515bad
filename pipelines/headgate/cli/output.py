"""What a verb prints: text for a person, or one JSON object as the last line. What it writes into a
file that an option names."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from headgate.errors import UsageError
from headgate.machine.control_characters import ESCAPES

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


Shown: TypeAlias = "str | Table | Callable[[], object]"

SCHEMA = 1
"""The version of all JSON answers. It grows when a key changes its meaning or is removed."""

MARK = {True: "[green]✓[/]", False: "[red]✗[/]"}
WIDE = 10_000  # columns of a table that is written to a file or a pipe: no line is broken


def console(*, stderr: bool = False) -> Console:
    """A console on the current stdout or stderr, without syntax highlighting and emoji codes."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else WIDE
    return Console(file=stream, highlight=False, emoji=False, width=width, soft_wrap=False)


def respond(json: bool, document: Mapping[str, Any], *shown: Shown) -> None:
    """Print ``document`` for programs, or each item of ``shown`` for a person."""
    if json:
        print_json(document)
        return
    for each in shown:
        if isinstance(each, str):
            print(each.translate(ESCAPES))
        elif callable(each):
            each()
        else:
            _print(each)
    sys.stdout.flush()


def _print(table: Table) -> None:
    """Print a table. In a file or a pipe, no line ends in spaces: the last value of another line
    may be long."""
    out = console()
    if out.is_terminal:
        out.print(table)
        return
    with out.capture() as captured:
        out.print(table)
    for line in captured.get().splitlines():
        print(line.rstrip(), file=out.file)


def print_json(document: Mapping[str, Any]) -> None:
    """Print the answer for programs, which must be the last output of a verb. Its messages are
    rendered already. Floats that JSON cannot represent become the strings NaN, Infinity and
    -Infinity."""
    text = json.dumps(
        _finite({"schema": SCHEMA, **document}),
        default=str,
        ensure_ascii=False,
        allow_nan=False,
    )
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def grid(title: str, *headers: str, rows: Iterable[Iterable[object]] = ()) -> Table:
    """A table; a header that ends in a colon heads numbers. Values of ``rows`` become cells as in
    ``rows.cells``."""
    from rich.table import Table

    from headgate.cli.rows import cells

    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for header in headers:
        right = header.endswith(":")
        table.add_column(
            header.rstrip(":"), justify="right" if right else "left", no_wrap=right, style=None
        )
    for row in rows:
        table.add_row(*cells(*row))
    return table


def require_new(file: Path) -> None:
    """Raises UsageError if the file exists. Call it before work that takes long."""
    if file.exists():
        raise UsageError(
            f"{file} exists, and is not overwritten",
            remedy="name another file, or move this one away",
        )


def write_new(file: Path, text: str) -> None:
    """Write a file that does not exist yet. Raises UsageError."""
    require_new(file)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("x", encoding="utf-8") as sink:
            try:
                sink.write(text)
                sink.flush()
            except OSError:  # a full disk
                file.unlink()
                raise
    except OSError as error:
        raise UsageError(
            f"{file} cannot be written: {error.strerror}", remedy="name another file"
        ) from error
