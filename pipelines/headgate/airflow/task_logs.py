"""The logging configuration of the Airflow of ``headgate up``, which has no log servers.

The logs of all components and tasks are on one disk, where the API server reads them. For a task
that runs, Airflow's own configuration would also ask a log server, and report that none answers.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from airflow.config_templates.airflow_local_settings import DEFAULT_LOGGING_CONFIG
from airflow.utils.log.file_task_handler import FileTaskHandler


class DiskTaskHandler(FileTaskHandler):
    """Reads the logs of tasks and triggers from the disk only."""

    def _read_from_logs_server(self, *_: Any) -> tuple[list[str], list[Any]]:
        return [], []


CONFIG = deepcopy(DEFAULT_LOGGING_CONFIG)
CONFIG["handlers"]["task"]["class"] = f"{__name__}.{DiskTaskHandler.__name__}"
