"""The rules of the alerts, as promtool evaluates them."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from headgate.insight.metrics.alerts import alerts, metrics_down, rules

needs_promtool = pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is missing")

P = 'pipeline="shop"'
RUNS = {f"headgate_running{{{P}}}": "1+0x200", f"headgate_meant_to_run{{{P}}}": "1+0x200"}
RESTS = {f"headgate_running{{{P}}}": "0+0x200", f"headgate_meant_to_run{{{P}}}": "0+0x200"}
DOWN = {f"headgate_running{{{P}}}": "0+0x200", f"headgate_meant_to_run{{{P}}}": "1+0x200"}
WAITS = DOWN | {f'headgate_condition{{{P},condition="waiting"}}': "1+0x200"}


def limit(name: str, seconds: float) -> dict[str, str]:
    return {f'headgate_limit_seconds{{{P},limit="{name}"}}': f"{seconds}+0x200"}


def latency(slow: int) -> dict[str, str]:
    """Series of batches: ``slow`` of each hundred take longer than the limit."""
    counts = {"slow_batches_total": slow, "arrival_to_gold_seconds_count": 100}
    return {
        f'headgate_{name}{{{P},table="gold/a"}}': f"0+{count}x200" for name, count in counts.items()
    }


def counted(counter: str, outcomes: Mapping[str, int]) -> dict[str, str]:
    of = f'{counter}{{{P},table="silver/a",outcome='
    return {f'{of}"{outcome}"}}': f"0+{rate}x200" for outcome, rate in outcomes.items()}


@dataclass(frozen=True)
class Case:
    """Series of an hour with a value per minute. ``fires``: whether the alert fires at the end."""

    alert: str
    series: Mapping[str, str]
    fires: bool


RATIO = {
    f'headgate_limit_ratio{{{P},limit="{name}"}}': "0.05+0x200" for name in ("late", "quarantined")
}
S = f'{P},source="a"'
OUTAGE = f"headgate_outage_timestamp_seconds{{{S}}}"
OF_LOAD = f"headgate_load_outage_timestamp_seconds{{{P}}}"
FAILED = f"headgate_source_failed_timestamp_seconds{{{S}}}"
UPTODATE = f'headgate_up_to_date_timestamp_seconds{{{P},driver="fused"}}'
CONDITION = f'headgate_condition{{{P},condition="dead"}}'
LAST = f'headgate_last_record_timestamp_seconds{{{P},source="a"}}'
EXPECTED = {f'headgate_expected_input_seconds{{{P},source="a"}}': "300+0x200"}
LAG = f'headgate_event_time_lag_seconds{{{P},source="a"}}'
FAR = {f"headgate_expected_event_time_lag_seconds{{{S}}}": "300+0x200", LAG: "301+0x200"}
BACKLOG = f"headgate_backlog_files{{{S}}}"
MANY_FILES = {f"headgate_limit_files{{{P}}}": "1000+0x200", BACKLOG: "1001+0x200"}
OLD_RECORDS = limit("backlog", 900) | {f"headgate_backlog_age_seconds{{{S}}}": "901+0x200"}
AGE = f"headgate_savepoint_age_seconds{{{P}}}"
INVALID = f'headgate_readable{{{P},part="declaration"}}'
READ = f"headgate_refreshed_timestamp_seconds{{{P}}}"
SINCE = f'headgate_publication_stuck_timestamp_seconds{{{P},publication="a"}}'
LETTERS = f'headgate_publication_dead_letters{{{P},publication="a"}}'
UNSENT = f'headgate_publication_lag_seconds{{{P},publication="a"}}'
QUARANTINED = {"silver": 9, "quarantined": 1}
STUCK = limit("publication", 900)
RECORDS, PAIRS = "headgate_records_total", "headgate_pairs_total"

CASES = [
    Case("HeadgateDown", DOWN | {CONDITION: "1+0x200"}, True),
    Case("HeadgateDown", {f"headgate_meant_to_run{{{P}}}": "0+0x200", CONDITION: "1+0x200"}, False),
    Case("HeadgateDown", RUNS | {CONDITION: "0+0x200"}, False),
    Case("HeadgateNoProgress", RUNS | limit("freshness", 600) | {UPTODATE: "0+0x200"}, True),
    Case("HeadgateNoProgress", RUNS | limit("freshness", 600) | {UPTODATE: "0+60x200"}, False),
    Case("HeadgateNoProgress", limit("freshness", 600) | {UPTODATE: "0+0x200"}, False),
    Case("HeadgateOutage", limit("outage", 60) | {OUTAGE: "3400+0x200"}, True),
    Case("HeadgateOutage", limit("outage", 60) | {OUTAGE: "3570+0x200"}, False),
    Case("HeadgateOutage", limit("outage", 60), False),
    Case("HeadgateLoadOutage", limit("outage", 60) | {OF_LOAD: "3400+0x200"}, True),
    Case("HeadgateLoadOutage", limit("outage", 60), False),
    Case("HeadgateSourceFailed", RUNS | {FAILED: "3400+0x200"}, True),
    Case("HeadgateSourceFailed", RUNS, False),
    Case("HeadgateBacklog", DOWN | MANY_FILES, True),
    Case("HeadgateBacklog", RUNS | MANY_FILES | {BACKLOG: "1000+0x200"}, False),
    Case("HeadgateBacklog", RESTS | MANY_FILES, False),
    Case("HeadgateBacklog", RUNS | OLD_RECORDS, True),
    Case("HeadgateBacklog", RESTS | OLD_RECORDS, False),
    Case("HeadgateBackpressure", RUNS | {f"headgate_backpressure{{{S}}}": "1+0x200"}, True),
    Case("HeadgateBackpressure", DOWN | {f"headgate_backpressure{{{S}}}": "1+0x200"}, False),
    Case("HeadgateLatency", latency(slow=6), True),
    Case("HeadgateLatency", latency(slow=5), False),
    Case("HeadgateLatency", dict.fromkeys(latency(slow=6), "9+0x200"), False),
    Case("HeadgateTrouble", {f'headgate_trouble{{{P},driver="fused"}}': "1+0x200"}, True),
    Case("HeadgateNoInput", RUNS | EXPECTED | {LAST: "0+0x200"}, True),
    Case("HeadgateNoInput", RUNS | EXPECTED | {LAST: "0+60x200"}, False),
    Case("HeadgateNoInput", DOWN | EXPECTED | {LAST: "0+0x200"}, False),
    Case("HeadgateNoInput", RUNS | {LAST: "0+0x200"}, False),
    Case(
        "HeadgateNoInput",
        RUNS | EXPECTED | {LAST: "0+0x200", BACKLOG: "3+0x200"},
        False,
    ),
    Case(
        "HeadgateNoInput",
        RUNS | EXPECTED | {LAST: "0+0x200", f'headgate_backlog_files{{{P},source="b"}}': "3+0x200"},
        True,
    ),
    Case(
        "HeadgateEventTimeLag",
        RUNS | FAR,
        True,
    ),
    Case("HeadgateEventTimeLag", RUNS | {LAG: "90000+0x200"}, False),
    Case("HeadgateEventTimeLag", RUNS | FAR | {OUTAGE: "0+0x200"}, False),
    Case("HeadgateNoInput", RUNS | EXPECTED | {LAST: "0+0x200", FAILED: "0+0x200"}, False),
    Case("HeadgateLateShare", RATIO | counted(PAIRS, {"folded": 90, "late": 10}), True),
    Case("HeadgateLateShare", RATIO | counted(PAIRS, {"folded": 96, "late": 4}), False),
    Case("HeadgateLateShare", RATIO | counted(PAIRS, {"folded": 0, "late": 0}), False),
    Case("HeadgateQuarantineShare", RATIO | counted(RECORDS, QUARANTINED), True),
    Case("HeadgateQuarantineShare", RATIO | counted(RECORDS, {"silver": 9, "rejected": 1}), False),
    Case("HeadgateRejectedShare", RATIO | counted(RECORDS, {"silver": 9, "rejected": 1}), True),
    Case("HeadgateFilesSetAside", {f'headgate_files_set_aside{{{P},source="a"}}': "1+0x200"}, True),
    Case(
        "HeadgateFilesSetAside", {f'headgate_files_set_aside{{{P},source="a"}}': "0+0x200"}, False
    ),
    Case("HeadgateGateHeld", {f'headgate_gate_held{{{P},table="gold/a"}}': "1+0x200"}, True),
    Case("HeadgatePublicationsPaused", {f"headgate_circuit_breaker_open{{{P}}}": "1+0x200"}, True),
    Case("HeadgateDeadLetters", {LETTERS: "1+0x200"}, True),
    Case("HeadgateDeadLetters", {LETTERS: "0+0x200"}, False),
    Case("HeadgatePublicationStuck", RUNS | STUCK | {UNSENT: "901+0x200"}, True),
    Case("HeadgatePublicationStuck", RUNS | STUCK | {UNSENT: "9+0x200"}, False),
    Case("HeadgatePublicationStuck", RUNS | STUCK | {SINCE: "0+0x200"}, True),
    Case("HeadgatePublicationStuck", RUNS | STUCK | {SINCE: "0+60x200"}, False),
    Case("HeadgatePublicationStuck", DOWN | STUCK | {SINCE: "0+0x200"}, False),
    Case("HeadgatePublicationStuck", WAITS | STUCK | {SINCE: "0+0x200"}, True),
    Case("HeadgateSavepointOld", WAITS | limit("savepoint", 7260) | {AGE: "7261+0x200"}, True),
    Case("HeadgateLedgerUnbalanced", {f"headgate_ledger_differences{{{P}}}": "1+0x200"}, True),
    Case("HeadgateLedgerUnbalanced", {f"headgate_ledger_differences{{{P}}}": "0+0x200"}, False),
    Case("HeadgateSavepointOld", RUNS | limit("savepoint", 7260) | {AGE: "7261+0x200"}, True),
    Case("HeadgateSavepointOld", RUNS | {AGE: "99999+0x200"}, False),
    Case(
        "HeadgateNoSavepoint",
        RUNS | limit("savepoint", 7260) | {f"headgate_savepoints{{{P}}}": "0+0x200"},
        True,
    ),
    Case("HeadgateNoSavepoint", RUNS | {f"headgate_savepoints{{{P}}}": "0+0x200"}, False),
    Case("HeadgateSavepointDamaged", {f"headgate_savepoints_damaged{{{P}}}": "1+0x200"}, True),
    Case("HeadgateUnreadable", {f'headgate_readable{{{P},part="tables"}}': "0+0x200"}, True),
    Case("HeadgateUnreadable", {f'headgate_readable{{{P},part="tables"}}': "1+0x200"}, False),
    Case("HeadgateUnreadable", {INVALID: "0+0x200"}, False),
    Case("HeadgateDeclarationInvalid", {INVALID: "0+0x200"}, True),
    Case("HeadgateDeclarationInvalid", {INVALID: "1+0x200"}, False),
    Case("HeadgateMetricsStale", {READ: "0+0x200"}, True),
    Case("HeadgateMetricsStale", {READ: "0+60x200"}, False),
    Case("HeadgateMetricsDown", {'up{job="headgate",instance="a:9464"}': "0+0x200"}, True),
    Case("HeadgateMetricsDown", {'up{job="other",instance="a:9464"}': "0+0x200"}, False),
]


def promtool(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["promtool", *arguments], cwd=cwd, capture_output=True, text=True, check=False, timeout=60
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "alerts.yml").write_text(rules())
    return tmp_path


@needs_promtool
def test_promtool_takes_the_rules(folder: Path) -> None:
    done = promtool("check", "rules", "--lint-fatal", "alerts.yml", cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr


@needs_promtool
def test_wrong_rules_would_be_refused(folder: Path) -> None:
    file = folder / "alerts.yml"
    file.write_text(file.read_text().replace("headgate_gate_held == 1", "headgate_gate_held =="))
    assert promtool("check", "rules", "alerts.yml", cwd=folder).returncode != 0


def test_each_alert_has_a_case_in_which_it_fires() -> None:
    fired = {case.alert for case in CASES if case.fires}
    assert fired == {alert.name for alert in (*alerts(), metrics_down())}


@needs_promtool
@pytest.mark.slow
@pytest.mark.parametrize("twice", [False, True], ids=["once", "two targets"])
def test_alerts_fire_when_they_should(folder: Path, twice: bool) -> None:
    """With ``twice``, the driver and ``headgate metrics`` are both scraped. Each alert has its own
    file, because promtool evaluates all rules of a file for every case."""
    yaml = YAML(typ="safe")
    (group,) = yaml.load(folder / "alerts.yml")["groups"]
    for rule in group["rules"]:
        alert = rule["alert"]
        yaml.dump({"groups": [group | {"rules": [rule]}]}, folder / f"{alert}.rules.yml")
        tests = [test for case in CASES if case.alert == alert for test in _evaluated(case, twice)]
        content = {"rule_files": [f"{alert}.rules.yml"], "evaluation_interval": "1m"}
        yaml.dump(content | {"tests": tests}, folder / f"{alert}.tests.yml")
    done = promtool(
        "test", "rules", *sorted(f.name for f in folder.glob("*.tests.yml")), cwd=folder
    )
    assert done.returncode == 0, done.stdout + done.stderr


def _evaluated(case: Case, twice: bool) -> list[dict[str, object]]:
    """The promtool tests of a case. They count the firing alerts, so no labels are compared."""
    targets = ("a:1", "b:2") if twice else ("a:1",)
    series = [
        {"series": _at(name, target), "values": values}
        for name, values in case.series.items()
        for target in targets
    ]
    fires = f'ALERTS{{alertname="{case.alert}", alertstate="firing"}}'
    query = f"count(sum by (pipeline) ({fires})) or vector(0)"
    samples = [{"labels": "{}", "value": 1 if case.fires else 0}]
    test = {"expr": query, "eval_time": "60m", "exp_samples": samples}
    return [
        {"name": case.alert, "interval": "1m", "input_series": series, "promql_expr_test": [test]}
    ]


def _at(series: str, target: str) -> str:
    if "instance=" in series:
        return series
    return f'{series[:-1]},job="headgate",instance="{target}"}}'
