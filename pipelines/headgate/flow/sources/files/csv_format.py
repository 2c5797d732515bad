"""The cells and the header of a CSV file.

A cell that begins with a quote ends at the next quote that is alone; blanks after it do not count.
A quote within such a cell is doubled, or follows the declared escape character. A quote in any
other cell is text. A quoted cell that has text after its closing quote, or no closing quote, is
malformed: what it means can only be guessed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import msgspec

from headgate.flow.sources.excerpts import beginning, not_utf8
from headgate.flow.sources.files.contents import WrongContentError
from headgate.flow.sources.files.declared import FilesSource


class MalformedCell(ValueError):
    """``number`` is the cell's number in its row, from 1 on. ``is_open``: its quote is not
    closed."""

    def __init__(self, number: int, problem: str, *, is_open: bool = False) -> None:
        super().__init__(f"cell {number}: {problem}")
        self.number, self.problem, self.is_open = number, problem, is_open


@dataclass(frozen=True)
class Dialect:
    """How cells are written. ``escape`` is a character, or empty.

    Within quotes, what ``escape`` and the next character mean is what Spark, PostgreSQL and MySQL
    write: that character, if it is a quote, ``escape``, the delimiter or a line end; the character
    NUL for ``0``; and otherwise both characters. Outside of quotes, only a cell of ``escape`` and
    ``N`` has a meaning: it is empty. MySQL writes this for null.
    """

    delimiter: str = ","
    escape: str = ""

    def cells(self, row: str) -> list[str]:
        """The cells of a row without its newline. Raises MalformedCell."""
        row = row.rstrip("\r")  # some writers end lines with CR CR LF
        if '"' in row:
            return self._cells(row)
        cells = row.split(self.delimiter)
        return [*map(self._bare, cells)] if self.escape else cells

    def _cells(self, row: str) -> list[str]:
        cells, at = list[str](), 0
        while at <= len(row):
            if row.startswith('"', at):
                text, end = self._quoted(row, at, len(cells) + 1)
            else:
                end = row.find(self.delimiter, at)
                end = len(row) if end < 0 else end
                text = self._bare(row[at:end])
            cells.append(text)
            at = end + 1
        return cells

    def _quoted(self, row: str, at: int, number: int) -> tuple[str, int]:
        """The text of a quoted cell at ``at``, and where the cell ends."""
        found = self._pattern.match(row, at)
        assert found is not None
        text, end = found[1], found.end()
        if found[2] is None:
            raise MalformedCell(number, "the quote that opens here is not closed", is_open=True)
        if end < len(row) and row[end] != self.delimiter:
            problem = f"text after the closing quote, {beginning(row[end:])}"
            raise MalformedCell(number, f"{problem}; {self._remedy(text)}")
        if self.escape and self.escape in text:
            return self._escaped.sub(self._meant, text), end
        return text.replace('""', '"'), end

    def _bare(self, text: str) -> str:
        return "" if self.escape and text == f"{self.escape}N" else text

    def _remedy(self, text: str) -> str:
        doubled = "write a quote within a cell twice"
        is_escaped = not self.escape and text.endswith("\\")
        return f'{doubled}, or declare csv: {{escape: "\\\\"}}' if is_escaped else doubled

    def _meant(self, found: re.Match[str]) -> str:
        after = found[1]
        if after is None:
            return '"'
        if after == "0":
            return "\0"
        return after if after in (self.escape, '"', self.delimiter, "\n", "\r") else found[0]

    @cached_property
    def _escaped(self) -> re.Pattern[str]:
        return re.compile(f'""|{re.escape(self.escape)}(.)', re.DOTALL)

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        """The text between quotes, and the blanks after them unless the quote is not closed."""
        blanks = f"((?:(?!{re.escape(self.delimiter)})[\\x00-\\x20])*)"
        plain, special, last = '[^"]', '""', ""
        if self.escape:
            escape = re.escape(self.escape)
            plain, special, last = f'[^"{escape}]', f'(?:""|{escape}.)', f"{escape}?"
        text = f"{plain}*+(?:{special}{plain}*+)*+"
        return re.compile(f'"({text})(?:"{blanks}|{last}\\Z)', re.DOTALL)


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


def declared_header(source: FilesSource) -> Header:
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
