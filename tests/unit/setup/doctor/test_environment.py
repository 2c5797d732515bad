from __future__ import annotations

import importlib.util
import sys
from importlib import metadata
from pathlib import Path

import pytest

from headgate.setup.doctor import environment


@pytest.mark.parametrize(
    ("version", "ok"), [((3, 10), False), ((3, 11), True), ((3, 12), True), ((3, 13), False)]
)
def test_python(version: tuple[int, int], ok: bool) -> None:
    found = environment.python(version)
    assert found.ok is ok
    assert bool(found.remedy) is not ok


def test_the_installed_packages_are_the_pinned_ones() -> None:
    assert [(finding.name, finding.ok) for finding in environment.packages()] == [
        ("pyspark", True),
        ("delta-spark", True),
        ("deltalake", True),
    ]


def test_another_version_and_a_missing_package_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(name: str) -> str:
        if name == "deltalake":
            raise metadata.PackageNotFoundError(name)
        return "3.5.1"

    monkeypatch.setattr(metadata, "version", version)
    monkeypatch.setattr(
        metadata, "requires", lambda _: ["pyspark==4.2.0", "delta-spark==3.5.1", "deltalake==1.0"]
    )
    pyspark, delta, deltalake = environment.packages()
    assert (pyspark.ok, pyspark.found, pyspark.needed) == (False, "3.5.1", "4.2.0")
    assert delta.ok
    assert (deltalake.ok, deltalake.found) == (False, "not installed")
    assert "make sync" in deltalake.remedy


def test_a_pin_is_found_among_alike_names() -> None:
    requirements = ["pyspark-client==9", "pyspark ==4.2.0 ; extra == 'x'"]
    assert environment.pinned_version("pyspark", requirements) == "4.2.0"
    with pytest.raises(LookupError):
        environment.pinned_version("delta-spark", requirements)


def test_pyspark_python_may_be_unset_or_this_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    assert environment.pyspark_python().ok
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    assert environment.pyspark_python().ok


@pytest.mark.parametrize("script", ["echo 3.9", "exit 1"])
def test_another_pyspark_python_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    other = tmp_path / "python3.9"
    other.write_text(f"#!/bin/sh\n{script}\n")
    other.chmod(0o755)
    monkeypatch.setenv("PYSPARK_PYTHON", str(other))
    found = environment.pyspark_python()
    assert not found.ok
    assert "unset PYSPARK_PYTHON" in found.remedy


def test_a_pyspark_python_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", "no-such-python")
    assert "cannot be started" in environment.pyspark_python().found


def test_spark_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_HOME", raising=False)
    assert environment.spark_home().ok
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    assert not environment.spark_home().ok
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None
    assert spec.submodule_search_locations
    monkeypatch.setenv("SPARK_HOME", spec.submodule_search_locations[0])
    assert environment.spark_home().ok
