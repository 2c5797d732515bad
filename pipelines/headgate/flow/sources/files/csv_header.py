"""The header of a CSV file, and rows under it as JSON objects of texts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from headgate.flow.sources.details import beginning, not_utf8
from headgate.flow.sources.files.contents import WrongContentError
from headgate.flow.sources.files.csv_cells import Dialect, MalformedCell
from headgate.flow.sources.files.declared import FilesSource

_NAMED = 5  # names that a message shows
_DELIMITERS = (",", ";", "\t", "|")
_MARK = "\ufeff"
_QUOTED = re.compile('"[^"]*"')

encode = msgspec.json.Encoder().encode


class UnfitRow(ValueError):
    """The cells of a row do not fit the header."""


@dataclass(frozen=True)
class Header:
    """``names`` are those of the cells; further cells up to ``width`` have no name and no text.
    ``source`` is what has the names: the header or the schema."""

    names: tuple[str, ...]
    width: int
    source: str = "the header has {} names"

    def document(self, cells: Sequence[str]) -> bytes:
        """The cells that are not empty as a JSON object. Raises UnfitRow."""
        named = len(self.names)
        if len(cells) != named:
            self._require_fit(cells)
        return encode({n: cell for n, cell in zip(self.names, cells, strict=False) if cell})

    def _require_fit(self, cells: Sequence[str]) -> None:
        named, count = len(self.names), len(cells)
        if not named <= count <= self.width:
            have = self.source.format(self.width)
            raise UnfitRow(f"{count} cell{'s' * (count != 1)}, {have}")
        for number, cell in enumerate(cells[named:], start=named + 1):
            if cell:
                raise UnfitRow(f"cell {number}: {beginning(cell)}, under an empty name")


def declared(source: FilesSource) -> Header:
    """The names of cells in files without a header."""
    names = source.csv_fields
    return Header(names, len(names), "the schema has {} fields")


def header_of(line: bytes, source: FilesSource) -> Header:
    """The header in a line without its line end. Raises WrongContentError."""
    try:
        text = line.decode().removeprefix(_MARK)
    except UnicodeDecodeError as error:
        remedy = "convert the file to UTF-8"
        raise WrongContentError(f"the header is {not_utf8(error)}; {remedy}") from None
    if "\r" in _QUOTED.sub("", text.rstrip()):
        # Its other lines would be names, and none of them a record.
        alone = "" if source.csv_multiline else ", or declare csv: {multiline: true}"
        raise WrongContentError(f"lines end with CR; convert the file to LF{alone}")
    fields = source.csv_fields
    try:
        cells = dialect_of(source).cells(text)
        given = [name if name in fields else name.strip() for name in cells]
    except MalformedCell as error:
        problem = _other_delimiter(text, source) or str(error)
        raise WrongContentError(f"the header, {beginning(text)}, is malformed: {problem}") from None
    names = _without_last_empty(given)
    if not names or (fields and not set(names) & set(fields)):
        raise WrongContentError(_unknown(text, names, source))
    if twice := [name for name, count in Counter(names).items() if name and count > 1]:
        raise WrongContentError(f"the header has the name {_listed(twice)} twice; rename one")
    if "" in names:
        raise WrongContentError(
            f"name {names.index('') + 1} of the header is empty, and names follow: "
            f"{beginning(text)}; give each column a name"
        )
    return Header(tuple(names), len(given))


def dialect_of(source: FilesSource) -> Dialect:
    return Dialect(source.csv_delimiter, source.csv_escape)


def _without_last_empty(names: list[str]) -> list[str]:
    last = max((place for place, name in enumerate(names, start=1) if name), default=0)
    return names[:last]


def _unknown(text: str, names: Sequence[str], source: FilesSource) -> str:
    """Says that the header has no declared field, and why this may be."""
    count = len(names)
    have = f"{count} name{'s' * (count != 1)}, {_listed(names)}" if names else "no name"
    return f"the header has {have}; expected some of {_few(source.csv_fields)}; " + (
        _remedy(text, names, source)
    )


def _remedy(text: str, names: Sequence[str], source: FilesSource) -> str:
    if other := _other_delimiter(text, source):
        return other
    if text.startswith("#") or text.lower().startswith("sep="):
        return "remove the line before the header"
    if {name.lower() for name in names} & {field.lower() for field in source.csv_fields}:
        return "write the names as they are declared, in the same case"
    return "add a header with these names, or declare csv: {header: false}"


def _other_delimiter(text: str, source: FilesSource) -> str | None:
    """What to declare if another delimiter makes declared fields of a header."""
    for delimiter in _DELIMITERS:
        names = {cell.strip(' "') for cell in text.split(delimiter)}
        if delimiter != source.csv_delimiter and names & set(source.csv_fields):
            shown = "\\t" if delimiter == "\t" else delimiter
            return f'declare csv: {{delimiter: "{shown}"}}'
    return None


def _listed(names: Sequence[str]) -> str:
    return _few([beginning(name) for name in names[: _NAMED + 1]])


def _few(names: Sequence[str]) -> str:
    return ", ".join([*names[:_NAMED], *(["..."] if len(names) > _NAMED else [])])
