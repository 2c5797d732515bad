"""Airflow as people run it: scheduler, triggerer, dag-processor and API server as real processes,
over a real driver. Whatever is done to them, one driver runs, or none if a stop was requested."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from headgate.lake.storage.layout import Layout
from headgate.supervision import local
from tests.support.airflow import running_airflow
from tests.support.airflow_site import CONTROL, STREAM, Site, streams_file
from tests.support.drivers import REPOSITORY
from tests.support.lossy_proxy import lossy_proxy
from tests.support.readings import declare_few

SHIPPED = REPOSITORY / "pipelines/headgate/setup/templates/shop/dags"


@pytest.fixture(scope="package")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """One site for all tests here. At the end, every event must be accounted for."""
    folder = tmp_path_factory.mktemp("airflow")
    (folder / "landing").mkdir()
    declared = declare_few(folder / "pipelines", folder / "landing")
    shutil.copytree(SHIPPED, folder / "dags")
    (folder / "dags/streams.py").write_text(streams_file(folder))
    with ExitStack() as ends:
        # This runs last: as long as Airflow runs, it replaces a driver that is killed.
        ends.callback(local.kill, Layout.of(str(folder / "lake"), declared.name))
        proxy = ends.enter_context(lossy_proxy("set by Airflow"))
        airflow = ends.enter_context(running_airflow(folder / "home", folder / "dags", proxy=proxy))
        place = Site(folder, airflow, declared, secret=uuid.uuid4().hex)
        place.connect()
        place.deliver()
        airflow.switch_on(STREAM)
        airflow.switch_on(CONTROL)
        place.wait_for_owner()
        yield place
        place.accounts_for_every_event()
