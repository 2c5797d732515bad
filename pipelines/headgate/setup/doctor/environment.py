"""Checks of Python: interpreter, packages, and variables that mislead Spark."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

from headgate.commands import INSTALL_AGAIN
from headgate.machine.process_tree.utf8 import other_encoding
from headgate.setup.doctor.check_result import CheckResult, failed, passed

# Only these versions were tested together.
_PINNED = ("pyspark", "delta-spark", "deltalake")

_UTF8 = "Install a locale with UTF-8, such as C.UTF-8, and type: export LC_ALL=C.UTF-8"

_PYTHONS = ((3, 11), (3, 12))
_PYTHON_NEEDED = "Python " + " or ".join(f"{major}.{minor}" for major, minor in _PYTHONS)


def python(version: tuple[int, int] = sys.version_info[:2]) -> CheckResult:
    found = f"Python {version[0]}.{version[1]} ({sys.executable})"
    if version not in _PYTHONS:
        return failed(
            "Python",
            found,
            _PYTHON_NEEDED,
            "Make an environment of one: uv venv --python 3.11   (in a clone: make sync)",
        )
    return passed("Python", found, _PYTHON_NEEDED)


def names_of_files() -> CheckResult:
    """A JVM cannot open a path that its locale cannot encode."""
    needed = "UTF-8"
    if (found := other_encoding()) is not None:
        return failed("names of files", f"{found}, by the locale", needed, _UTF8)
    return passed("names of files", needed, needed)


def packages() -> tuple[CheckResult, ...]:
    """The pinned packages, at the versions that this installation of Headgate requires."""
    try:
        requirements = metadata.requires("headgate") or []
    except metadata.PackageNotFoundError:
        return (failed("headgate", "not installed as a package", "an installation", INSTALL_AGAIN),)
    return tuple(_package(name, pinned_version(name, requirements)) for name in _PINNED)


def _package(name: str, needed: str) -> CheckResult:
    try:
        found = metadata.version(name)
    except metadata.PackageNotFoundError:
        return failed(name, "not installed", needed, INSTALL_AGAIN)
    if found != needed:
        return failed(name, found, needed, INSTALL_AGAIN)
    return passed(name, found, needed)


def pinned_version(name: str, requirements: list[str]) -> str:
    """The version in ``name==version``. Raises LookupError if Headgate does not pin it."""
    for requirement in requirements:
        match = re.match(rf"{re.escape(name)}\s*==\s*([^\s;,]+)", requirement)
        if match:
            return match[1]
    raise LookupError(f"headgate does not pin {name}")


def pyspark_python() -> CheckResult:
    """A worker with another Python version than the driver fails at the first Python function."""
    needed = "unset, or this Python's version"
    chosen = os.environ.get("PYSPARK_PYTHON")
    if not chosen:
        return passed("PYSPARK_PYTHON", "not set", needed)
    version = _version_of(chosen)
    this = f"{sys.version_info[0]}.{sys.version_info[1]}"
    if version != this:
        found = f"Python {version}" if version else "which cannot be started"
        return failed("PYSPARK_PYTHON", f"{chosen}, {found}", needed, "Type: unset PYSPARK_PYTHON")
    return passed("PYSPARK_PYTHON", f"{chosen}, Python {version}", needed)


def _version_of(executable: str) -> str | None:
    path = shutil.which(executable)
    if path is None:
        return None
    question = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        answer = subprocess.run(
            [path, "-c", question], capture_output=True, text=True, timeout=20, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip()


def spark_home() -> CheckResult:
    """PySpark uses SPARK_HOME unchecked, and could start another Spark than the pinned one."""
    needed = "unset, or the installed PySpark"
    chosen = os.environ.get("SPARK_HOME")
    if not chosen:
        return passed("SPARK_HOME", "not set", needed)
    spec = importlib.util.find_spec("pyspark")
    ours = (
        [Path(place).resolve() for place in (spec.submodule_search_locations or ())] if spec else []
    )
    if Path(chosen).resolve() not in ours:
        return failed("SPARK_HOME", f"{chosen}, another Spark", needed, "Type: unset SPARK_HOME")
    return passed("SPARK_HOME", chosen, needed)
