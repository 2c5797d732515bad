"""Files that cannot be read, of any kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.declaration.reading.checked import ProblemReport
from headgate.declaration.reading.document import read_file


def told(file: Path) -> list[str]:
    report = ProblemReport(file)
    assert read_file(file, report, "dashboard") is None
    return [f"{problem.line}: {problem.message}" for problem in report.problems]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"a: 1\nb: 2\nc: \xff\n", "3: is not UTF-8 text"),
        (b"#" * 2_000_000, "1: is larger than 1 MB: not a dashboard"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(content: bytes, says: str, tmp_path: Path) -> None:
    file = tmp_path / "a.yml"
    file.write_bytes(content)
    assert told(file) == [says]


def test_there_may_be_no_file(tmp_path: Path) -> None:
    assert told(tmp_path / "none.yml") == ["1: cannot be read: No such file or directory"]
    assert told(tmp_path) == ["1: cannot be read: Is a directory"]
    assert told(Path("a\0b")) == ["1: cannot be read: not a path"]


def test_a_byte_order_mark_is_no_text(tmp_path: Path) -> None:
    file = tmp_path / "a.yml"
    file.write_bytes(b"\xef\xbb\xbfa: 1\r\n")
    assert read_file(file, ProblemReport(file), "dashboard") == "a: 1\r\n"
