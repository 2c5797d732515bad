"""Links of a task that keeps a stream running, also while it is deferred."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar
from urllib.parse import quote

from airflow.sdk import BaseOperator, BaseOperatorLink

from headgate.airflow.operators.stream_operator import StreamOperator
from headgate.airflow.page.address import page_address, shell_address

if TYPE_CHECKING:
    from airflow.sdk.types import TaskInstanceKey


class StreamLink(BaseOperatorLink):
    name = "Stream"
    operators: ClassVar[list[type[BaseOperator]]] = [StreamOperator]

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        return f"{shell_address()}/dags/{quote(ti_key.dag_id, safe='')}/plugin/stream"


class SparkLogLink(BaseOperatorLink):
    name = "Spark log"
    operators: ClassVar[list[type[BaseOperator]]] = [StreamOperator]

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        place = "/".join(quote(part, safe="") for part in (ti_key.dag_id, ti_key.task_id))
        return f"{page_address()}api/streams/{place}/spark-log?map_index={ti_key.map_index}"
