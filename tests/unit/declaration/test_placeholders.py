"""Values that a declaration does not hold itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from headgate.declaration.errors import DeclarationProblem
from headgate.declaration.model import Pipeline
from tests.support.declared import files_of

Read = Callable[[str], Pipeline]
Refuse = Callable[[str], tuple[DeclarationProblem, ...]]

PATH = "landing/orders"


def test_the_environment_and_files_are_read(
    base: str, read: Read, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANDING", "/data")
    monkeypatch.setenv("MOST_FILES", "7")
    (tmp_path / "folder.txt").write_text("orders\n", encoding="utf-8")
    text = base.replace(PATH, "'${env:LANDING}/${file:folder.txt}'")
    text = text.replace("format: json", "format: json, max_files_per_batch: '${env:MOST_FILES}'")
    files = files_of(read(text))
    assert (files.path, files.max_files_per_batch) == ("/data/orders", 7)


@pytest.mark.parametrize(
    ("placeholder", "says"),
    [
        ("${env:HEADGATE_NOT_SET}", "HEADGATE_NOT_SET is not set; type: export"),
        ("${file:none.txt}", "none.txt of ${file:none.txt} cannot be read"),
        ("${env:}", "without a name; write it as ${env:NAME}"),
        ("${file: }", "without a name; write it as ${file:PATH}"),
        ("${vault:secret}", "a placeholder is ${env:NAME} or ${file:PATH}"),
        ("${env:A", "a placeholder is ${env:NAME} or ${file:PATH}"),
    ],
)
def test_what_cannot_be_resolved_is_said(
    placeholder: str, says: str, base: str, refuse: Refuse
) -> None:
    (problem,) = refuse(base.replace(PATH, f"'{placeholder}'"))
    assert problem.key == "sources.orders.files.path"
    assert says in problem.message


def test_what_it_stands_for_is_in_no_error(
    base: str, refuse: Refuse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "hunter2")
    text = base.replace("format: json", "format: json, max_files_per_batch: '${env:SECRET}'")
    (problem,) = refuse(text)
    assert "hunter2" not in str(problem)
    assert "${env:SECRET}" in problem.message


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("format: json", "format: '${env:HOME}'"),
        ("pipeline: shop", "pipeline: ${env:HOME}"),
        ("price > 0", "note = '${env:HOME}'"),
        ("10 minutes", "'${env:HOME}'"),
    ],
)
def test_elsewhere_they_are_refused(old: str, new: str, base: str, refuse: Refuse) -> None:
    (problem,) = refuse(base.replace(old, new))
    assert "placeholders are resolved only in" in problem.message


def test_where_a_source_lies_does_not_change_the_digest(
    base: str, read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANDING", "/data")
    assert read(base).digest == read(base.replace(PATH, "'${env:LANDING}'")).digest
