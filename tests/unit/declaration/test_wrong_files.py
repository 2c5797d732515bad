"""Invalid values in the `files` part of a source."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headgate.declaration.errors import Problem
from headgate.declaration.model import Pipeline
from tests.support.declared import files_of

Read = Callable[[str], Pipeline]
Refuse = Callable[[str], tuple[Problem, ...]]


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
