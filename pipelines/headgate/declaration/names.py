"""Which names an author may choose."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from headgate.declaration.errors import Invalid
from headgate.declaration.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    Array,
    DataType,
    Struct,
)


def nearest(word: str, valid: Iterable[str]) -> str | None:
    """The closest of ``valid``, or None when nothing is close. Case is ignored."""
    folded = {name.lower(): name for name in valid}
    matches = difflib.get_close_matches(word.lower(), folded, n=1, cutoff=0.6)
    return folded[matches[0]] if matches else None


def did_you_mean(word: str, valid: Iterable[str]) -> str:
    """The closest of ``valid``, as the end of a message; empty if nothing is close."""
    near = nearest(word, valid)
    return f' (did you mean "{near}"?)' if near else ""


def chosen(text: str, choices: Collection[str]) -> str:
    """``text``, if it is one of ``choices``. Otherwise raises Invalid with the closest one."""
    if text not in choices:
        raise Invalid(f"must be one of {', '.join(choices)}, not {text!r}", nearest(text, choices))
    return text


NAME_PATTERN = r"^[a-z][a-z0-9_]{0,62}$"
COLUMN_PATTERN = r"^[A-Za-z][A-Za-z0-9_]{0,62}$"
"""Upper-case letters are allowed, because producers use them in the names of fields."""
PATH_PATTERN = r"^[A-Za-z][A-Za-z0-9_]{0,62}(\.[A-Za-z_][A-Za-z0-9_]{0,62})*$"
HEADER_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$"
_NAME = re.compile(NAME_PATTERN)
_COLUMN = re.compile(COLUMN_PATTERN)
_HEADER = re.compile(HEADER_PATTERN)
_PATH = re.compile(PATH_PATTERN)

Columns = Mapping[str, DataType]
# Columns of the results of windows.
WINDOW_COLUMNS: Columns = {"window_start": TIMESTAMP, "window_end": TIMESTAMP}
# Columns that every gold table has after the author's.
STATUS_COLUMNS: Columns = {"final": BOOLEAN, "revision": INT, "updated_at": TIMESTAMP}
# Where a record is in its source.
POSITION: Columns = {"partition": INT, "offset": BIGINT}
ITEM = "item"
"""The place, from 0, of a silver row among those of its record."""
# What identifies a row that a silver table takes or rejects, and orders rows with the same event
# time. A silver table reads one source; a table that reads several has to add the source here.
IDENTITY: Columns = {**POSITION, ITEM: INT}
# The same columns in silver, where the names of Headgate's columns begin with an underscore.
SILVER_POSITION: Columns = {f"_{name}": type_ for name, type_ in POSITION.items()}
SILVER_IDENTITY: Columns = {f"_{name}": type_ for name, type_ in IDENTITY.items()}
# Columns that every silver table has after the author's, and their types.
SILVER_COLUMNS: Columns = {
    "_event_id": STRING,
    **SILVER_IDENTITY,
    "_clock": TIMESTAMP,
    "_event_time": TIMESTAMP,
    "_arrival_clock": TIMESTAMP,
    "_arrived": TIMESTAMP,
}
TimeKind = Literal["event", "arrival"]
"""The times by which gold puts rows into windows."""


@dataclass(frozen=True)
class TimeColumns:
    """The columns of silver for a kind of time: the ``time`` of a row, and ``clock``, the watermark
    of this kind at which the row was read, if that is after its time."""

    time: str
    clock: str


TIMES: Mapping[TimeKind, TimeColumns] = {
    "event": TimeColumns("_event_time", "_clock"),
    "arrival": TimeColumns("_arrived", "_arrival_clock"),
}
RESCUED = "_rescued"
"""The undeclared fields of a record, as JSON text, if ``unknown_fields`` is ``rescue``."""
WARNINGS = "_warnings"
"""The ids of the rules that a row breaks, if the table has a suite; null if it breaks none."""

# Columns that a late side table adds to the silver row and the operator's columns.
REPLAYED = "replayed"
WHY_LATE: Columns = {"late_seconds": DOUBLE, "reason": STRING, REPLAYED: BIGINT}
# The column of a late side table that names the input of a row, if the gold table has several.
INPUT = "input"
# The columns of the results of append operators that are moments.
RESULT_TIME, RESULT_ID = "event_time", "row_id"
# Columns that no silver table may have, whatever its gold tables are.
LATE_COLUMNS: Columns = {**WINDOW_COLUMNS, **WHY_LATE}

# Tables that a pipeline has whatever its declaration says.
RESERVED_TABLES = ("quarantine", "files")


def silver_row(declared: Columns, *, rescues: bool, has_suite: bool) -> Columns:
    """All columns of a silver table in their order: the author's, Headgate's, then structs.

    delta-rs does not read the statistics of a column that follows a struct without statistics. The
    statistics of a table's event time must be readable.
    """
    rescued = {RESCUED: STRING} if rescues else {}
    warnings = {WARNINGS: Array(STRING)} if has_suite else {}
    columns = {**declared, **SILVER_COLUMNS, **rescued, **warnings}
    return dict(sorted(columns.items(), key=lambda column: isinstance(column[1], Struct)))


def check_name(name: str) -> None:
    """Raises Invalid unless ``name`` may name a pipeline, a table, a measure or a column that is
    computed from measures."""
    _check_not_ours(name)
    if not _NAME.fullmatch(name):
        snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
        snake = re.sub(r"[^a-z0-9]+", "_", snake).strip("_")
        raise Invalid(
            f"{name!r} is not a name: lower-case letters, digits and underscores, "
            "a letter first, at most 63",
            snake if _NAME.fullmatch(snake) else None,
        )


def check_column(name: str) -> None:
    """Raises Invalid unless ``name`` may name a column of a record or one made from them."""
    _check_not_ours(name)
    if not _COLUMN.fullmatch(name):
        raise Invalid(
            f"{name!r} is not a name: letters, digits and underscores, a letter first, at most 63",
            _like(name),
        )


def check_path(path: str) -> None:
    """Raises Invalid unless ``path`` may be a column, or a field inside of its structs, such as
    ``payload.id``. Whether there is such a column and field is not checked."""
    try:
        check_column(path.partition(".")[0])
    except Invalid as error:
        raise Invalid(error.message, _like(path)) from None
    if not _PATH.fullmatch(path):
        raise Invalid(f"{path!r} is not a column or a path such as payload.id", _like(path))


def column_like(text: str) -> str:
    """The name for a column that is read from the field ``text``."""
    return _like(text) or "value"


def _like(text: str) -> str | None:
    plain = text if text.isascii() else unicodedata.normalize("NFKD", text.casefold())
    unaccented = "".join(filter(lambda each: not unicodedata.combining(each), plain))
    guess = re.sub(r"[^A-Za-z0-9]+", "_", unaccented).strip("_")
    return guess if _COLUMN.fullmatch(guess) else None


def _check_not_ours(name: str) -> None:
    if name.startswith("_"):
        raise Invalid(
            f"{name!r} starts with an underscore: such names are Headgate's own", _like(name)
        )


def in_other_case(name: str, names: Iterable[str]) -> str | None:
    """The one of ``names`` that differs from ``name`` only in case, or None. A Delta table cannot
    have both."""
    return next((n for n in names if n != name and n.lower() == name.lower()), None)


def check_not_taken(name: str, taken: Mapping[str, str]) -> None:
    """Raises Invalid if ``name`` is one of ``taken``, ignoring case. The values of ``taken`` say
    what has the name, such as "is taken by a source"."""
    if name in taken:
        raise Invalid(f"the name {name!r} {taken[name]}")
    if (twin := in_other_case(name, taken)) is not None:
        raise Invalid(f"the name {name!r} differs only in case from {twin!r}, which {taken[twin]}")


def check_header(name: str) -> None:
    """Raises Invalid if ``name`` cannot be the name of an HTTP header."""
    if not _HEADER.fullmatch(name):
        raise Invalid("the name of a header has letters, digits, dashes and underscores")
