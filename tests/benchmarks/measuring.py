"""CPU and wall time of a whole process tree, read between batches."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass

import psutil


@dataclass
class Meter:
    """Prints one JSON line for every lap: wall and CPU seconds since the last one."""

    wall: float = 0.0
    cpu: float = 0.0

    def start(self) -> None:
        self.wall, self.cpu = time.monotonic(), tree_cpu()

    def lap(self, **facts: object) -> None:
        wall, cpu = time.monotonic(), tree_cpu()
        line = {"wall": wall - self.wall, "cpu": cpu - self.cpu, **facts}
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()
        self.wall, self.cpu = wall, cpu


def tree_cpu() -> float:
    """User and system seconds of this process and all its children, including the JVM and children
    that have ended: Hadoop often forks small programs."""
    total = 0.0
    me = psutil.Process()
    for process in (me, *me.children(recursive=True)):
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total
