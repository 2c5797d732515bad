"""The permissions of a user, from Airflow's auth manager."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity, DagDetails
from airflow.models.dag import DagModel
from sqlalchemy.orm import Session

from headgate.airflow.page.declared_streams import DeclaredStream


@dataclass(frozen=True)
class Access:
    """``dag_id`` is the control DAG. ``why_not`` is the reason why this user cannot use its
    buttons; None if they can. ``actions`` are those of the DAG. ``may_read_log``: whether this user
    may read the driver's log; ``may_read_audit``: the DAG's audit log."""

    dag_id: str
    why_not: str | None
    actions: tuple[str, ...]
    may_read_log: bool
    may_read_audit: bool


def readable_dags(user: BaseUser, session: Session) -> set[str]:
    manager: Any = get_auth_manager()
    found: set[str] = manager.get_authorized_dag_ids(user=user, method="GET", session=session)
    return found


def access(
    stream: DeclaredStream, user: BaseUser, readable: Collection[str], session: Session
) -> Access:
    control = stream.control
    dag_id = f"{stream.subject.name}__control"
    why_not = None
    if control is None or control.dag_id not in readable:
        why_not = f"There is no DAG {dag_id} about this stream that you may see."
    elif not _may(user, "POST", DagAccessEntity.RUN, dag_id, session):
        why_not = f"You may not trigger runs of {dag_id}."
    elif control.is_paused:
        why_not = f"{dag_id} is paused: switch it on."
    return Access(
        dag_id,
        why_not,
        control.actions if control else (),
        _may(user, "GET", DagAccessEntity.TASK_LOGS, stream.dag_id, session),
        _may(user, "GET", DagAccessEntity.AUDIT_LOG, stream.dag_id, session),
    )


def _may(
    user: BaseUser, method: Any, entity: DagAccessEntity, dag_id: str, session: Session
) -> bool:
    manager: Any = get_auth_manager()
    details = DagDetails(id=dag_id, team_name=DagModel.get_team_name(dag_id, session=session))
    allowed: bool = manager.is_authorized_dag(
        method=method, access_entity=entity, details=details, user=user
    )
    return allowed
