"""Decodes blocks of records to bronze's rows, except for columns that depend on earlier records.

A strict native decoder takes the records that are clearly valid. A validator reads all others.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.declaration.model import Record, RecordFormat
from headgate.flow.bronze.decoding.columns import (
    ColumnType,
    StructOf,
    Wrong,
    cell_column,
    document_of,
    flags,
    json_column,
    patched,
)
from headgate.flow.bronze.decoding.documents import doubtful
from headgate.flow.bronze.decoding.event_times import (
    EARLIEST,
    are_future,
    epoch_micros,
    text_micros,
)
from headgate.flow.bronze.decoding.ids import id_of, id_text
from headgate.flow.bronze.decoding.times import Flags, time_texts
from headgate.flow.bronze.decoding.validator import RecordValidator, ValidationResult
from headgate.flow.bronze.reasons import BEFORE_FUTURE, UNREADABLE, Reason
from headgate.lake.tables.record_shape import IGNORED

_TIME = pa.timestamp("us", "UTC")
_EARLIEST = pa.scalar(EARLIEST, _TIME)
# The native decoder has no fields with such names; they are rare.
_NOT_NATIVE = re.compile(r'["\\\x00-\x1f]')


@dataclass(frozen=True)
class _Values:
    """The columns of one block: ``columns`` by name, ``wrong`` the rows that need the validator."""

    id: pa.Array
    time: pa.Array
    columns: dict[str, pa.Array]
    wrong: Flags


class Decoder:
    """Decodes the records of one declaration. It is created once per process."""

    def __init__(self, record: Record, format: RecordFormat) -> None:
        self._record, self._is_csv = record, format == "csv"
        column = cell_column if self._is_csv else json_column
        self._columns: dict[str, ColumnType] = {
            each.name: column(each.type, record.times_of(each)) for each in record.schema
        }
        self._validator = RecordValidator(record, format)
        names, columns = [each.in_record for each in record.schema], [*self._columns.values()]
        self._is_native = not any(map(_NOT_NATIVE.search, names))
        strict = record.unknown_fields != "ignore"
        document = document_of(
            names if self._is_native else [*self._columns], columns, strict=strict
        )
        self._decode = msgspec.json.Decoder(document).decode
        self._nothing = document()

    def decode(self, block: pa.Table) -> pa.Table:
        """The columns of ``block`` (``record_schema``) without ``document`` and ``detail``, then
        event_id, event_time, record, reason, reason_column, reason_detail and rescued
        (``bronze_type``). An event time in the future is kept; the reason is then ``future``."""
        block = block.combine_chunks()
        texts = _chunk(block, "document" if self._is_csv else "value")
        given = texts.to_pylist()
        documents, refused = self._documents(given)
        # This comes before the conversion of values, which fails for a decimal that is not UTF-8.
        for row in doubtful(texts):
            documents[row], refused[row] = self._nothing, True
        values = self._values(documents, block)
        rows = np.flatnonzero(refused | values.wrong)
        results = [self._validator.validate(given[row]) for row in rows]
        if self._is_csv:
            whys = _chunk(block, "detail").take(pa.array(rows)).to_pylist()
            results = [
                replace(one, detail=why or one.detail)
                for one, why in zip(results, whys, strict=True)
            ]
        return self._with_results(block, values, rows, results)

    def _documents(self, given: Sequence[bytes | None]) -> tuple[list[Any], Flags]:
        decode, nothing = self._decode, self._nothing
        if not self._is_native:
            return [nothing] * len(given), np.ones(len(given), np.bool_)
        documents: list[Any] = []
        refused: list[int] = []
        keep = documents.append
        for row, text in enumerate(given):
            try:
                keep(decode(text))  # type: ignore[arg-type]
            except (msgspec.MsgspecError, ValueError, TypeError, RecursionError):
                keep(nothing)
                refused.append(row)
        is_refused = np.zeros(len(given), np.bool_)
        is_refused[refused] = True
        return documents, is_refused

    def _values(self, documents: Sequence[Any], block: pa.Table) -> _Values:
        wrong = np.zeros(len(documents), np.bool_)
        columns = {}
        for i, (name, column) in enumerate(self._columns.items()):
            values = list(map(attrgetter(f"f{i}"), documents))
            columns[name], misfits = column.array(values)
            if misfits is not None:
                wrong |= misfits
            for path in self._record.event_id:
                # The validator makes an id of all digits of a value.
                if (
                    path.split(".")[0] == name
                    and (more := _inexact(column, values, path)) is not None
                ):
                    wrong |= more
        time = self._time(columns)
        id_ = self._id(columns, block)
        for needed in (id_, time):
            if needed.null_count:
                wrong |= flags(pc.is_null(needed))
        return _Values(id_, time, columns, wrong)

    def _time(self, columns: Mapping[str, pa.Array]) -> pa.Array:
        form = self._record.event_time.form
        found = _at(columns, self._record.event_time.column)
        if pa.types.is_timestamp(found.type):
            early = pc.less(found, _EARLIEST)
            return pc.if_else(early, None, found) if pc.any(early).as_py() else found
        if pa.types.is_string(found.type):
            micros, known = text_micros(found, form)
        else:
            micros, known = epoch_micros(pc.fill_null(found.cast(pa.int64()), 0).to_numpy(), form)
            known = known & flags(pc.is_valid(found))
        return pa.array(micros, mask=~known | (micros < EARLIEST)).cast(_TIME)

    def _id(self, columns: Mapping[str, pa.Array], block: pa.Table) -> pa.Array:
        if not self._record.event_id:
            return positions(block)
        parts = [_id_texts(_at(columns, path)) for path in self._record.event_id]
        if len(parts) == 1:
            return parts[0]
        if any(_needs_quoting(part) for part in parts):
            rows = zip(*(part.to_pylist() for part in parts), strict=True)
            return pa.array(
                [None if None in row else id_of(list(row)) for row in rows], pa.string()
            )
        joined = pc.binary_join_element_wise(*parts, '","')
        return pc.binary_join_element_wise('["', joined, '"]', "")

    def _with_results(
        self, block: pa.Table, values: _Values, rows: Any, results: Sequence[ValidationResult]
    ) -> pa.Table:
        """The decoded block, with the validator's results for some rows."""
        columns, id_, time = values.columns, values.id, values.time
        fields = [one.fields or {} for one in results]
        if results:
            columns = {
                name: patched(
                    columns[name], rows, pa.array([f.get(name) for f in fields], columns[name].type)
                )
                for name in columns
            }
            time = patched(
                time, rows, pa.array([one.time for one in results], pa.int64()).cast(_TIME)
            )
            if self._record.event_id:
                id_ = patched(id_, rows, pa.array([one.id for one in results], pa.string()))
        found = _spread(results, rows, len(block), self._record)
        found["reason"], is_future = self._future(found["reason"], time, block)
        for name in ("reason_column", "reason_detail"):
            found[name] = pc.if_else(is_future, pa.scalar(None, pa.string()), found[name])
        unreadable = pc.is_in(found["reason"], value_set=pa.array([*UNREADABLE, IGNORED]))
        record = pa.StructArray.from_arrays(
            [columns[name] for name in self._columns],
            fields=[pa.field(name, columns[name].type) for name in self._columns],
            mask=unreadable,
        )
        own = {"event_id": id_, "event_time": time, "record": record, **found}
        kept = block.drop_columns(["document", "detail"]) if self._is_csv else block
        return reduce(lambda table, name: table.append_column(name, own[name]), own, kept)

    def _future(
        self, reason: pa.Array, time: pa.Array, block: pa.Table
    ) -> tuple[pa.Array, pa.Array]:
        """The reasons, and whether each is that the event time is in the future."""
        ahead = are_future(time, _chunk(block, "seen_at"), self._record.future_after)
        early = pc.is_in(reason, value_set=pa.array([r.value for r in BEFORE_FUTURE]))
        is_future = pc.and_(pc.fill_null(ahead, False), pc.invert(early))
        return pc.if_else(is_future, Reason.FUTURE.value, reason), is_future


def _at(columns: Mapping[str, pa.Array], path: str) -> pa.Array:
    """The values of a column, or of a field inside of structs."""
    name, *steps = path.split(".")
    return pc.struct_field(columns[name], steps) if steps else columns[name]


def _inexact(column: ColumnType, values: Sequence[Any], path: str) -> Wrong:
    """Which values at a path have more digits than the column keeps."""
    for step in path.split(".")[1:]:
        assert isinstance(column, StructOf)
        place = column.names.index(step)
        values = column.part(place, values)
        column = column.columns[place]
    return column.inexact(values)


def positions(block: pa.Table) -> pa.Array:
    """The event ids of records that are identified by their position."""
    texts = [_chunk(block, name).cast(pa.string()) for name in ("partition", "offset")]
    return pc.binary_join_element_wise(*texts, ":")


def _spread(
    results: Sequence[ValidationResult], rows: Any, length: int, record: Record
) -> dict[str, pa.Array]:
    """The columns of the results; null for the other rows."""
    tombstone = IGNORED if record.ignores_tombstones else Reason.TOMBSTONE.value
    given = {
        "reason": [tombstone if one.reason == Reason.TOMBSTONE else one.reason for one in results],
        "reason_column": [one.column for one in results],
        "reason_detail": [one.detail for one in results],
        "rescued": [one.rescued for one in results],
    }
    none = pa.nulls(length, pa.string())
    return {name: patched(none, rows, pa.array(v, pa.string())) for name, v in given.items()}


def _texts_of(column: pa.Array) -> pa.Array:
    if pa.types.is_timestamp(column.type):
        return time_texts(column)
    if not pa.types.is_decimal(column.type):
        return column.cast(pa.string())
    values = column.to_pylist()
    return pa.array([None if v is None else id_text(v) for v in values], pa.string())


def _id_texts(column: pa.Array) -> pa.Array:
    """The texts of a part of ids. An empty text is none."""
    texts = _texts_of(column)
    empty = pc.equal(texts, "")
    return pc.if_else(empty, None, texts) if pc.any(empty).as_py() else texts


def _needs_quoting(texts: pa.Array) -> bool:
    return bool(pc.any(pc.match_substring_regex(texts, r'["\\\x00-\x1f]')).as_py())


def _chunk(table: pa.Table, name: str) -> pa.Array:
    column = table.column(name)
    return column.chunk(0) if column.num_chunks else pa.array([], column.type)
