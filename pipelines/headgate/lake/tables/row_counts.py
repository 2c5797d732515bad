"""A commit is refused if its files do not have the rows that it states.

The state of a commit says how many rows the table has (``Payload.rows``). So the rows of the added
files, less those of the removed ones, are the difference between two states. The rows of a file are
those of its footer. The counts come from the stage that writes, after its last shuffle: Spark
applies what a task before a shuffle has counted once for each attempt. A file that a worker has
lost, or that two attempts have written, is found before any reader sees the table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from headgate.commands import pipeline_command
from headgate.declaration.quantities import plural
from headgate.lake.tables.data_file import FINAL, DataFile
from headgate.lake.tables.errors import MiscountedError
from headgate.lake.tables.state import FINAL_ROWS, OPEN_ROWS, ROWS, State

_PARTS = {None: ROWS, "true": FINAL_ROWS, "false": OPEN_ROWS}


@dataclass(frozen=True)
class Miscounted:
    """The added files have ``found`` rows of a ``kind`` (``Payload.rows``), the commit states
    ``stated``."""

    kind: str
    found: int
    stated: int


def miscounted(
    before: Mapping[str, int],
    after: Mapping[str, int],
    added: Mapping[str, int],
    removed: Mapping[str, int],
) -> Iterator[Miscounted]:
    """The kinds of rows of which a commit adds other numbers than it states. ``before`` and
    ``after`` are the rows that the table has by its states. The number of a kind that ``before``
    lacks is not known; the commit then replaces all rows of this kind. ``added`` and ``removed``
    are the rows of files."""
    for kind, rows in after.items():
        gone = removed.get(kind, 0)
        stated = rows - before.get(kind, gone) + gone
        if (found := added.get(kind, 0)) != stated:
            yield Miscounted(kind, found, stated)


def require_stated_rows(
    table: str, held: State, state: State, add: Iterable[DataFile], remove: Iterable[DataFile]
) -> None:
    """Raises MiscountedError if a commit that leads from ``held`` to ``state`` would add or remove
    other rows than it states. A reset states the files themselves, by the digest of the version
    that it brings back (``history.savepoints.resets``): a table that is no longer declared loses
    its counts and keeps its rows."""
    if state.kind == "reset":
        return
    before, after = held.rows(table), state.rows(table)
    for each in miscounted(before, after, _rows_of(add), _rows_of(remove)):
        files = f"{plural(each.found, each.kind)}, and {each.stated:,} were counted"
        raise _refused(table, state, f"its new files have {files}")


def require_all(table: str, state: State, found: int, there: int, what: str) -> None:
    """Raises MiscountedError if ``found`` is not ``there``. ``what`` says what they count."""
    if found != there:
        raise _refused(table, state, f"{found:,} of {there:,} {what}")


def covers(side: int, counted_there: int, n: int, counted: int) -> bool:
    """Whether a side table at batch id ``side`` has all rows up to batch id ``n``: it is past
    ``n``, or has as many rows as were counted. It skips batches that have no rows for it."""
    return side > n or counted_there == counted


def require_side_rows(table: str, state: State, key: str, side: str, there: State) -> None:
    """Raises MiscountedError unless the table ``side`` has, in the state ``there``, the rows that a
    commit of ``table`` has counted for it under ``key``."""
    counted, rows = state.total.get(key, 0), there.total.get(key, 0)
    if not covers(there.n, rows, state.n, counted):
        found = f"{side} would have {plural(rows, 'row')}, and {counted:,} were counted for it"
        raise _refused(table, state, found)


def _rows_of(files: Iterable[DataFile]) -> Counter[str]:
    rows: Counter[str] = Counter()
    for file in files:
        rows[_PARTS[file.partition.get(FINAL)]] += file.rows
    return rows


def _refused(table: str, state: State, why: str) -> MiscountedError:
    return MiscountedError(
        f"{table}: the commit of batch {state.n} was refused: {why}",
        remedy="if this is repeated, see what removes files from the table's folder; nothing was "
        f"committed, and the next start computes the batch again: {pipeline_command('start')}",
    )
