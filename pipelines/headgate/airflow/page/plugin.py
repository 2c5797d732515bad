"""What Airflow finds through its entry point.

Every process of Airflow loads plugins, also workers and triggerers. Only the API server reads
``fastapi_apps``, so only it imports the modules of the page.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from airflow.plugins_manager import AirflowPlugin

from headgate.airflow.page.address import PREFIX, page_address

ROUTE = "streams"
"""The route of the list within Airflow's own pages: ``/plugin/streams``."""


class HeadgatePlugin(AirflowPlugin):
    name = "headgate"

    @cached_property
    def fastapi_apps(self) -> list[Any]:  # type: ignore[override]
        from headgate.airflow.page.app import page_app

        return [{"app": page_app(), "url_prefix": PREFIX, "name": "Headgate"}]

    @cached_property
    def operator_extra_links(self) -> list[Any]:  # type: ignore[override]
        from headgate.airflow.page.links import SparkLogLink, StreamLink

        return [StreamLink(), SparkLogLink()]

    @cached_property
    def external_views(self) -> list[Any]:  # type: ignore[override]
        icons = {
            "icon": f"{page_address()}static/icon.svg",
            "icon_dark_mode": f"{page_address()}static/icon-dark.svg",
        }
        return [
            {
                "name": "Streams",
                "href": page_address(),
                "destination": "nav",
                "nav_top_level": True,
                "url_route": ROUTE,
                **icons,
            },
            {
                "name": "Stream",
                "href": f"{page_address()}?dag_id={{DAG_ID}}",
                "destination": "dag",
                "url_route": "stream",
                **icons,
            },
        ]
