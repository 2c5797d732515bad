"""The cells of a row of CSV.

A cell that begins with a quote ends at the next quote that is alone; blanks after it do not count.
A quote within such a cell is doubled, or follows the declared escape character. A quote in any
other cell is text. A quoted cell that has text after its closing quote, or no closing quote, is
malformed: what it means can only be guessed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from headgate.flow.sources.details import beginning


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
