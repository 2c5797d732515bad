"""A broker of a test's own: with a login, killed, restarted."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from headgate.broker import running
from headgate.broker.running import Broker, start
from headgate.process_tree.ports import free_port
from tests.support.broker import PATIENCE
from tests.support.waiting import wait_until


@dataclass
class BrokerWithLogin(Broker):
    """``sasl_servers`` let in users with a password alone, by SASL/PLAIN."""

    sasl_servers: str = ""


def start_with_login(
    folder: Path, users: Mapping[str, str], properties: Mapping[str, str] | None = None
) -> BrokerWithLogin:
    """A broker with a second listener for ``users`` (name to password)."""
    port, controller, sasl = free_port(), free_port(), free_port()
    told = f"PLAINTEXT://127.0.0.1:{port},SASL://127.0.0.1:{sasl}"
    quoted = " ".join(f'user_{name}="{password}"' for name, password in users.items())
    login = f"org.apache.kafka.common.security.plain.PlainLoginModule required {quoted};"
    started = start(
        folder,
        port,
        properties={
            "listeners": f"{told},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": told,
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "listener.security.protocol.map": (
                "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_PLAINTEXT"
            ),
            "listener.name.sasl.sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl.plain.sasl.jaas.config": login,
            **(properties or {}),
        },
    )
    return BrokerWithLogin(**vars(started), sasl_servers=f"127.0.0.1:{sasl}")


def kill(broker: Broker) -> None:
    """SIGKILL, as a crash would be. What it acknowledged is still there after a restart."""
    pid = broker.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not broker.is_alive, "the broker's guard is still there", PATIENCE)


def restart(broker: Broker) -> None:
    """Stop it if it runs, then start it on the same folder and ports."""
    broker.stop()
    order = replace(broker._tree.order, prepare=None)
    broker._tree = running._launch(broker.folder, broker.port, order)
