"""A task instance of Airflow, of which operators use only XComs and the number of the attempt."""

from __future__ import annotations

from typing import Any


class TaskInstance:
    """``returned`` is what other tasks have returned; of a mapped task, by map index."""

    def __init__(self, **returned: Any) -> None:
        self.returned = returned
        self.pushed: dict[str, Any] = {}
        self.try_number = 1

    def xcom_push(self, key: str, value: Any) -> None:
        self.pushed[key] = value

    def xcom_pull(self, task_ids: str, map_indexes: int | None = None) -> Any:
        found = self.returned.get(task_ids)
        return found if map_indexes is None else (found or {}).get(map_indexes)
