"""The wheel, built and installed as the README says, and the README's first pipeline with it.

The dependencies of the wheel come from uv's cache, in the locked versions, so this works offline
if ``make sync`` has run once.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.machine.jars import class_archive
from tests.e2e.test_readme import CLONE, first_pipeline
from tests.support.rounds import IN_FULL
from tests.support.said import Said, SaidHere

NAME = """my "shop"'s, $HOME {a}* #1"""

Headgate = Callable[..., "subprocess.CompletedProcess[str]"]


def answer(
    command: Sequence[str], folder: Path, variables: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=folder,
        env=variables,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )


def working_uv() -> str:
    """The uv that the Makefile uses: a uv on PATH that cannot run counts as missing."""
    for found in (shutil.which("uv"), shutil.which(CLONE / ".tools" / "uv" / "bin" / "uv")):
        if found and answer([found, "--version"], CLONE, os.environ).returncode == 0:
            return found
    raise AssertionError("no uv: make sync")


def commands() -> list[str]:
    """The README's commands to install Headgate, before its first call."""
    told = (CLONE / "README.md").read_text("utf-8").split("## Away from the clone\n")[1]
    lines = told.split("```console\n")[1].split("```")[0].splitlines()
    assert lines[-1] == "$ ~/headgate/bin/headgate doctor"
    return [line.removeprefix("$ ") for line in lines[:-1]]


@pytest.fixture(scope="package")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sources of the wheel, so that the build writes nothing into the real clone. The
    wheel is installed in the home of this test, with packages from uv's cache if possible, else
    from the registry."""
    folder = tmp_path_factory.mktemp("clone")
    ignored = shutil.ignore_patterns("__pycache__")
    for name in ("pipelines", "infra", "expectations"):
        shutil.copytree(CLONE / name, folder / name, ignore=ignored)
    for name in ("pyproject.toml", "uv.lock", "CHANGELOG.md", "LICENSE", "README.md"):
        shutil.copy(CLONE / name, folder)
    uv = working_uv()
    cache = answer([uv, "cache", "dir"], CLONE, os.environ).stdout.strip()
    variables = {k: v for k, v in os.environ.items() if k != "VIRTUAL_ENV"}
    variables |= {"PATH": f"{Path(uv).parent}:{os.environ['PATH']}", "HOME": str(folder / "home")}
    variables |= {"UV_CACHE_DIR": cache, "UV_PYTHON": sys.executable}
    script = "\n".join(["set -eu", *commands(), "uv pip check --python ~/headgate"])
    said = ""
    for offline in ("1", "0"):
        shutil.rmtree(folder / "home", ignore_errors=True)
        done = answer(["bash", "-c", script], folder, variables | {"UV_OFFLINE": offline})
        if done.returncode == 0:
            return folder
        said += done.stderr
    raise AssertionError(said)


@pytest.fixture(scope="package")
def wheel(clone: Path) -> Path:
    (built,) = (clone / "dist").glob("*.whl")
    return built


@pytest.fixture(scope="package")
def installed(clone: Path) -> Path:
    """An environment that has only the wheel and its dependencies."""
    return clone / "home" / "headgate"


def headgate_in(folder: Path, spark: SparkSession) -> Headgate:
    """Runs the clone's command. In a full run, each call is a process of its own, with its own
    Spark. In a short run, only ``run`` and ``late show`` are, because a start costs as much as a
    command."""
    alone, here = Said(folder), SaidHere(folder, spark)
    processes = (("run", "shop"), ("late", "show"))

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return (alone if IN_FULL or arguments[:2] in processes else here)(*arguments)

    return run


@pytest.fixture(scope="package")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the project, in a folder whose name has to be quoted."""
    above = tmp_path_factory.mktemp("e2e") / NAME
    above.mkdir()
    return above / "shop"


@pytest.fixture(scope="package")
def typed(installed: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """The result of the README's commands for a first pipeline, with the installed command and no
    variable of this clone in the environment."""
    kept = ("HOME", "JAVA_HOME", "HEADGATE_DRIVER_JAVA_OPTIONS", "LANG")
    variables = {k: v for k, v in os.environ.items() if k in kept}
    variables |= {"PATH": f"{installed / 'bin'}:{os.environ['PATH']}", "COLUMNS": "120"}
    # Else the first run would record its classes beside the tests, into the user's cache.
    variables[class_archive.SWITCH] = "off"
    done = answer(["bash", "-c", first_pipeline()], folder.parent, variables)
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture(scope="package")
def shop(folder: Path, typed: subprocess.CompletedProcess[str], spark: SparkSession) -> Headgate:
    """The project, which has run once."""
    return headgate_in(folder, spark)
