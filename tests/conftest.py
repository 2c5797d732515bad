"""What every test may ask for. Spark starts at most once, when a test first needs it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headgate.jars import class_archive
from tests.support.broker import broker  # noqa: F401  (a fixture)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# As in a shell where the environment is active: messages then say `headgate`, and not its path.
os.environ["PATH"] = os.pathsep.join(
    [str(Path(sys.executable).absolute().parent), os.environ["PATH"]]
)
# A JVM of a test lives for seconds: what its optimizing compiler costs never comes back.
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1")
# Tests change the caches' place: the archive stays, and none of them records another.
os.environ.setdefault(class_archive.SWITCH, str(class_archive.path() or "off"))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The session of a driver, shared by all tests: a JVM takes seconds to start."""
    from headgate.jars import cached_jars
    from headgate.jobs import session

    scratch = tmp_path_factory.mktemp("spark")
    started = session.start("tests", cores=2, scratch=scratch, jars=cached_jars())
    yield started
    started.stop()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What measures the heap comes first: in a JVM that hundreds of other tests have used, what
    those left behind is let go at times of its own."""
    items.sort(key=lambda item: "test_steadiness" not in item.nodeid)
