"""Runs commands of Headgate in one process that can reach only this machine: ``python -m
tests.support.no_egress COMMANDS.json RESULT.json``.

Python refuses and records any other connection, and any look-up of another host. Spark's JVM and
other children are in their own network (``isolated``), which ends at this machine and counts
packets without a route.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from headgate.cli.main import answer

LOOPBACK = ("127.", "::1", "localhost")
CONNECTING = ("socket.connect", "socket.sendto", "socket.sendmsg")
LOOKING_UP = ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr")
_SETUP = """
set -e
ip link set lo up
echo nameserver 192.0.2.53 > "$0"
mount --bind "$0" /etc/resolv.conf
exec "$@"
"""


def isolated(folder: Path) -> list[str]:
    """The first words of a command that runs in its own network; empty if the user may not create
    one. ``folder`` is for its files."""
    command = ["unshare", "--user", "--map-root-user", "--net", "--mount", "sh", "-c", _SETUP]
    command.append(str(folder / "resolv.conf"))
    if shutil.which("unshare") is None:
        return []
    tried = subprocess.run([*command, "true"], capture_output=True, check=False)
    return command if tried.returncode == 0 else []


def unroutable() -> int:
    """The number of packets without a route in the network of this process. In a network of its
    own, these are the packets to other machines."""
    names, numbers = (
        line.split()
        for line in Path("/proc/net/snmp").read_text().splitlines()
        if line.startswith("Ip:")
    )
    version_4 = dict(zip(names, numbers, strict=True))
    version_6 = dict(line.split() for line in Path("/proc/net/snmp6").read_text().splitlines())
    return int(version_4["OutNoRoutes"]) + int(version_6["Ip6OutNoRoutes"])


def refuse_others(tried: list[str]) -> None:
    """From now on, refuse connections to other machines and record them in ``tried``. It cannot be
    undone."""

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        host: object = None
        if event in CONNECTING and isinstance(arguments[1], tuple):
            host = arguments[1][0]
        elif event in LOOKING_UP:
            host = arguments[0]
        if host is None or str(host).startswith(LOOPBACK):
            return
        tried.append(f"{event} {host}")
        raise PermissionError(f"{event} {host}: this process may reach this machine alone")

    sys.addaudithook(watch)


def main(commands: Sequence[Sequence[str]], result: Path) -> None:
    tried: list[str] = []
    refuse_others(tried)
    before = unroutable()
    codes = [answer(command) for command in commands]
    found = {
        "codes": codes,
        "tried": tried,
        "unroutable": unroutable() - before,
        "imported": "great_expectations" in sys.modules,
        "analytics": os.environ.get("GX_ANALYTICS_ENABLED"),
    }
    result.write_text(json.dumps(found))


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2]))
    sys.stdout.flush()
    # deltalake can abort the interpreter on its way out.
    os._exit(0)
