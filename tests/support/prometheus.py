"""Prometheus and Alertmanager as processes of a test, and a receiver of their messages."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

from headgate.machine.process_tree.ports import free_port
from tests.support.waiting import wait_until

PROGRAMS = {
    "prometheus": ("prometheus",),
    "alertmanager": ("alertmanager", "prometheus-alertmanager"),  # its own name, and Debian's
}
PATIENCE = 60.0


def are_installed() -> bool:
    return all(any(map(shutil.which, names)) for names in PROGRAMS.values())


class Receiver(HTTPServer):
    """The webhook of Alertmanager. ``alerts`` has each alert with its status, oldest first."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Receive)
        self.alerts: list[dict[str, Any]] = []
        threading.Thread(target=self.serve_forever, args=(0.1,), daemon=True).start()

    def has(self, name: str, status: str) -> bool:
        """Whether the newest message about an alert says that it is firing or resolved."""
        told = [each["status"] for each in self.alerts if each["labels"]["alertname"] == name]
        return told[-1:] == [status]

    def firing(self) -> set[str]:
        """Every alert that has ever fired."""
        return {a["labels"]["alertname"] for a in self.alerts if a["status"] == "firing"}


class _Receive(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.alerts += json.loads(body)["alerts"]
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        return


@dataclass
class Monitoring:
    """Prometheus at ``url``, and the receiver of its alerts."""

    url: str
    receiver: Receiver
    _processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def query(self, expression: str) -> dict[tuple[tuple[str, str], ...], float]:
        """The current values, by their labels without those of the target."""
        query = urllib.parse.urlencode({"query": expression})
        with urllib.request.urlopen(f"{self.url}/api/v1/query?{query}", timeout=10) as answer:
            found = json.load(answer)["data"]["result"]
        return {_labels(each["metric"]): float(each["value"][1]) for each in found}

    def value(self, expression: str) -> float | None:
        """The only value; None if there is none or several."""
        values = list(self.query(expression).values())
        return values[0] if len(values) == 1 else None


def _labels(metric: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    dropped = ("__name__", "job", "instance")
    return tuple(sorted((k, v) for k, v in metric.items() if k not in dropped))


@contextmanager
def monitored(folder: Path, rules: str, targets: Mapping[str, int]) -> Iterator[Monitoring]:
    """Scrape ``targets`` (job name to port of this machine) each second, and evaluate the rules."""
    receiver = Receiver()
    ports = {name: free_port() for name in ("prometheus", "alertmanager")}
    _configure(folder, rules, targets, ports["alertmanager"], receiver.server_port)
    url = f"http://127.0.0.1:{ports['prometheus']}"
    processes = [
        _start(
            folder,
            "alertmanager",
            "--config.file=alertmanager.yml",
            f"--web.listen-address=127.0.0.1:{ports['alertmanager']}",
            "--cluster.listen-address=",
            "--storage.path=alertmanager",
        ),
        _start(
            folder,
            "prometheus",
            "--config.file=prometheus.yml",
            f"--web.listen-address=127.0.0.1:{ports['prometheus']}",
            "--storage.tsdb.path=prometheus",
        ),
    ]
    try:
        wait_until(lambda: all(map(_is_ready, ports.values())), "they are not ready", PATIENCE)
        yield Monitoring(url, receiver, processes)
    finally:
        for process in processes:
            process.kill()
            process.wait()
        receiver.shutdown()
        receiver.server_close()


def _configure(
    folder: Path, rules: str, targets: Mapping[str, int], alertmanager: int, receiver: int
) -> None:
    (folder / "alerts.yml").write_text(rules)
    scraped = [
        {"job_name": job, "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]}
        for job, port in targets.items()
    ]
    to = [{"static_configs": [{"targets": [f"127.0.0.1:{alertmanager}"]}]}]
    prometheus = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "scrape_configs": scraped,
        "rule_files": ["alerts.yml"],
        "alerting": {"alertmanagers": to},
    }
    route = {"receiver": "test", "group_wait": "0s", "group_interval": "1s", "group_by": ["..."]}
    webhook = {"url": f"http://127.0.0.1:{receiver}/", "send_resolved": True}
    receivers = [{"name": "test", "webhook_configs": [webhook]}]
    # YAML is a superset of JSON.
    (folder / "prometheus.yml").write_text(json.dumps(prometheus))
    (folder / "alertmanager.yml").write_text(json.dumps({"route": route, "receivers": receivers}))


def _start(folder: Path, *command: str) -> subprocess.Popen[bytes]:
    name, *options = command
    program = next(filter(None, map(shutil.which, PROGRAMS[name])))
    with (folder / f"{name}.log").open("wb") as log:
        return subprocess.Popen([program, *options], cwd=folder, stdout=log, stderr=log)


def _is_ready(port: int) -> bool:
    with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/-/ready") as answer:
        return bool(answer.status == 200)
    return False
