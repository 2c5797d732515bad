"""Airflow inside the tests' process: with a home of its own, and no database."""

from __future__ import annotations

import os
import tempfile

# Read when airflow is imported, and a home is made then.
os.environ["AIRFLOW_HOME"] = tempfile.mkdtemp(prefix="airflow-")
os.environ["_AIRFLOW__AS_LIBRARY"] = "1"
