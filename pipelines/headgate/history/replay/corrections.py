"""Corrections of refused records: none, by an SQL expression, or from a file that was edited."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from headgate import exit_codes
from headgate.declaration.contracts.source import connector_of
from headgate.errors import HeadgateError, cause_of
from headgate.flow.bronze.copies import CorrectedCopies, copies_schema
from headgate.history.replay.refused import RefusedRecord, RefusedRecords
from headgate.lake.tables.replay import CORRECTS, CORRECTS_TIME, RecordPosition
from headgate.lake.tables.state import commit_time

PATCHED = ("value", "event_id", "event_time", "table", "reasons", "column", "detail", "place")
"""The columns that a patch may read. ``value`` is the record as text."""

_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")


class PatchError(HeadgateError, code=exit_codes.USAGE):
    """The patch is not an SQL expression that gives a record."""


class EditedError(HeadgateError, code=exit_codes.USAGE):
    """The file of edited records is not what ``quarantine export`` writes."""


@dataclass(frozen=True)
class CorrectedRecord:
    """A refused record with the document that is to take its place. ``of`` has an entry for each
    table in which it is refused."""

    of: Sequence[RefusedRecord]
    document: bytes

    @property
    def position(self) -> RecordPosition:
        return self.of[0].position

    @property
    def text(self) -> str:
        """The document as text. Bytes that are not valid UTF-8 are replaced by U+FFFD."""
        return self.document.decode("utf-8", "replace")

    def changed(self, text: str | None) -> CorrectedRecord:
        """The record with another text. If the text is not changed, the record keeps its bytes."""
        if text is None or text == self.text:
            return self
        return CorrectedRecord(self.of, text.encode())


DocumentOf = Callable[[RefusedRecord], bytes]
"""A refused record as a document that can be read again."""


def as_refused(refused: Sequence[RefusedRecord], document: DocumentOf) -> list[CorrectedRecord]:
    by_position: dict[RecordPosition, list[RefusedRecord]] = {}
    for each in refused:
        by_position.setdefault(each.position, []).append(each)
    return [CorrectedRecord(tuple(of), document(of[0])) for of in by_position.values()]


def patched_records(corrected: Sequence[CorrectedRecord], patch: str) -> list[CorrectedRecord]:
    """The records after ``patch``, an SQL expression of DuckDB over ``PATCHED``. Records for which
    it is null, or cannot be computed, stay as they are. Raises PatchError."""
    import duckdb

    rows = {name: [_readable(each, name) for each in corrected] for name in PATCHED}
    connection = duckdb.connect(config={"python_enable_replacements": False})
    try:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("records", _table(rows))
        connection.execute("SET enable_external_access = false; SET lock_configuration = true")
        if not patch.strip():
            raise duckdb.ParserException("it is empty")
        found = connection.execute(f"SELECT TRY(CAST({patch} AS VARCHAR)) FROM records").fetchall()
    except duckdb.Error as error:
        raise PatchError(
            f"--patch {patch!r}: {error}",
            remedy=f"it is an SQL expression over {', '.join(PATCHED)} that gives the new record, "
            "such as: json_merge_patch(value, '{\"amount\": 0}')",
        ) from error
    if len(found) != len(corrected):
        raise PatchError(
            f"--patch {patch!r} gives {len(found)} values for {len(corrected)} records",
            remedy="use an expression over the columns of one record, without aggregates",
        )
    texts = [text for (text,) in found]
    for each, text in zip(corrected, texts, strict=True):
        if (number := _rounded(each.text, text or "")) is not None:
            raise PatchError(
                f"--patch {patch!r} would round {number} in the record {each.position}: DuckDB's "
                "functions of JSON compute with doubles",
                remedy="change the text, such as: replace(value, '€', ''), or use --edited",
            )
    return [each.changed(text) for each, text in zip(corrected, texts, strict=True)]


def _rounded(before: str, after: str) -> str | None:
    """A number of which only the nearest double is left; None if there is none."""
    left = set(_NUMBER.findall(after))
    doubles = {float(each): each for each in left}
    for number in _NUMBER.findall(before):
        nearest = doubles.get(float(number))
        if number in left or nearest is None or math.isinf(float(number)):
            continue
        if Decimal(nearest) != Decimal(number):
            return str(number)
    return None


def _readable(each: CorrectedRecord, name: str) -> Any:
    if name == "value":
        return each.text
    return getattr(each.of[0], {"place": "where"}.get(name, name))


def _table(rows: Mapping[str, Sequence[Any]]) -> pa.Table:
    texts = dict.fromkeys(PATCHED, pa.string())
    types = texts | {"event_time": pa.timestamp("us", "UTC"), "reasons": pa.list_(pa.string())}
    return pa.table({name: pa.array(rows[name], types[name]) for name in PATCHED})


def edited_records(
    corrected: Sequence[CorrectedRecord], file: Path, source: str | None = None
) -> list[CorrectedRecord]:
    """The records of a file that ``exported_records`` wrote for this ``source`` and a person
    edited; no others. Raises EditedError."""
    known = {_named(each.position, source): each for each in corrected}
    found: dict[str, CorrectedRecord] = {}
    for number, line in enumerate(_lines(file), start=1):
        if not line.strip():
            continue
        position, value = _edited_line(file, number, line)
        if position in found:
            raise EditedError(
                f"{file}, line {number}: the record {position} appears twice",
                remedy="remove one of the lines",
            )
        if position in known:
            found[position] = known[position].changed(value)
        else:
            raise EditedError(
                f"{file}, line {number}: {position} is not one of the selected refused records",
                remedy="remove the line, or use the options with which the file was exported",
            )
    return list(found.values())


def _lines(file: Path) -> list[str]:
    try:
        # Not splitlines: texts may have other line ends. Some editors write a byte order mark.
        return file.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        remedy = "give a file that `quarantine export` has written"
        raise EditedError(f"{file} cannot be read: {cause_of(error)}", remedy) from error


def _edited_line(file: Path, number: int, line: str) -> tuple[str, str]:
    try:
        content = _JSON.decode(line)
        value = content["value"]
        text = value if isinstance(value, str) else _as_written(line, "value")
        text.encode()  # raises an error for half of a surrogate pair
        return _named(content["record"], content.get("source")), text
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise EditedError(
            f"{file}, line {number}: not a JSON object with record and value",
            remedy="each line is one that `quarantine export` wrote; change only its value",
        ) from error


def _as_written(line: str, name: str) -> str:
    """The text of the member ``name`` of a JSON object that is valid and has it. A value that is
    decoded and encoded again could be another one: a float has fewer digits than a decimal."""

    def value_after(mark: int) -> tuple[Any, str, int]:
        """The value after the mark at that index, its text, and the index of the next mark."""
        start = _blanks_end(line, mark + 1)
        value, end = _JSON.raw_decode(line, start)
        return value, line[start:end], _blanks_end(line, end)

    mark = line.index("{")
    while True:
        key, _, mark = value_after(mark)
        _, text, mark = value_after(mark)
        if key == name:
            return text


def _blanks_end(line: str, start: int) -> int:
    while line[start].isspace():
        start += 1
    return start


def _without_repeated(members: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in members:
        if key in found:
            raise ValueError(f"the key {key!r} appears twice")
        found[key] = value
    return found


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


# Integers stay text, because int() refuses more than 4,300 digits.
_JSON = json.JSONDecoder(object_pairs_hook=_without_repeated, parse_int=str, parse_constant=_refuse)


def _named(position: object, source: str | None) -> str:
    """Positions of several sources may be equal."""
    return f"{position} of {source}" if source else str(position)


def exported_records(
    corrected: Iterable[CorrectedRecord], source: str | None = None
) -> Iterable[dict[str, Any]]:
    """A document for each record, to be edited: ``value`` is what a person changes. ``source`` is
    that of the records, if the pipeline has several."""
    own = {"source": source} if source else {}
    for each in corrected:
        first = each.of[0]
        yield {
            **own,
            "record": str(each.position),
            "event_id": first.event_id,
            "refused": {of.table: list(of.reasons) for of in each.of},
            "column": first.column,
            "detail": first.detail,
            "where": first.where,
            "ingested_at": first.ingested_at.isoformat(),
            "value": each.text,
        }


def corrected_copies(
    records: RefusedRecords, corrected: Sequence[CorrectedRecord], now: datetime
) -> CorrectedCopies:
    """The corrected records as copies for bronze."""
    source = records.source
    kept = records.headers(each.position for each in corrected) if corrected else {}
    rows = [_copy(each, records.origin(each.position), kept[each.position]) for each in corrected]
    place = connector_of(source).place
    for row in rows:
        row[place] = row.pop("where")
        row["seen_at"] = now
    table = pa.Table.from_pylist(rows, copies_schema(source))
    return CorrectedCopies(
        source, table.sort_by([("partition", "ascending"), ("offset", "ascending")])
    )


def _copy(each: CorrectedRecord, origin: RecordPosition, kept: tuple[Any, Any]) -> dict[str, Any]:
    key, headers = kept
    record, time = each.of[0], ""
    if record.is_valid and record.event_time is not None:
        time = str(commit_time(record.event_time))
    own = {CORRECTS: str(each.position), CORRECTS_TIME: time}
    return {
        "partition": origin.partition,
        "offset": origin.offset,
        "was_valid": record.is_valid,
        "value": each.document,
        "key": key,
        "headers": [
            *(h for h in headers or () if h["key"] not in own),
            *({"key": name, "value": value.encode()} for name, value in own.items()),
        ],
        "where": record.where,
        "ingested_at": record.ingested_at,
    }
