"""Fixtures and hooks of all tests. Spark starts at most once, when a test first needs it."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from headgate import commands
from headgate.machine.jars import class_archive, java
from tests.support.broker import broker  # noqa: F401  (a fixture)
from tests.support.reaper import reaping
from tests.support.rounds import in_full
from tests.support.sliding_lake import all_files, first_file  # noqa: F401  (fixtures)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# As in a shell where the environment is active: messages then say `headgate`, and not its path.
os.environ["PATH"] = os.pathsep.join(
    [str(Path(sys.executable).absolute().parent), os.environ["PATH"]]
)
# A JVM of a test lives for seconds, so its optimizing compiler, its parallel collector and huge
# pages cost more than they save. Without the optimizing compiler, the JVM has room for 48 MB of
# code, which the shared session fills within a minute.
os.environ.setdefault(
    java.OPTIONS,
    "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
    " -XX:-UseParallelGC -XX:+UseSerialGC -XX:-UseTransparentHugePages",
)
# With two threads, deltalake passes each step of a commit to the other thread, which costs a tenth
# of the commit's time.
os.environ.setdefault("TOKIO_WORKER_THREADS", "1")
# Tests change the place of the caches. They all use the existing class archive and record no other.
os.environ.setdefault(class_archive.SWITCH, str(class_archive.path() or "off"))
# On a busy machine, any example may take long.
settings.register_profile("tests", deadline=None)
settings.load_profile("tests")
_numbers = count()


@pytest.fixture(autouse=True)
def _texts_are_about_no_pipeline() -> Iterator[None]:
    """After each test, reset the place for which messages render commands."""
    yield
    commands.set_place(commands.Place())


@pytest.fixture(scope="session", autouse=True)
def _nothing_outlives_the_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with reaping(tmp_path_factory.getbasetemp()):
        yield


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Like pytest's own, but without reading the names of all its folders for the next number."""
    name = re.sub(r"\W", "_", request.node.name)[:30]
    return tmp_path_factory.mktemp(f"{name}{next(_numbers)}", numbered=False)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The session of a driver, shared by all tests: a JVM takes seconds to start."""
    from headgate.driver.session import LocalSessions
    from headgate.machine.jars import cached_jars

    scratch = tmp_path_factory.mktemp("spark")
    started = LocalSessions(2, cached_jars()).start("tests", scratch)
    yield started
    started.stop()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test that runs only in a full run is marked as a long proof. The longest scopes come first,
    so that none is left for one worker at the end. Scopes that mostly wait, for processes that they
    start, alternate with scopes that compute."""
    for item in items:
        if in_full.mark in item.iter_markers():
            item.add_marker(pytest.mark.long)
    scopes = list(dict.fromkeys(_scope(item.nodeid) for item in items))
    places = {
        scope: (place, 0.0)
        for place, part in enumerate(_FIRST)
        for scope in scopes
        if part in scope
    }
    for kind in (_WAITING, _COMPUTING):
        found = [scope for scope in scopes if scope not in places and scope.startswith(kind)]
        places |= {s: (len(_FIRST), n / len(found)) for n, s in enumerate(found)}
    last = (len(_FIRST) + 1, 0.0)
    items.sort(key=lambda item: places.get(_scope(item.nodeid), last))


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """One queue for all workers."""
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return _scope(nodeid)

    return ByFile(config, log)


def _scope(nodeid: str) -> str:
    """The tests of a file share fixtures, so they stay together, as do those of some folders, which
    share the import of Airflow, an Airflow, a wheel with a project, a broker or a server of
    PostgreSQL."""
    file = nodeid.partition("::")[0]
    return next((folder for folder in _ONE_SCOPE if file.startswith(folder)), file)


_ONE_SCOPE = (
    "tests/dags",
    "tests/e2e/airflow",
    "tests/e2e/cli",
    "tests/e2e/kafka/",
    "tests/unit/flow/publish/sinks/postgres",
)
_FIRST = (
    "test_steadiness",  # measures the heap, so no other test may have used its JVM
    "tests/e2e/airflow",
)
_WAITING = ("tests/e2e", "tests/recovery")
_COMPUTING = ("tests/spark", "tests/kafka")
