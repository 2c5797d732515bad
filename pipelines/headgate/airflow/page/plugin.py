"""What Airflow finds through its entry point.

Every process of Airflow loads plugins, workers and triggers too: what the page is made of is
imported by the API server alone, which is the only one to ask for ``fastapi_apps``.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

from airflow.configuration import conf
from airflow.plugins_manager import AirflowPlugin

PREFIX = "/headgate"
ROUTE = "streams"
"""Of the list in Airflow's own page: ``/plugin/streams``."""


def _address() -> str:
    """Where the page is, also behind a proxy that gives Airflow a path of its own."""
    base = urlsplit(str(conf.get("api", "base_url", fallback=""))).path
    return f"{base.rstrip('/')}{PREFIX}/"


class HeadgatePlugin(AirflowPlugin):
    name = "headgate"

    @cached_property
    def fastapi_apps(self) -> list[Any]:  # type: ignore[override]
        from headgate.airflow.page.app import page_app

        return [{"app": page_app(), "url_prefix": PREFIX, "name": "Headgate"}]

    @cached_property
    def external_views(self) -> list[Any]:  # type: ignore[override]
        icons = {
            "icon": f"{_address()}static/icon.svg",
            "icon_dark_mode": f"{_address()}static/icon-dark.svg",
        }
        return [
            {
                "name": "Streams",
                "href": _address(),
                "destination": "nav",
                "nav_top_level": True,
                "url_route": ROUTE,
                **icons,
            },
            {
                "name": "Stream",
                "href": f"{_address()}?dag_id={{DAG_ID}}",
                "destination": "dag",
                "url_route": "stream",
                **icons,
            },
        ]
