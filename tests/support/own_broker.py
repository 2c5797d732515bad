"""A separate broker for one test: with a login, over TLS, killed, restarted."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from headgate.machine.process_tree.ports import free_port
from headgate.setup.broker import running
from headgate.setup.broker.running import Broker, start
from tests.support.broker import PATIENCE
from tests.support.key_store import KeyStore
from tests.support.waiting import wait_until


@dataclass
class BrokerWithLogin(Broker):
    """``sasl_servers`` accept only users with a password, by SASL/PLAIN. So do ``tls_servers``,
    over TLS; empty if the broker has no key."""

    sasl_servers: str = ""
    tls_servers: str = ""


def start_with_login(
    folder: Path, users: Mapping[str, str], key: KeyStore | None = None
) -> BrokerWithLogin:
    """Start a broker with more listeners, for ``users`` (name to password)."""
    port, controller = free_port(), free_port()
    protocols = {"sasl": "SASL_PLAINTEXT"} | ({"tls": "SASL_SSL"} if key else {})
    asking = {name: f"127.0.0.1:{free_port()}" for name in protocols}
    told = [f"PLAINTEXT://127.0.0.1:{port}"]
    told += [f"{name.upper()}://{address}" for name, address in asking.items()]
    kinds = [f"{name.upper()}:{protocol}" for name, protocol in protocols.items()]
    quoted = " ".join(f'user_{name}="{password}"' for name, password in users.items())
    login = f"org.apache.kafka.common.security.plain.PlainLoginModule required {quoted};"
    started = start(
        folder,
        port,
        properties={
            "listeners": ",".join([*told, f"CONTROLLER://127.0.0.1:{controller}"]),
            "advertised.listeners": ",".join(told),
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "listener.security.protocol.map": ",".join(
                ["PLAINTEXT:PLAINTEXT", "CONTROLLER:PLAINTEXT", *kinds]
            ),
            **{f"listener.name.{name}.sasl.enabled.mechanisms": "PLAIN" for name in asking},
            **{f"listener.name.{name}.plain.sasl.jaas.config": login for name in asking},
            **(key.properties("tls") if key else {}),
        },
    )
    return BrokerWithLogin(
        **vars(started), sasl_servers=asking["sasl"], tls_servers=asking.get("tls", "")
    )


def kill(broker: Broker) -> None:
    """Send SIGKILL, as in a crash. Acknowledged records are still there after a restart."""
    pid = broker.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not broker.is_alive, "the broker's guard is still there", PATIENCE)


def restart(broker: Broker) -> None:
    """Stop it if it runs, then start it on the same folder and ports."""
    broker.stop()
    order = replace(broker._tree.order, prepare=None)
    broker._tree = running._launch(broker.folder, broker.port, order)
