"""The declared metrics are those that are served, documented, and used by alerts and dashboard."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from headgate.insight.metrics.alerts import alerts, metrics_down, rules
from headgate.insight.metrics.definitions import METRICS, Metric
from headgate.insight.metrics.page import ALERTS, DOCUMENT, with_tables
from headgate.insight.metrics.samples import Samples
from headgate.insight.status.limits import CHECKS

CLONE = Path(__file__).parents[4]
DASHBOARD = CLONE / "infra/grafana/dashboards/headgate.json"
NAME = re.compile(r"\bheadgate_[a-z_]+")
_BASE_UNITS = ("seconds", "bytes", "ratio", "records", "files", "batches", "rows", "windows")


def series_names(metric: Metric) -> tuple[str, ...]:
    """The names of the series of a metric, as a query names them."""
    if metric.type != "histogram":
        return (metric.name,)
    return tuple(f"{metric.name}_{suffix}" for suffix in ("bucket", "sum", "count"))


KNOWN = {name for metric in METRICS.values() for name in series_names(metric)}


def unknown(text: str) -> set[str]:
    """The metrics that a text names but that are not served."""
    return set(NAME.findall(text)) - KNOWN


@pytest.mark.parametrize("metric", METRICS.values(), ids=lambda metric: metric.name)
def test_names_follow_the_conventions_of_prometheus(metric: Metric) -> None:
    assert (metric.type == "counter") == metric.name.endswith("_total")
    said = metric.name.removesuffix("_total").rpartition("_")[2]
    if said in _BASE_UNITS and said in ("seconds", "bytes", "ratio"):
        assert metric.unit == said
    if metric.unit in ("seconds", "bytes", "ratio"):
        assert said == metric.unit
    assert metric.help.endswith(".")
    assert (metric.type == "histogram") == bool(metric.buckets)
    assert list(metric.buckets) == sorted(metric.buckets)
    # Prometheus adds these labels to each target, and would rename ours.
    assert not {"job", "instance"}.intersection(metric.all_labels)


def test_the_tables_in_the_docs_are_up_to_date() -> None:
    text = (CLONE / DOCUMENT).read_text(encoding="utf-8")
    assert with_tables(text) == text, "python -m headgate.insight.metrics.page"
    assert text.count("| `headgate_") == len(METRICS)


def test_the_file_of_alerts_is_up_to_date() -> None:
    assert (CLONE / ALERTS).read_text(encoding="utf-8") == rules(), (
        "python -m headgate.insight.metrics.page"
    )


def test_alerts_name_metrics_that_are_served() -> None:
    assert unknown(rules()) == set()
    assert unknown("headgate_backlog") == {"headgate_backlog"}


def queries() -> list[str]:
    """The queries of the dashboard: those of its panels and of its variables."""
    content = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    named = [target["expr"] for panel in content["panels"] for target in panel.get("targets", ())]
    return named + [str(each.get("query", "")) for each in content["templating"]["list"]]


def test_the_dashboard_names_metrics_that_are_served() -> None:
    assert len(queries()) > 20
    assert unknown(" ".join(queries())) == set()


def test_the_dashboard_shows_what_became_of_everything() -> None:
    shown = set(NAME.findall(" ".join(queries())))
    outcomes = {metric.name for metric in METRICS.values() if "outcome" in metric.labels}
    assert {"headgate_records_total", "headgate_items_total"} <= outcomes
    assert outcomes <= shown


def test_panels_of_the_dashboard_lie_beside_each_other() -> None:
    panels = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: dict[tuple[int, int], str] = {}
    for panel in panels:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24
        for x in range(at["x"], at["x"] + at["w"]):
            for y in range(at["y"], at["y"] + at["h"]):
                assert taken.setdefault((x, y), panel["title"]) == panel["title"]


def test_grafana_is_provisioned_with_the_source_and_the_dashboard() -> None:
    folder, yaml = CLONE / "infra/grafana/provisioning", YAML(typ="safe")
    (source,) = yaml.load(folder / "datasources/prometheus.yml")["datasources"]
    assert (source["type"], source["access"]) == ("prometheus", "proxy")
    (provider,) = yaml.load(folder / "dashboards/headgate.yml")["providers"]
    assert provider["options"]["path"] in (CLONE / DOCUMENT).read_text(encoding="utf-8")


def test_each_health_check_has_an_alert() -> None:
    assert {alert.check for alert in alerts()} - {None} == set(CHECKS)


def test_the_docs_name_the_alerts_that_do_not_fire_while_a_stream_is_stopped() -> None:
    text = (CLONE / DOCUMENT).read_text(encoding="utf-8")
    (said,) = re.findall(r"these alerts do not fire: ([^.]*)\.", text)
    needs = re.compile(r"headgate_(running|meant_to_run) == 1")
    bound = {alert.name for alert in alerts() if needs.search(alert.expression)}
    assert set(re.findall(r"`(\w+)`", said)) == bound


def test_alerts_have_names_of_their_own() -> None:
    names = [alert.name for alert in (*alerts(), metrics_down())]
    assert len(set(names)) == len(names)


def test_no_sample_of_an_undeclared_metric_or_label() -> None:
    samples = Samples("tiny")
    with pytest.raises(KeyError):
        samples.add("unheard_of", 1)
    with pytest.raises(KeyError, match="headgate_running has the labels"):
        samples.add("running", 1, table="gold/a")
    with pytest.raises(KeyError, match="source, partition"):
        samples.add("backlog_records", 1, source="a")
