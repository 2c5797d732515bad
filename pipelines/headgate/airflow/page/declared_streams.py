"""The streams in Airflow's database: the API server reads no DAG file."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from airflow.models.dag import DagModel, DagTag
from airflow.models.serialized_dag import SerializedDagModel
from sqlalchemy import select
from sqlalchemy.orm import Session

from headgate.airflow.page.reports import StreamAddress
from headgate.supervision.launcher import LOCAL

TAG = "headgate"
_STREAM = ("headgate.airflow.operators.stream_operator", "StreamOperator")
_CONTROL = ("headgate.airflow.operators.control_operator", "ControlOperator")


@dataclass(frozen=True)
class Control:
    """The control DAG of a stream. ``about`` is the stream: its name and root."""

    dag_id: str
    is_paused: bool
    about: tuple[str, str]
    actions: tuple[str, ...]


@dataclass(frozen=True)
class DeclaredStream:
    """A task that keeps a stream running. ``map_index`` is -1 if it is not mapped. ``control``
    is None if the stream has no control DAG."""

    subject: StreamAddress
    dag_id: str
    task_id: str
    map_index: int
    is_paused: bool
    control: Control | None


@dataclass(frozen=True)
class _Dag:
    is_paused: bool
    content: Mapping[str, Any] = field(repr=False)


def declared_streams(session: Session, dag_ids: Collection[str]) -> tuple[DeclaredStream, ...]:
    """The streams of some DAGs, sorted by name."""
    dags = _tagged(session)
    controls = {control.dag_id: control for control in _controls(dags)}
    found = []
    for dag_id, dag in dags.items():
        if dag_id not in dag_ids:
            continue
        for task in _tasks(dag, _STREAM):
            for map_index, subject in _subjects(task):
                control = controls.get(f"{subject.name}__control")
                is_its = control is not None and control.about == (subject.name, subject.root)
                found.append(
                    DeclaredStream(
                        subject=subject,
                        dag_id=dag_id,
                        task_id=str(task["task_id"]),
                        map_index=map_index,
                        is_paused=dag.is_paused,
                        control=control if is_its else None,
                    )
                )
    return tuple(sorted(found, key=lambda each: (each.subject.name, each.dag_id, each.map_index)))


def _tagged(session: Session) -> dict[str, _Dag]:
    rows = session.execute(
        select(DagModel.dag_id, DagModel.is_paused)
        .join(DagTag, DagTag.dag_id == DagModel.dag_id)
        .where(DagTag.name == TAG, ~DagModel.is_stale)
    )
    paused = {dag_id: bool(is_paused) for dag_id, is_paused in rows}
    serialized = SerializedDagModel.get_latest_serialized_dags(
        dag_ids=list(paused), session=session
    )
    return {
        each.dag_id: _Dag(paused[each.dag_id], each.data["dag"]) for each in serialized if each.data
    }


def _tasks(dag: _Dag, of: tuple[str, str]) -> Iterator[Mapping[str, Any]]:
    for task in dag.content.get("tasks", ()):
        content = task["__var"]
        if (content.get("_task_module"), content.get("task_type")) == of:
            yield content


def _subjects(task: Mapping[str, Any]) -> Iterator[tuple[int, StreamAddress]]:
    """The map index and the stream of a task, or of each mapped task. Streams that are known only
    at run time, such as those of another task's list, are left out."""
    if not task.get("_is_mapped"):
        yield from _subject(-1, task)
        return
    given = _plain(task["expand_input"].get("value"))
    if isinstance(given, list):
        for index, one in enumerate(given):
            if isinstance(one, Mapping):
                yield from _subject(index, {**task["partial_kwargs"], **one})


def _subject(map_index: int, about: Mapping[str, Any]) -> Iterator[tuple[int, StreamAddress]]:
    file, name, root = (about.get(key) for key in ("file", "name", "root"))
    launcher = about.get("launcher") or LOCAL
    if all(isinstance(value, str) for value in (file, name, root, launcher)):
        yield map_index, StreamAddress(str(file), str(name), str(root), str(launcher))


def _controls(dags: Mapping[str, _Dag]) -> Iterator[Control]:
    for dag_id, dag in dags.items():
        for task in _tasks(dag, _CONTROL):
            about = (str(task.get("name")), str(task.get("root")))
            yield Control(dag_id, dag.is_paused, about, _actions(dag))


def _actions(dag: _Dag) -> tuple[str, ...]:
    for name, param in dag.content.get("params", ()):
        if name == "action":
            return tuple(map(str, _plain(param.get("schema", {})).get("enum", ())))
    return ()


def _plain(value: Any) -> Any:
    """A value of a serialized DAG, without type tags."""
    if isinstance(value, Mapping):
        return _plain(value["__var"]) if "__var" in value else {k: _plain(value[k]) for k in value}
    return [_plain(each) for each in value] if isinstance(value, list) else value
