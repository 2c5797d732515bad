"""An example of the README, typed in a new clone. A module names its section: ``HEADING``."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.e2e.test_readme import README
from tests.support.readme_example import clone_into, type_commands
from tests.support.said import SaidHere


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The clone, with the files that the example needs."""
    return clone_into(tmp_path_factory.mktemp("clone"))


@pytest.fixture(scope="module")
def shown(request: pytest.FixtureRequest) -> str:
    """The section's commands, and what they print."""
    section = README.split(f"## {request.module.HEADING}\n")[1].split("\n## ")[0]
    return "".join(re.findall(r"```console\n(.*?)```", section, re.DOTALL))


@pytest.fixture(scope="module")
def typed(folder: Path, spark: SparkSession, shown: str) -> SaidHere:
    """The commands, typed in the clone, and all that they have said."""
    headgate = SaidHere(folder, spark)
    type_commands(headgate, folder, shown)
    return headgate
