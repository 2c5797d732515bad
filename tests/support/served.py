"""A dashboard that answers on a free port of loopback, in a thread of the test."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import uvicorn

from headgate.insight.dashboard.login.passwords import made
from headgate.insight.dashboard.server.questions import Desk
from headgate.insight.dashboard.server.serving import DashboardSettings, configured
from headgate.machine.process_tree.ports import free_port

_STARTS_WITHIN = 20.0  # seconds


@dataclass(frozen=True)
class Served:
    settings: DashboardSettings
    password: str

    @property
    def address(self) -> str:
        """Its address, without a slash at the end."""
        return self.settings.address.rstrip("/")

    @contextmanager
    def client(self, *, logged_in: bool = True) -> Iterator[httpx.Client]:
        with httpx.Client(base_url=self.address, trust_env=False, timeout=30) as client:
            if logged_in and self.password:
                answer = client.post("/login", data={"password": self.password})
                assert answer.status_code == 303, answer.text
            yield client


@contextmanager
def served(
    file: Path,
    root: str,
    *,
    base: str = "",
    login: bool = True,
    show_values: bool = False,
    hosts: Sequence[str] = (),
) -> Iterator[Served]:
    keep = Path(root) / "_dashboard"
    password = made(keep, anew=True) if login else None
    settings = DashboardSettings(
        files=[file],
        root=root,
        host="127.0.0.1",
        port=free_port(),
        base=base,
        hosts=hosts,
        keep=keep if login else None,
        show_values=show_values,
    )
    desk = Desk()
    server = uvicorn.Server(configured(settings, desk))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    until = time.monotonic() + _STARTS_WITHIN
    while not server.started:
        assert thread.is_alive(), "the server has ended"
        assert time.monotonic() < until, "the server does not start"
        time.sleep(0.02)
    try:
        yield Served(settings, password or "")
    finally:
        server.should_exit = True
        thread.join(_STARTS_WITHIN)
        desk.charts.close()
        assert not thread.is_alive(), "the server does not end"
