"""Validates one record: whether it is valid, else why not, and what its fields are.

It is plain Python over a record's bytes. It gets every record that the decoder does not accept.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np
import pyarrow as pa

from headgate.bronze.decoding.documents import in_utf8, is_unicode, json_text, read_document
from headgate.bronze.decoding.event_times import EARLIEST, epoch_micros, is_epoch, text_reader
from headgate.bronze.decoding.texts import cast_texts
from headgate.bronze.decoding.times import time_text
from headgate.bronze.decoding.values import Misfit, reader, text
from headgate.bronze.details import NOT_EARLY, mismatch, time_form, type_form, undeclared
from headgate.bronze.reasons import Reason
from headgate.declaration import types
from headgate.declaration.model import Column, Record, RecordFormat

Read = Callable[[object], object]


@dataclass(frozen=True)
class ValidationResult:
    """``reason`` is None for a valid record; ``column`` is the first column of the wrong type;
    ``detail`` says what was expected and shows the value; ``rescued`` is a JSON object of the
    undeclared fields. ``id``, ``time`` (microseconds since 1970 UTC) and ``fields`` (as
    ``values.Reader`` gives them) are what could be read of the record, whatever its reason."""

    reason: Reason | None = None
    column: str | None = None
    rescued: str | None = None
    detail: str | None = None
    id: str | None = None
    time: int | None = None
    fields: Mapping[str, object] | None = None


class RecordValidator:
    """Validates the records of one declaration."""

    def __init__(self, record: Record, format: RecordFormat) -> None:
        self._record = record
        read = (
            _cell_reader if format == "csv" else _parquet_reader if format == "parquet" else reader
        )
        self._read = {c.name: read(c.type) for c in record.schema}
        self._columns = {c.name: c for c in record.schema}
        self._time_of = _time_reader(record, self._read)
        self._form = time_form(record.event_time)

    def validate(self, given: bytes | None) -> ValidationResult:
        """The reasons are checked in the order of :class:`Reason`, except those that need more than
        the record: ``FUTURE`` and ``DIFFERING_DUPLICATE``."""
        try:
            document = read_document(given)
        except (ValueError, RecursionError):
            return ValidationResult(Reason.UNPARSABLE)
        if not isinstance(document, dict):
            return ValidationResult(Reason.NOT_AN_OBJECT)
        id_, (time, form) = self._id(document), self._time(document)
        fields, misfit = self._fields(document, time)
        read = ValidationResult(id=id_, time=time, fields=fields)
        if id_ is None and self._record.event_id:
            return replace(read, reason=Reason.MISSING_ID)
        rule = self._record.event_time
        if time is None and (given_time := document.get(rule.column)) is None:
            return replace(read, reason=Reason.MISSING_TIME)
        if time is None:
            shown = mismatch(rule.column, json_text(given_time), form)
            return replace(read, reason=Reason.UNPARSABLE_TIME, detail=shown)
        if misfit is not None:
            column, shown = misfit
            return replace(read, reason=Reason.WRONG_TYPE, column=column, detail=shown)
        unknown = {k: v for k, v in document.items() if k not in self._read}
        if unknown and self._record.unknown_fields == "quarantine":
            return replace(read, reason=Reason.UNKNOWN_FIELD, detail=undeclared(unknown))
        if unknown and self._record.unknown_fields == "rescue":
            return replace(read, rescued=in_utf8(json_text(unknown)))
        return read

    def _id(self, document: Mapping[str, object]) -> str | None:
        try:
            texts = [self._id_text(name, document.get(name)) for name in self._record.event_id]
        except ValueError:
            return None
        known = [each for each in texts if each is not None]
        return id_of(known) if known and len(known) == len(texts) else None

    def _id_text(self, name: str, value: object) -> str | None:
        """Raises ValueError if a value does not have its column's type, or has half of a surrogate
        pair: this would become a question mark, so that different ids would be equal."""
        if isinstance(value, str) and not is_unicode(value):
            raise ValueError("not Unicode")
        if value is None:
            return None
        column = self._columns[name]
        if column.type == types.TIMESTAMP:
            # Not the text as it is given: an instant can be written in many ways.
            read = self._time_of if self._has_times_rule(column) else self._read[name]
            time = read(value)
            return time_text(time) if isinstance(time, int) else None
        found = self._read[name](value)
        return text(value) if column.type == types.DATE else id_text(found)

    def _time(self, document: Mapping[str, object]) -> tuple[int | None, str]:
        """The event time, None if it is missing or invalid; and its expected form."""
        value = document.get(self._record.event_time.column)
        if value is None:
            return None, self._form
        try:
            time = self._time_of(value)
        except ValueError:
            return None, self._form
        return (None, NOT_EARLY) if time is not None and time < EARLIEST else (time, self._form)

    def _fields(
        self, document: Mapping[str, object], time: int | None
    ) -> tuple[dict[str, object], tuple[str, str] | None]:
        """The fields, null if they do not have their type; and the first column of the wrong type,
        with the detail."""
        fields: dict[str, object] = {}
        first = None
        for column in self._record.schema:
            if self._has_times_rule(column):
                fields[column.name] = time
                continue
            try:
                fields[column.name] = self._read[column.name](document.get(column.name))
            except Misfit as misfit:
                fields[column.name] = None
                if first is None:
                    first = column.name, _shown(column.name, misfit)
        return fields, first

    def _has_times_rule(self, column: Column) -> bool:
        """Whether a column is the event time, and is read by its rule."""
        return column.name == self._record.event_time.column and column.type == types.TIMESTAMP


def id_of(texts: list[str]) -> str:
    """The event id from the texts of its columns. Several texts become a JSON array."""
    if len(texts) == 1:
        return texts[0]
    return "[" + ",".join(_quoted(each) for each in texts) + "]"


def _quoted(text: str) -> str:
    # Escapes of control characters have capital hexadecimal digits, as Spark writes them.
    return _ESCAPE.sub(_capital, json.dumps(text, ensure_ascii=False))


_ESCAPE = re.compile(r"\\(?:u[0-9a-f]{4}|.)")


def _capital(escape: re.Match[str]) -> str:
    found = escape.group()
    return f"\\u{found[2:].upper()}" if len(found) > 2 else found


def id_text(value: object) -> str:
    """The text of a scalar as ``values.Reader`` gives it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def _shown(column: str, misfit: Misfit) -> str:
    return mismatch(f"{column}{misfit.path}", json_text(misfit.value), type_form(misfit.type))


def _parquet_reader(type_: types.DataType) -> Read:
    """Also reads NaN and infinities, which are numbers in Parquet but texts in JSON."""
    return reader(type_, named=True)


def _cell_reader(type_: types.DataType) -> Read:
    """Reads the text of a CSV cell."""
    if types.is_time(type_):
        return reader(type_)

    def of(value: object) -> object:
        if value is None:
            return None
        try:
            read = cast_texts(pa.array([text(value)]), type_)[0].as_py()
        except ValueError:
            raise Misfit(value, type_) from None
        if read is None:
            raise Misfit(value, type_)
        return read

    return of


def _time_reader(record: Record, read: Mapping[str, Read]) -> Callable[[object], int | None]:
    """The reader of the event time, which raises ValueError or Misfit."""
    rule = record.event_time
    if not is_epoch(rule):
        of_text = text_reader(rule)
        return lambda value: of_text(text(value))

    def of(value: object) -> int | None:
        number = read[rule.column](value)
        assert isinstance(number, int)
        micros, valid = epoch_micros(np.array([number], np.int64), rule)
        return int(micros[0]) if valid[0] else None

    return of
