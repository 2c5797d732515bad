"""The wheel is the product: built and installed as the README says, it works away from the clone.

What it needs comes from uv's cache, in the locked versions: this test works offline where
``make sync`` has been once.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from headgate.jars import class_archive

pytestmark = pytest.mark.e2e

CLONE = Path(__file__).parents[2]
PACKAGE = CLONE / "pipelines" / "headgate"
GIFT = {"order_id": "gift", "channel": "Web", "quantity": 1, "price": 9.5, "giftNote": "For You"}
GIFT |= {"ordered_at": "2026-05-04T11:59:30Z"}

Headgate = Callable[..., dict[str, Any]]


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
    """As the Makefile does: a uv on PATH that cannot run is as good as none."""
    for found in (shutil.which("uv"), shutil.which(CLONE / ".tools" / "uv" / "bin" / "uv")):
        if found and answer([found, "--version"], CLONE, os.environ).returncode == 0:
            return found
    raise AssertionError("no uv: make sync")


def commands() -> list[str]:
    """What the README says is typed to install Headgate, up to where it is first called."""
    told = (CLONE / "README.md").read_text("utf-8").split("## Away from the clone\n")[1]
    lines = told.split("```console\n")[1].split("```")[0].splitlines()
    assert lines[-1] == "$ ~/headgate/bin/headgate doctor"
    return [line.removeprefix("$ ") for line in lines[:-1]]


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the wheel is made of, where nothing of it is written into the real one; what it needs
    is in the home of this test. From uv's cache if it can be done so, else from the registry."""
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


@pytest.fixture(scope="module")
def wheel(clone: Path) -> Path:
    (built,) = (clone / "dist").glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(clone: Path) -> Path:
    """An environment that holds the wheel, what it needs, and nothing else."""
    return clone / "home" / "headgate"


def headgate_of(environment: Path, folder: Path) -> Headgate:
    """The installed command, with nothing of this clone in its environment."""
    kept = ("HOME", "JAVA_HOME", "HEADGATE_DRIVER_JAVA_OPTIONS", "LANG")
    variables = {k: v for k, v in os.environ.items() if k in kept}
    variables["PATH"] = f"{environment / 'bin'}:{os.environ['PATH']}"
    # A first run would record its classes, beside the tests and into the user's cache, for nobody.
    variables[class_archive.SWITCH] = "off"

    def run(*arguments: str) -> dict[str, Any]:
        command = [str(environment / "bin" / "headgate"), *arguments, "--json"]
        done = answer(command, folder, variables)
        assert done.returncode == 0, done.stderr
        document: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return document

    return run


def shipped(folder: Path) -> set[str]:
    """Whatever lies in a folder of the clone, relative to it."""
    found = (p for p in folder.rglob("*") if p.is_file() and "__pycache__" not in p.parts)
    return {p.relative_to(folder).as_posix() for p in found}


def test_the_wheel_carries_all_that_is_no_code_too(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {f"headgate/{name}" for name in shipped(PACKAGE)} <= names
    assert {f"headgate/examples/{name}" for name in shipped(PACKAGE.parent / "examples")} <= names
    suites = {f"headgate/examples/expectations/{n}.yml" for n in ("channels_sliding", "clean_bids")}
    assert suites <= names
    assert {"headgate/infra/jars.lock", "headgate/infra/kafka.lock"} <= names
    assert "headgate/templates/shop/pipelines/shop.yml" in names
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


def add_a_field(project: Path) -> None:
    """What an author does first: a field as the producer names it, a column of it, a measure."""
    file = project / "pipelines" / "shop.yml"
    text = file.read_text()
    for old, new in (
        ("        ordered_at: timestamp\n", "        giftNote: string\n"),
        ("      amount: price * quantity\n", "      giftNote: lower(giftNote)\n"),
        ("      orders: count(*)\n", "      gifts: count(giftNote)\n"),
    ):
        assert text.count(old) == 1
        text = text.replace(old, old + new)
    file.write_text(text)
    landing = project / "landing" / "orders"
    (landing / ".12.json").write_text(json.dumps(GIFT) + "\n")
    (landing / ".12.json").rename(landing / "2026-05-04T12.json")


def test_a_new_project_runs_outside_the_clone(installed: Path, tmp_path: Path) -> None:
    headgate_of(installed, tmp_path)("init", "shop")
    headgate = headgate_of(installed, tmp_path / "shop")
    add_a_field(tmp_path / "shop")
    plan = headgate("plan", "pipelines/shop.yml")
    assert "giftNote" in json.dumps(plan)
    done = headgate("run", "pipelines/shop.yml", "--once", "--drain")
    counted = [done[key] for key in ("read", "duplicate", "quarantined", "rejected", "filtered")]
    assert counted == [61, 1, 1, 1, 1]
    assert done["gold"]["sales_per_hour"]["folded"] == 56
    assert done["balanced"] is True
    sql = (
        "SELECT giftNote, gifts FROM clean_orders, sales_per_hour WHERE giftNote > '' AND gifts > 0"
    )
    assert headgate("query", "pipelines/shop.yml", sql)["rows"] == [["for you", 1]]
