"""Who may see and do what on the page, with Airflow's own application, database and roles."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from headgate.airflow.page import reports
from headgate.airflow.page.pauses import Pause, pause_of
from headgate.commands import pipeline_command
from headgate.declaration.load import load
from headgate.errors import HeadgateError
from headgate.lake.storage.layout import Layout
from headgate.supervision.logs import run_log, spark_log
from tests.support.waiting import wait_until
from tests.unit.insight.ledger.conftest import DECLARATION, Lake, fill

# Warnings of Airflow and of its imports.
pytestmark = pytest.mark.filterwarnings("ignore")

USERS = {"admin": "admin", "viewer": "viewer", "guest": "viewer"}
SHOWN = "/headgate/api/streams"
DAGS = """
from airflow.sdk import DAG

from headgate.airflow import StreamOperator, build_dags

globals().update(build_dags("pipelines"))

with DAG("mine", tags=["headgate"]) as mine:
    StreamOperator.partial(task_id="each", root="elsewhere").expand_kwargs(
        [{"file": "a.yml", "name": "shop"}, {"file": "b.yml", "name": "b"}]
    )

with DAG("untagged", tags=["other"]) as untagged:
    StreamOperator(task_id="supervise", file="c.yml", name="c", root="c")
"""


class Site:
    """An Airflow with the DAGs of ``shop`` and ``hidden``; ``guest`` is a viewer of everything but
    the DAGs of ``hidden`` and audit logs."""

    def __init__(self, folder: Path) -> None:
        for name in ("dags", "pipelines"):
            (folder / name).mkdir()
        (folder / "dags/streams.py").write_text(DAGS)
        for name in ("shop", "hidden"):
            (folder / f"pipelines/{name}.yml").write_text(DECLARATION.replace("tiny", name))
        self.folder = folder
        self.client = _client()
        _parse(folder / "dags")

    def login(self, user: str) -> dict[str, str]:
        answer = self.client.post("/auth/token", json={"username": user, "password": user})
        assert answer.status_code == 201, answer.text
        return {"Authorization": f"Bearer {answer.json()['access_token']}"}

    def get(self, path: str, user: str) -> Any:
        return self.client.get(path, headers=self.login(user))

    def streams(self, user: str, query: str = "") -> dict[tuple[str, int], dict[str, Any]]:
        """The streams that a user sees, by DAG id and map index."""
        answer = self.get(SHOWN + query, user)
        assert answer.status_code == 200, answer.text
        return {(s["dag_id"], s["map_index"]): s for s in answer.json()["streams"]}

    def set_paused(self, dag: str, is_paused: bool) -> None:
        answer = self.client.patch(
            f"/api/v2/dags/{dag}", json={"is_paused": is_paused}, headers=self.login("admin")
        )
        assert answer.status_code == 200, answer.text

    def trigger(self, user: str, **conf: str) -> int:
        """Trigger a run as the page's button does. Returns the HTTP status."""
        wanted = {"logical_date": None, "conf": conf}
        path = "/api/v2/dags/shop__control/dagRuns"
        answer = self.client.post(path, json=wanted, headers=self.login(user))
        return int(answer.status_code)


def _client() -> Any:
    from airflow import settings

    settings.initialize()  # type: ignore[no-untyped-call]
    from airflow.api_fastapi.app import create_app, purge_cached_app
    from airflow.utils import db
    from fastapi.testclient import TestClient

    db.initdb()
    purge_cached_app()
    return TestClient(create_app())


def _parse(dags: Path) -> None:
    from airflow.dag_processing.bundles.manager import DagBundlesManager
    from airflow.dag_processing.dagbag import DagBag, sync_bag_to_db

    DagBundlesManager().sync_bundles_to_db()  # type: ignore[no-untyped-call]
    bag = DagBag(dag_folder=str(dags), bundle_path=dags, bundle_name="dags-folder")
    assert bag.import_errors == {}
    sync_bag_to_db(bag, "dags-folder", None)


def _write(event: str, dag_id: str) -> None:
    """Write an event to the audit log."""
    from airflow.models.log import Log
    from airflow.utils.session import create_session

    with create_session() as session:
        session.add(Log(event=event, dag_id=dag_id, owner="scheduler"))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager

    folder = tmp_path_factory.mktemp("page")
    passwords = folder / "passwords.json"
    passwords.write_text(json.dumps({user: user for user in USERS}))
    usual = SimpleAuthManager.is_authorized_dag

    def per_dag(self: Any, *, user: Any, details: Any = None, **asked: Any) -> bool:
        audit = str(asked.get("access_entity")).endswith("AUDIT_LOG")
        if user.username == "guest" and (
            audit or (details and str(details.id).startswith("hidden"))
        ):
            return False
        return bool(usual(self, user=user, details=details, **asked))

    with pytest.MonkeyPatch.context() as patch:
        core = "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER"
        patch.setenv(f"{core}_USERS", ",".join(":".join(each) for each in USERS.items()))
        patch.setenv(f"{core}_PASSWORDS_FILE", str(passwords))
        patch.setattr(SimpleAuthManager, "is_authorized_dag", per_dag)
        yield Site(folder)


def _routes() -> list[str]:
    from starlette.routing import Route

    from headgate.airflow.page.app import page_app

    app = page_app()
    assert all(isinstance(route, Route) for route in app.routes), "who may see what is mounted?"
    return [route.path for route in app.routes if isinstance(route, Route)]


def test_every_route_wants_a_login(site: Site) -> None:
    """Routes that are added later are tested, too."""
    paths = _routes()
    assert "/api/streams" in paths
    for path in paths:
        real = path.replace("{path:path}", "api/overview").format(
            name="page.js", dag_id="shop__stream", task_id="supervise"
        )
        answer = site.client.get(f"/headgate{real}")
        assert answer.status_code == 401, path
        assert "shop" not in answer.text


def test_a_token_that_is_none_is_no_login(site: Site) -> None:
    answer = site.client.get(SHOWN, headers={"Authorization": "Bearer nonsense"})
    assert answer.status_code in (401, 403)


def test_no_route_changes_anything() -> None:
    from headgate.airflow.page.app import page_app

    methods = {method for route in page_app().routes for method in getattr(route, "methods", ())}
    assert methods <= {"GET", "HEAD"}


def test_the_session_of_the_browser_is_a_login(site: Site) -> None:
    token = site.login("viewer")["Authorization"].removeprefix("Bearer ")
    answer = site.client.get("/headgate/", cookies={"_token": token})
    site.client.cookies.clear()
    assert answer.status_code == 200
    assert "script-src 'self'" in answer.headers["content-security-policy"]


def test_a_viewer_sees_streams_and_may_not_act(site: Site) -> None:
    site.set_paused("shop__control", False)
    stream = site.streams("viewer")["shop__stream", -1]
    assert stream["control"]["may_act"] is False
    assert stream["control"]["why_not"] == "You may not trigger runs of shop__control."
    assert site.trigger("viewer", action="stop") == 403


def test_an_admin_may_act(site: Site) -> None:
    site.set_paused("shop__control", False)
    stream = site.streams("admin")["shop__stream", -1]
    assert (stream["control"]["may_act"], stream["control"]["why_not"]) == (True, None)
    assert {"stop", "start from savepoint"} <= set(stream["control"]["actions"])
    assert site.trigger("admin", action="stop") == 200


def test_a_run_for_which_nobody_chose_an_action_is_refused(site: Site) -> None:
    assert site.trigger("admin") == 400
    assert site.trigger("admin", action="explode") == 400
    assert site.trigger("admin", savepoint="latest") == 400


def test_a_control_dag_that_is_paused_is_of_no_use(site: Site) -> None:
    site.set_paused("shop__control", True)
    stream = site.streams("admin")["shop__stream", -1]
    assert stream["control"]["why_not"] == "shop__control is paused: switch it on."


def test_who_has_paused_a_dag_is_in_the_audit_log(
    site: Site,
) -> None:
    def pause(user: str = "admin") -> Any:
        return site.streams(user)["shop__stream", -1]["pause"]

    assert pause()["by"] is None, "it was never on"
    site.set_paused("shop__stream", False)
    assert pause() is None
    site.set_paused("shop__stream", True)
    found = pause()
    assert (found["by"], found["who"]) == ("person", "admin")
    assert abs(datetime.fromisoformat(found["at"]) - datetime.now(UTC)) < timedelta(minutes=1)
    assert (pause("guest")["by"], pause("guest")["who"]) == ("person", None)
    _write("paused", "shop__stream")  # as Airflow does after failed runs
    found = pause()
    assert (found["by"], found["who"], found["failed_runs"]) == ("airflow", None, 3)


@pytest.mark.parametrize(
    ("event", "extra", "by"),
    [
        ("paused", "[('is_paused', True)]", "airflow"),
        ("patch_dag", '{"is_paused": true, "method": "PATCH"}', "person"),
        ("patch_dag", '{"is_paused": false, "method": "PATCH"}', None),
        ("patch_dag", "rubbish", None),
        ("patch_dag", "[]", None),
        ("patch_dag", None, None),
        ("cli_dag_pause", '{"host_name": "h"}', "person"),
        ("cli_dag_unpause", '{"host_name": "h"}', None),
    ],
)
def test_the_last_event_tells_who_has_paused(event: str, extra: str | None, by: str | None) -> None:
    at = datetime(2026, 5, 4, tzinfo=UTC)
    who = "eve" if by == "person" else None
    runs = 3 if by == "airflow" else None
    expected = Pause(by, who, at if by else None, runs)  # type: ignore[arg-type]
    assert pause_of(event, "eve", extra, at, 3) == expected


def test_only_streams_of_dags_that_one_may_read(site: Site) -> None:
    assert ("hidden__stream", -1) in site.streams("viewer")
    seen = site.streams("guest")
    assert ("shop__stream", -1) in seen
    assert "hidden" not in json.dumps(list(seen.values()))
    assert site.streams("guest", "?dag_id=hidden__stream") == {}
    path = f"{SHOWN}/hidden__stream/supervise/log"
    assert site.get(path, "guest").status_code == 403


def test_no_connection_to_the_database_waits_for_tables(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow import settings
    from sqlalchemy import event

    taken: list[int] = []
    held: list[int] = []
    usual = reports.Reports.of

    def taking(*_: Any) -> None:
        taken.append(1)

    def giving_back(*_: Any) -> None:
        taken.append(-1)

    def of(kept: reports.Reports, subjects: Any) -> Any:
        held.append(sum(taken))
        return usual(kept, subjects)

    monkeypatch.setattr(reports.Reports, "of", of)
    headers = site.login("viewer")
    event.listen(settings.engine, "checkout", taking)
    event.listen(settings.engine, "checkin", giving_back)
    try:
        assert site.client.get(SHOWN, headers=headers).status_code == 200
    finally:
        event.remove(settings.engine, "checkout", taking)
        event.remove(settings.engine, "checkin", giving_back)
    assert taken
    assert held == [0]


def test_one_dag_alone(site: Site) -> None:
    assert list(site.streams("viewer", "?dag_id=shop__stream")) == [("shop__stream", -1)]
    assert site.streams("viewer", "?dag_id=shop__control") == {}
    assert site.streams("viewer", "?dag_id=nothing") == {}


def test_streams_of_any_dag_with_the_tag(site: Site) -> None:
    seen = site.streams("viewer")
    assert {("mine", 0), ("mine", 1)} <= set(seen)
    assert "untagged" not in {dag for dag, _ in seen}


def test_buttons_never_act_on_another_stream_of_that_name(site: Site) -> None:
    """``mine`` also has a stream named shop, with other tables."""
    site.set_paused("shop__control", False)
    stream = site.streams("admin")["mine", 0]
    assert stream["name"] == "shop"
    assert stream["control"]["may_act"] is False
    assert "no DAG shop__control about this stream" in stream["control"]["why_not"]


def test_a_stream_that_never_ran_and_one_whose_declaration_is_gone(site: Site) -> None:
    seen = site.streams("viewer")
    assert seen["hidden__stream", -1]["status"]["condition"] == "absent"
    assert seen["hidden__stream", -1]["error"] is None
    gone = seen["mine", 1]
    assert "b.yml" in gone["error"]
    assert gone["status"]["condition"] == "absent"


def test_what_its_tables_say(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(Lake(site.folder / "lake", load(site.folder / "pipelines/shop.yml")))
    monkeypatch.setattr(reports, "FRESH", 0.0)
    # The first read included imports, so its cost would delay the next read for long.
    monkeypatch.setattr(reports, "SPARING", 0)

    def account() -> Any:
        """None while the last report is shown: they are being read."""
        tables = site.streams("viewer")["shop__stream", -1]["tables"]
        return tables and tables["account"]

    wait_until(account, "its tables are not read", 60, every=0.5)
    found = account()
    assert (found["read"], found["late"], found["differences"]) == (7, 1, [])


def test_the_last_lines_of_a_log(site: Site) -> None:
    log = run_log(Layout.of(str(site.folder / "lake"), "shop"))
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text("".join(f"line {n}\n" for n in range(80)))
    path = f"{SHOWN}/shop__stream/supervise/log"
    assert site.get(path, "viewer").json()["lines"] == [f"line {n}" for n in range(30, 80)]
    assert site.get(path.replace("supervise", "preflight"), "viewer").status_code == 404


def test_the_report_about_quality(site: Site) -> None:
    path = f"{SHOWN}/shop__stream/supervise/quality"
    answer = site.get(path, "viewer")
    assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-store")
    assert "Quality of shop" in answer.text
    assert "Rejected values are masked" in answer.text
    # A browser applies only the style of the report.
    (style,) = re.findall("<style>(.*?)</style>", answer.text, re.S)
    allowed = b64encode(sha256(style.encode()).digest()).decode()
    policy = answer.headers["content-security-policy"]
    assert f"default-src 'none'; style-src 'sha256-{allowed}'" in policy
    hidden = path.replace("shop", "hidden")
    assert site.get(hidden, "viewer").status_code == 200
    assert site.get(hidden, "guest").status_code == 403
    assert site.get(path.replace("supervise", "preflight"), "viewer").status_code == 404
    gone = site.get(f"{SHOWN}/mine/each/quality?map_index=1", "viewer")
    assert (gone.status_code, "b.yml" in gone.text) == (503, True)


def test_the_dashboard_shows_what_a_user_may_see(site: Site) -> None:
    overview = "/headgate/dashboard/api/overview"
    named = {
        user: {each["pipeline"] for each in site.get(overview, user).json()["pipelines"]}
        for user in ("viewer", "guest")
    }
    assert named == {"viewer": {"shop", "hidden"}, "guest": {"shop"}}
    ledger = "/headgate/dashboard/api/ledger/{}"
    assert site.get(ledger.format("shop"), "guest").status_code == 200
    hidden = site.get(ledger.format("hidden"), "guest")
    assert (hidden.status_code, "hidden here" in hidden.text) == (404, True)
    events = site.get("/headgate/dashboard/api/events?pipeline=hidden", "guest")
    assert events.status_code == 404
    for path in ("", "/", "/gold/shop/per_minute"):
        page = site.get(f"/headgate/dashboard{path}", "guest")
        assert page.status_code == 200, path
        assert 'data-base="/headgate/dashboard"' in page.text
        assert 'src="/headgate/dashboard/static/app.js"' in page.text
        policy = page.headers["content-security-policy"]
        assert "frame-ancestors 'self'" in policy
    script = site.get("/headgate/dashboard/static/app.js", "guest")
    assert script.headers["content-type"].startswith("text/javascript")
    assert site.get("/headgate/dashboard/login", "guest").status_code == 404


def test_the_dashboard_behind_a_base_path_with_a_similar_name(site: Site) -> None:
    from fastapi.testclient import TestClient

    behind, headers = TestClient(site.client.app, root_path="/dashboards"), site.login("viewer")
    for path in ("", "/", "/static/app.js", "/api/overview"):
        answer = behind.get(f"/dashboards/headgate/dashboard{path}", headers=headers)
        assert answer.status_code == 200, path


def test_errors_have_commands_for_the_pipeline(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """The API server shows many pipelines."""
    from headgate.airflow.page import app

    def fails(*_: Any, **__: Any) -> None:
        raise HeadgateError("damaged", pipeline_command("repair"))

    monkeypatch.setattr(app, "findings", fails)
    monkeypatch.setattr(app, "launcher_of", fails)
    command = f" repair {site.folder}/pipelines/hidden.yml --root {site.folder}/lake"
    for path in ("quality", "log", "spark-log"):
        answer = site.get(f"{SHOWN}/hidden__stream/supervise/{path}", "viewer")
        assert (answer.status_code, command in answer.text) == (503, True), path


def test_the_end_of_sparks_log(site: Site) -> None:
    path = f"{SHOWN}/shop__stream/supervise/spark-log"
    assert site.get(path, "viewer").text == ""
    log = spark_log(Layout.of(str(site.folder / "lake"), "shop"), "fused")
    log.write_text("<b>WARN</b> one\n")
    answer = site.get(path, "viewer")
    assert answer.text == "<b>WARN</b> one\n"
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert site.get(path.replace("shop__", "hidden__"), "guest").status_code == 403


@pytest.mark.parametrize("name", ["page.js", "page.css", "icon.svg"])
def test_its_files(site: Site, name: str) -> None:
    assert site.get(f"/headgate/static/{name}", "viewer").status_code == 200


@pytest.mark.parametrize("name", ["page.html", "nothing.js", "..%2Fapp.py", "%2Fetc%2Fpasswd"])
def test_no_other_files(site: Site, name: str) -> None:
    assert site.get(f"/headgate/static/{name}", "viewer").status_code == 404


def test_airflow_knows_where_to_show_it(site: Site) -> None:
    plugins = site.get("/api/v2/plugins", "admin").json()["plugins"]
    views = next(each for each in plugins if each["name"] == "headgate")["external_views"]
    assert {(view["destination"], view["href"]) for view in views} == {
        ("nav", "/headgate/"),
        ("dag", "/headgate/?dag_id={DAG_ID}"),
    }
