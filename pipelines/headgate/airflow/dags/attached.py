"""What users of Airflow attach to all their DAGs: owners, callbacks, tags, pools, queues."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from airflow.sdk import BaseOperator

from headgate.airflow.dags.common import SINCE
from headgate.declaration.names import nearest

Callback: TypeAlias = Callable[..., None]
"""It gets the context of the task or of the run, as Airflow's callbacks do."""
Callbacks: TypeAlias = Callback | Sequence[Callback]
Access: TypeAlias = Mapping[str, Any]
"""Roles, with what they may do: ``access_control`` of a DAG."""

_POOL = ("pool", "pool_slots")
_OURS = frozenset(
    {
        # Chosen for each task: a supervisor has to outlive workers that die, and a check that has
        # failed is not repeated.
        *("retries", "retry_delay", "retry_exponential_backoff", "max_retry_delay", "retry_policy"),
        # A stream is supervised whatever happened to earlier runs and tasks.
        *("start_date", "end_date", "depends_on_past", "ignore_first_depends_on_past"),
        *("wait_for_downstream", "wait_for_past_depends_before_skipping", "trigger_rule"),
        *("max_active_tis_per_dag", "max_active_tis_per_dagrun"),
        # A task that ends in the middle of a start looks as if somebody had marked it.
        "execution_timeout",
        # Tasks pass their results on to later ones.
        *("do_xcom_push", "multiple_outputs", "inlets", "outlets", "params", "map_index_template"),
    }
)
"""Arguments of tasks that have no effect in the ``default_args`` of a user."""


@dataclass(frozen=True)
class Attached:
    """``default_args`` are those of all tasks; ``slots`` are further arguments of a task that
    computes for a long time: its pool."""

    default_args: Mapping[str, Any]
    slots: Mapping[str, Any]
    tags: tuple[str, ...]
    of_dags: Mapping[str, Any]

    @staticmethod
    def of(
        default_args: Mapping[str, Any] | None,
        tags: Collection[str],
        named: Mapping[str, str | None],
        callbacks: Mapping[str, Callbacks | None],
        access_control: Access | None,
    ) -> Attached:
        """``named`` are arguments of tasks that ``build_dags`` takes as keywords, and ``callbacks``
        those of DAGs. Raises ValueError or TypeError if something is wrong with them."""
        given = _default_args(default_args, named)
        if isinstance(tags, str):
            raise TypeError(f"tags is a list of texts, such as tags=[{tags!r}]")
        for name, called in (*given.items(), *callbacks.items()):
            if name.endswith("_callback"):
                _require_callable(name, called)
        if access_control is not None and not isinstance(access_control, Mapping):
            raise TypeError("access_control is a dictionary from roles to what they may do")
        kept = {k: v for k, v in given.items() if k not in _OURS and k not in _POOL}
        slots = {k: given[k] for k in _POOL if k in given}
        of_dags: dict[str, Any] = {k: v for k, v in callbacks.items() if v is not None}
        if access_control is not None:
            of_dags["access_control"] = dict(access_control)
        return Attached(kept, slots, tuple(tags), of_dags)

    def keywords(self, *tags: str, **default_args: Any) -> dict[str, Any]:
        """The keywords of a DAG with ``tags`` and ``default_args`` of its own."""
        return {
            "start_date": SINCE,
            "catchup": False,
            "tags": [*tags, *self.tags],
            "default_args": {**self.default_args, **default_args},
            **self.of_dags,
        }


def _default_args(
    default_args: Mapping[str, Any] | None, named: Mapping[str, str | None]
) -> dict[str, Any]:
    if default_args is not None and not isinstance(default_args, Mapping):
        raise TypeError("default_args is a dictionary of arguments of tasks")
    given = dict(default_args or {})
    known = inspect.signature(BaseOperator.__init__).parameters.keys() - {"self", "kwargs"}
    for name in given:
        if name not in known:
            close = nearest(str(name), known)
            meant = f"; did you mean {close!r}?" if close else ""
            raise ValueError(f"default_args: tasks have no argument {name!r}{meant}")
    for name, value in named.items():
        if value is None:
            continue
        if not isinstance(value, str):
            raise TypeError(f"{name} is a text, not {value!r}")
        if name in given:
            raise ValueError(f"{name} is also in default_args: give it once")
        given[name] = value
    return given


def _require_callable(name: str, called: object) -> None:
    each = called if isinstance(called, (list, tuple)) else [called]
    if called is not None and not all(map(callable, each)):
        raise TypeError(f"{name} is a function, or a list of functions, not {called!r}")
