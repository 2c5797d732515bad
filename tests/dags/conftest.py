"""Airflow inside the tests' process: with a home of its own, and no database."""

from __future__ import annotations

import os
import tempfile

# Airflow reads this when it is imported, and creates its home then.
os.environ["AIRFLOW_HOME"] = tempfile.mkdtemp(prefix="airflow-")
os.environ["_AIRFLOW__AS_LIBRARY"] = "1"

from collections.abc import Iterator

import pytest

from tests.support import any_counts as counts


@pytest.fixture(autouse=True)
def any_counts() -> Iterator[None]:
    """Most files of the tables in these tests do not exist."""
    with counts.any_counts():
        yield
