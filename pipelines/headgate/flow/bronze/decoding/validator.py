"""Validates one record: whether it is valid, else why not, and what its fields are.

It is plain Python over a record's bytes. It gets every record that the decoder does not accept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from headgate.declaration import types
from headgate.declaration.model import Record, RecordFormat, TimeForm
from headgate.flow.bronze.decoding.details import (
    NOT_EARLY,
    is_missing,
    mismatch,
    time_form,
    time_hint,
    type_form,
    undeclared,
)
from headgate.flow.bronze.decoding.documents import (
    document_text,
    in_utf8,
    read_json,
    why_no_object,
    why_unparsable,
)
from headgate.flow.bronze.decoding.event_times import EARLIEST, epoch_micros
from headgate.flow.bronze.decoding.ids import exact_text, id_of
from headgate.flow.bronze.decoding.values import Misfit, cell_value, instant_reader, reader
from headgate.flow.bronze.reasons import Reason

ReadValue = Callable[[object], object]

_CORRECTED = "a corrected row of CSV is a JSON object of its cells: "


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
        # Rows of a file are documents. Those that cannot be read have a detail already.
        self._of_a_correction = _CORRECTED if format == "csv" else ""
        self._without_value = Reason.UNPARSABLE if format == "csv" else Reason.TOMBSTONE
        read = (
            _cell_reader if format == "csv" else _parquet_reader if format == "parquet" else reader
        )
        self._read = {c.name: read(c.type, record.times_of(c)) for c in record.schema}
        self._fields = {c.name: c.in_record for c in record.schema}
        self._declared = frozenset(self._fields.values())
        time = record.event_time.column
        times = {path: _times_at(record, path) for path in (*record.event_id, time)}
        types_ = {path: record.type_at(path) for path in times}
        self._id_texts = {
            path: exact_text(types_[path], times[path], read(types_[path], times[path]))
            for path in record.event_id
        }
        self._time_of = _time_reader(types_[time], times[time], read(types_[time], times[time]))
        self._times = {c.name: record.times_of(c) for c in record.schema}
        self._event_times = times[time]
        number = "a number" if types_[time] == types.TIMESTAMP else "a whole number"
        self._form = time_form(times[time], number, "10 to 9989")

    def validate(self, given: bytes | None) -> ValidationResult:
        """The reasons are checked in the order of :class:`Reason`, except those that need more than
        the record: ``FUTURE`` and ``DIFFERING_DUPLICATE``."""
        if given is None:
            return ValidationResult(self._without_value)
        try:
            document = read_json(given)
        except (ValueError, RecursionError) as error:
            why = self._of_a_correction + why_unparsable(given, error)
            return ValidationResult(Reason.UNPARSABLE, detail=why)
        if not isinstance(document, dict):
            return ValidationResult(Reason.NOT_AN_OBJECT, detail=why_no_object(document))
        values = {name: document.get(field) for name, field in self._fields.items()}
        id_, (time, form) = self._id(values), self._time(values)
        fields, misfit = self._read_fields(values)
        read = ValidationResult(id=id_, time=time, fields=fields)
        if id_ is None and self._record.event_id:
            return replace(read, reason=Reason.MISSING_ID, detail=self._why_no_id(values))
        path = self._record.event_time.column
        if time is None and (given_time := _value_at(values, path)) is None:
            missing = is_missing(self._in_record(path))
            return replace(read, reason=Reason.MISSING_TIME, detail=missing)
        if time is None:
            hint = time_hint(given_time, self._event_times)
            shown = mismatch(self._in_record(path), document_text(given_time), form, hint)
            return replace(read, reason=Reason.UNPARSABLE_TIME, detail=shown)
        if misfit is not None:
            column, shown = misfit
            return replace(read, reason=Reason.WRONG_TYPE, column=column, detail=shown)
        unknown = {k: v for k, v in document.items() if k not in self._declared}
        if unknown and self._record.unknown_fields == "quarantine":
            return replace(read, reason=Reason.UNKNOWN_FIELD, detail=undeclared(unknown))
        if unknown and self._record.unknown_fields == "rescue":
            return replace(read, rescued=in_utf8(document_text(unknown)))
        return read

    def _in_record(self, path: str) -> str:
        """A path as it leads through the record."""
        name, dot, steps = path.partition(".")
        return f"{self._fields[name]}{dot}{steps}"

    def _id(self, values: Mapping[str, object]) -> str | None:
        try:
            found = [(_value_at(values, path), text) for path, text in self._id_texts.items()]
            texts = [None if value is None else text(value) for value, text in found]
        except (ValueError, ArithmeticError):
            return None
        known = [each for each in texts if each]  # an empty text is no id, and no part of one
        return id_of(known) if known and len(known) == len(texts) else None

    def _why_no_id(self, values: Mapping[str, object]) -> str:
        """What is wrong with the first part of the id that is not known."""
        for path, text_of in self._id_texts.items():
            value, field = _value_at(values, path), self._in_record(path)
            if value is None or value == "":
                return is_missing(field)
            try:
                is_known = text_of(value) is not None
            except (ValueError, ArithmeticError):
                is_known = False
            if not is_known:
                return self._unfit(field, value, self._record.type_at(path), path)
        raise AssertionError("each part of the id is known")

    def _time(self, values: Mapping[str, object]) -> tuple[int | None, str]:
        """The event time, None if it is missing or invalid; and its expected form."""
        value = _value_at(values, self._record.event_time.column)
        if value is None:
            return None, self._form
        try:
            time = self._time_of(value)
        except ValueError:
            return None, self._form
        return (None, NOT_EARLY) if time is not None and time < EARLIEST else (time, self._form)

    def _read_fields(
        self, values: Mapping[str, object]
    ) -> tuple[dict[str, object], tuple[str, str] | None]:
        """The fields, null if they do not have their type; and the first column of the wrong type,
        with the detail."""
        fields: dict[str, object] = {}
        first = None
        for name, value in values.items():
            try:
                fields[name] = self._read[name](value)
            except Misfit as misfit:
                fields[name] = None
                if first is None:
                    first = name, self._shown(name, misfit)
        return fields, first

    def _shown(self, column: str, misfit: Misfit) -> str:
        return self._unfit(
            f"{self._fields[column]}{misfit.path}", misfit.value, misfit.type, column
        )

    def _unfit(self, field: str, value: object, type_: types.DataType, path: str) -> str:
        """The detail of a value that does not have its type, from the column at the begin of a
        path."""
        times = self._times[path.partition(".")[0]]
        hint = time_hint(value, times) if type_ == types.TIMESTAMP else ""
        return mismatch(field, document_text(value), type_form(type_, times), hint)


def _value_at(values: Mapping[str, object], path: str) -> object:
    """The value of a column, or of a field inside of objects; None if there is none."""
    value: object = values
    for step in path.split("."):
        value = value.get(step) if isinstance(value, Mapping) else None
    return value


def _times_at(record: Record, path: str) -> TimeForm:
    """The form of times at a path: of timestamps, that of their column."""
    if record.type_at(path) == types.TIMESTAMP:
        name = path.partition(".")[0]
        return next(record.times_of(each) for each in record.schema if each.name == name)
    return record.event_time.form


def _parquet_reader(type_: types.DataType, times: TimeForm) -> ReadValue:
    """Also reads NaN and infinities, which are numbers in Parquet but texts in JSON."""
    return reader(type_, times, named=True)


def _cell_reader(type_: types.DataType, times: TimeForm) -> ReadValue:
    """Reads the text of a CSV cell."""
    read = reader(type_, times, named=True)
    return lambda value: read(cell_value(value, type_))


def _time_reader(
    type_: types.DataType, times: TimeForm, read: ReadValue
) -> Callable[[object], int | None]:
    """The reader of event times in values of a type, which raises ValueError or Misfit."""
    if type_ in (types.TIMESTAMP, types.STRING):
        time_of = instant_reader(times)
        return lambda value: None if (time := time_of(value)) is None else time.micros

    def of(value: object) -> int | None:
        number = read(value)
        assert isinstance(number, int)
        micros, valid = epoch_micros(np.array([number], np.int64), times)
        return int(micros[0]) if valid[0] else None

    return of
