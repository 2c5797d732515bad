from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from headgate.errors import HeadgateError
from headgate.machine.jars import ivy
from headgate.machine.jars.lock import Jar, LockSet, locked


def serve(monkeypatch: pytest.MonkeyPatch, **contents: bytes) -> list[tuple[Jar, ...]]:
    """Stands in for Ivy: delivers the requested jars that are in ``contents``. Returns the
    calls."""
    calls: list[tuple[Jar, ...]] = []

    def run(draft: Path, wanted: tuple[Jar, ...]) -> str:
        calls.append(wanted)
        (draft / "lib").mkdir()
        for jar in wanted:
            if jar.artifact in contents:
                (draft / "lib" / jar.file_name).write_bytes(contents[jar.artifact])
        return "WARN: module not found\n\n    ::::::\n"

    monkeypatch.setattr(ivy, "_run_ivy", run)
    return calls


def visible(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if path.name != ".fetch.lock"}


def test_fetches_what_is_missing_and_only_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "one-1.0.jar").write_bytes(b"1")
    calls = serve(monkeypatch, two=b"22")
    assert ivy.fetch() == (folder / "one-1.0.jar", folder / "two-1.0.jar")
    assert ivy.fetch() == (folder / "one-1.0.jar", folder / "two-1.0.jar")
    assert [[jar.artifact for jar in call] for call in calls] == [["two"]]


def test_fetches_the_jars_of_one_lock_only(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = serve(monkeypatch, three=b"333")
    assert ivy.fetch(LockSet.KAFKA) == (folder / "three-1.0.jar",)
    assert [[jar.artifact for jar in call] for call in calls] == [["three"]]
    assert visible(folder) == {"three-1.0.jar", "verified.json"}


def test_a_file_is_no_place_for_jars(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = folder / "file"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch()
    monkeypatch.setenv("HEADGATE_JARS", str(file))
    with pytest.raises(
        HeadgateError, match="the jars cannot be kept in .*: it is a file"
    ) as raised:
        ivy.fetch()
    assert raised.value.exit_code == 8


def test_replaces_a_damaged_jar(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "one-1.0.jar").write_bytes(b"broken")
    serve(monkeypatch, one=b"1", two=b"22")
    ivy.fetch()
    assert (folder / "one-1.0.jar").read_bytes() == b"1"


def test_other_bytes_than_pinned_are_thrown_away(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(monkeypatch, one=b"1", two=b"XX")
    with pytest.raises(HeadgateError, match="org.example:two:1.0 was fetched but is not the jar"):
        ivy.fetch()
    assert visible(folder) == set()


def test_a_jar_that_cannot_be_had_is_named_with_what_ivy_said(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(monkeypatch, one=b"1")
    with pytest.raises(HeadgateError, match="org.example:two:1.0 could not be fetched") as raised:
        ivy.fetch()
    assert "module not found" in raised.value.message
    assert visible(folder) == set()


def test_without_java_the_remedy_is_doctor(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(HeadgateError, match="Java was not found") as raised:
        ivy.fetch()
    assert "headgate doctor" in raised.value.remedy


def test_the_ivy_file_names_each_jar_and_resolves_nothing_further() -> None:
    dependencies = ElementTree.fromstring(ivy.ivy_xml(locked())).findall(".//dependency")
    assert {d.attrib["transitive"] for d in dependencies} == {"false"}
    assert [d.attrib["name"] for d in dependencies] == [jar.artifact for jar in locked()]


def test_ivy_is_found_inside_pyspark() -> None:
    assert ivy.ivy_jar().is_file()
