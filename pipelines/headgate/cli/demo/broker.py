"""The broker of ``headgate demo --kafka``: a child of this process, which ends with it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headgate.broker import FOLDER


@contextmanager
def demo_broker(folder: Path) -> Iterator[str]:
    """Yields the servers of a broker with the topic of bids; its data is in the demo's folder, at
    the place where ``headgate kafka up`` finds it again."""
    from headgate.broker import topics
    from headgate.broker.running import start
    from headgate.cli.driving import require_java
    from headgate.demo.topic import PARTITIONS, TOPIC
    from headgate.jars import LockSet, fetch

    require_java()
    print("a Kafka broker starts …", file=sys.stderr)
    fetch(LockSet.KAFKA)
    with start(folder / FOLDER) as broker:
        topics.create(broker.servers, TOPIC, PARTITIONS, {})
        yield broker.servers
