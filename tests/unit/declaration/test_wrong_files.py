"""Invalid values in the `files` part of a source."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headgate.declaration.errors import DeclarationProblem
from headgate.declaration.model import Pipeline
from tests.support.declared import files_of

Read = Callable[[str], Pipeline]
Refuse = Callable[[str], tuple[DeclarationProblem, ...]]


@pytest.mark.parametrize(
    ("delimiter", "says"),
    [
        ("'\"'", "must not be the quote character"),
        ('"\\n"', "must not be the end of a line"),
        ("''", "must be one character"),
    ],
)
def test_a_delimiter_that_csv_needs_itself(
    delimiter: str, says: str, base: str, refuse: Refuse
) -> None:
    text = base.replace("format: json", f"format: csv, csv: {{delimiter: {delimiter}}}")
    (problem,) = refuse(text)
    assert problem.key == "sources.orders.files.csv.delimiter"
    assert says in problem.message


def test_a_tab_is_a_delimiter(base: str, read: Read) -> None:
    text = base.replace("format: json", 'format: csv, csv: {delimiter: "\\t"}')
    assert files_of(read(text)).csv_delimiter == "\t"


@pytest.mark.parametrize(
    ("csv", "says"),
    [
        ('{escape: "\\\\", delimiter: "\\\\"}', "must differ from the delimiter"),
        ("{escape: ','}", "must differ from the delimiter"),
        ("{escape: '\"'}", "must not be the quote character, which CSV reserves"),
        ("{escape: ''}", "must be one character"),
    ],
)
def test_an_escape_that_means_something_else(
    csv: str, says: str, base: str, refuse: Refuse
) -> None:
    (problem,) = refuse(base.replace("format: json", f"format: csv, csv: {csv}"))
    assert (problem.key, problem.message) == ("sources.orders.files.csv.escape", says)


def test_an_escape_is_part_of_what_is_meant(base: str, read: Read) -> None:
    without = read(base.replace("format: json", "format: csv"))
    escaped = read(base.replace("format: json", 'format: csv, csv: {escape: "\\\\"}'))
    assert files_of(escaped).csv_escape == "\\"
    assert escaped.digest != without.digest
