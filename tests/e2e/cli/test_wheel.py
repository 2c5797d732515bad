"""The wheel is complete: it works without the clone."""

from __future__ import annotations

import os
import subprocess
import zipfile
from pathlib import Path

import pytest

from tests.e2e.cli.conftest import answer
from tests.e2e.test_readme import CLONE, told, words

pytestmark = pytest.mark.e2e

PACKAGE = CLONE / "pipelines" / "headgate"


def shipped(folder: Path) -> set[str]:
    """All files in a folder of the clone, relative to the folder."""
    found = (p for p in folder.rglob("*") if p.is_file() and "__pycache__" not in p.parts)
    return {p.relative_to(folder).as_posix() for p in found}


def test_the_wheel_carries_all_that_is_no_code_too(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {f"headgate/{name}" for name in shipped(PACKAGE)} <= names
    assert {f"headgate/examples/{name}" for name in shipped(PACKAGE.parent / "examples")} <= names
    assert {f"headgate/examples/expectations/{n}" for n in shipped(CLONE / "expectations")} <= names
    assert {"headgate/infra/jars.lock", "headgate/infra/kafka.lock"} <= names
    assert "headgate/setup/templates/shop/pipelines/shop.yml" in names
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"headgate"}


def test_the_engine_is_the_wheels_own(installed: Path, tmp_path: Path) -> None:
    code = "import headgate, importlib.metadata as m; print(*headgate.__path__)"
    code += "; print(m.version('apache-airflow'))"
    command = [str(installed / "bin" / "python"), "-I", "-c", code]
    done = answer(command, tmp_path, os.environ)
    package, airflow = done.stdout.splitlines()
    assert Path(package).is_relative_to(installed)
    assert f"apache-airflow=={airflow}" in (CLONE / "pyproject.toml").read_text()


def test_the_first_pipeline_says_what_the_readme_says(
    typed: subprocess.CompletedProcess[str],
) -> None:
    """`test_cli.py` continues with this pipeline."""
    said = words(typed.stdout)
    assert [line for line in told() if line not in said] == [], typed.stdout
