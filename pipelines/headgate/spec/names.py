"""Which names an author may choose."""

from __future__ import annotations

import re
from collections.abc import Iterable

from headgate.spec.errors import Unfit

NAME_PATTERN = r"^[a-z][a-z0-9_]{0,62}$"
_NAME = re.compile(NAME_PATTERN)

# Columns that every gold table has beside the author's.
WINDOW_COLUMNS = {"window_start": "timestamp", "window_end": "timestamp"}
STATUS_COLUMNS = {"final": "boolean", "revision": "int", "updated_at": "timestamp"}
GOLD_COLUMNS = (*WINDOW_COLUMNS, *STATUS_COLUMNS)
# Columns that every silver table has after the author's, and their types.
SILVER_COLUMNS = {
    "_event_id": "string",
    "_partition": "int",
    "_offset": "bigint",
    "_clock": "timestamp",
    "_event_time": "timestamp",
}
# Columns that a late side table adds to the silver row.
LATE_COLUMNS = {**WINDOW_COLUMNS, "late_seconds": "double", "reason": "string"}

# Tables that a pipeline has whatever its declaration says.
RESERVED_TABLES = ("quarantine", "files")


def check_name(name: str) -> None:
    """Raises Unfit unless ``name`` may name a pipeline, a table, a column or a measure."""
    if name.startswith("_"):
        raise Unfit(f"{name!r} starts with an underscore: such names are Headgate's own")
    if not _NAME.fullmatch(name):
        snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
        snake = re.sub(r"[^a-z0-9]+", "_", snake).strip("_")
        raise Unfit(
            f"{name!r} is not a name: lower-case letters, digits and underscores, "
            "a letter first, at most 63",
            snake if _NAME.fullmatch(snake) else None,
        )


def check_not_taken(name: str, taken: Iterable[str], by: str) -> None:
    """Raises Unfit when ``name`` is one of ``taken``, which belong to ``by``."""
    if name in taken:
        raise Unfit(f"the name {name!r} is taken by {by}")
