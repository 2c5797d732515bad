"""``make bench``: how soon gold has what arrives at 1,000 events a second, beside the plain job,
and how soon a new pipeline has its first gold row.

The two jobs take turns: while one is fed, the other has no input. The plain job, which polls all
the time, is then frozen.
"""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Producer

from headgate.setup.broker import topics
from headgate.setup.broker.running import start
from headgate.setup.demo.feeding import next_sequence, write_slice
from tests.benchmarks.arrivals import Arrival, events_of, latencies, shown
from tests.benchmarks.headgate_job import DECLARATION
from tests.benchmarks.turns import user_environment
from tests.support.waiting import wait_until

RATE = 1_000  # events a second
BLOCK = 30  # seconds that a job is fed at a time
WARM_UP = int(os.environ.get("HEADGATE_BENCH_WARM_UP_BLOCKS", "2"))
BLOCKS = int(os.environ.get("HEADGATE_BENCH_BLOCKS", "6"))
PATIENCE = 180  # seconds
FIRST_ROW = 15  # seconds
GOLD = "lake/bench/gold/bids_per_minute"
FILES = "files: {path: landing, format: json, max_files_per_batch: 1}"

Send = Callable[[Sequence[bytes]], None]


def records(first: int, count: int) -> list[bytes]:
    """Bids with the current time, in order, each with its own id."""
    now = datetime.now(UTC)
    return [
        json.dumps(
            {
                "event_id": f"bid-{number:09d}",
                "auction": number % 100,
                "bidder": number % 977,
                "price": f"{number % 5000}.25",
                "channel": "Google",
                "url": f"https://bids.example/item/{number}",
                "event_time": (now + timedelta(microseconds=number - first)).isoformat(),
            }
        ).encode()
        for number in range(first, first + count)
    ]


@dataclass
class Fed:
    """A running job. Every ``every`` seconds, it is sent the events of that period at once."""

    process: subprocess.Popen[str]
    gold: Path
    send: Send
    every: float
    freezes: bool
    sent: int = 0
    commits: int = 0
    arrivals: list[Arrival] = field(default_factory=list)

    def feed(self, seconds: float) -> None:
        began, size = time.monotonic(), round(RATE * self.every)
        for number in range(1, round(seconds / self.every) + 1):
            # This sleep only sets the pace; ``wait`` waits for the result.
            time.sleep(max(0.0, began + number * self.every - time.monotonic()))
            self.arrivals.append(Arrival(time.time(), size))
            self.send(records(self.sent, size))
            self.sent += size

    def wait(self) -> None:
        def has_all() -> bool:
            assert self.process.poll() is None, "a job has ended"
            commits = len([*self.gold.glob("_delta_log/*.json")])
            if commits == self.commits:  # a read without need would slow the job down
                return False
            self.commits = commits
            return events_of(self.gold) >= self.sent

        wait_until(has_all, f"{self.gold} has not all events", PATIENCE)

    def signal(self, number: signal.Signals) -> None:
        if self.freezes:
            for process in tree(self.process):
                with suppress(psutil.NoSuchProcess):  # Hadoop forks small programs all the time
                    process.send_signal(number)


@contextmanager
def running(folder: Path, *command: str) -> Iterator[subprocess.Popen[str]]:
    with (folder / "output.txt").open("w") as output:
        process = subprocess.Popen(
            command,
            env=user_environment(),
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            text=True,
        )
    try:
        yield process
    finally:
        for each in reversed(tree(process)):
            with suppress(psutil.NoSuchProcess):
                each.kill()
        process.wait()


def tree(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """A job's processes, the first one first."""
    if process.poll() is not None:
        return []
    root = psutil.Process(process.pid)
    return [root, *root.children(recursive=True)]


def headgate(folder: Path, reads: str) -> Sequence[str]:
    """The command that runs a pipeline which reads ``reads``, the declaration of a source."""
    declaration = folder / "bench.yml"
    declaration.write_text(DECLARATION.replace(FILES, reads))
    command = Path(sys.executable).with_name("headgate")
    return [str(command), "run", str(declaration), "--root", str(folder / "lake")]


def plain(folder: Path, option: str) -> Sequence[str]:
    return [sys.executable, "-m", "tests.benchmarks.plain_job", str(folder), option]


def into(folder: Path) -> Send:
    def send(lines: Sequence[bytes]) -> None:
        write_slice(folder / "landing", next_sequence(folder / "landing"), lines)

    return send


def to(servers: str) -> Send:
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 5, "log_level": 2})

    def send(lines: Sequence[bytes]) -> None:
        for line in lines:
            producer.produce("bids", line)
        producer.flush()

    return send


@contextmanager
def fed_by_files(folder: Path) -> Iterator[tuple[Fed, Fed]]:
    """The plain job and Headgate, each with a landing folder of its own."""
    ours, theirs = folder / "headgate", folder / "plain"
    for each in (ours, theirs):
        (each / "landing").mkdir(parents=True)
    command = headgate(ours, "files: {path: landing, format: json, settle: 0 s}")
    with (
        running(theirs, *plain(theirs, "--streams")) as plain_job,
        running(ours, *command) as headgate_job,
    ):
        yield (
            Fed(plain_job, theirs / "tables/gold", into(theirs), every=1, freezes=True),
            Fed(headgate_job, ours / GOLD, into(ours), every=1, freezes=False),
        )


@contextmanager
def fed_by_kafka(folder: Path) -> Iterator[tuple[Fed, Fed]]:
    """The plain job and Headgate, each with its own broker, so that a topic is fed to one job
    only."""
    ours, theirs = folder / "headgate", folder / "plain"
    for each in (ours, theirs):
        each.mkdir()
    with start(folder / "our-broker") as our_broker, start(folder / "their-broker") as their_broker:
        for broker in (our_broker, their_broker):
            topics.create(broker.servers, "bids", 1, {})
        command = headgate(ours, f"kafka: {{servers: {our_broker.servers}, topic: bids}}")
        their_command = plain(theirs, f"--kafka={their_broker.servers}")
        with (
            running(theirs, *their_command) as plain_job,
            running(ours, *command) as headgate_job,
        ):
            send, their_send = to(our_broker.servers), to(their_broker.servers)
            yield (
                Fed(plain_job, theirs / "tables/gold", their_send, every=0.1, freezes=True),
                Fed(headgate_job, ours / GOLD, send, every=0.1, freezes=False),
            )


@pytest.mark.bench
@pytest.mark.parametrize("sources", [fed_by_files, fed_by_kafka])
def test_latency_beside_the_plain_job(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    sources: Callable[[Path], AbstractContextManager[tuple[Fed, Fed]]],
) -> None:
    with sources(tmp_path) as jobs:
        for _ in range(WARM_UP + BLOCKS):
            for job in jobs:
                job.signal(signal.SIGCONT)
                job.feed(BLOCK)
                job.wait()
                job.signal(signal.SIGSTOP)
    medians = []
    for name, job in zip(("plain", "headgate"), jobs, strict=True):
        measured = slice(round(WARM_UP * BLOCK / job.every), None)
        found = sorted(latencies(job.gold, job.arrivals)[measured])
        medians.append(statistics.median(found))
        with capsys.disabled():
            print(
                f"\n{sources.__name__} {name:9} {RATE:,} events/s for {BLOCKS * BLOCK} s: from "
                f"arrival to gold p50 {medians[-1]:.2f} s, p95 {found[len(found) * 95 // 100]:.2f}"
                f" s, longest {found[-1]:.2f} s",
                end="",
            )
    with capsys.disabled():
        print(f"\n{sources.__name__} median x 1/{medians[0] / medians[1]:.1f}")
    assert medians[1] < medians[0] / 4


@pytest.mark.bench
def test_time_to_the_first_gold_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = []
    for turn in range(3):
        folder = tmp_path / str(turn)
        (folder / "landing").mkdir(parents=True)
        into(folder)(records(0, 2_000))
        command, began = headgate(folder, FILES), time.time()
        with running(folder, *command) as process:
            job = Fed(process, folder / GOLD, into(folder), every=1, freezes=False, sent=2_000)
            job.wait()
        found.append(next(at for at, events in shown(job.gold) if events) - began)
    with capsys.disabled():
        print("\nfrom `headgate run` to the first gold row:", *(f"{each:.1f} s" for each in found))
    assert statistics.median(found) < FIRST_ROW
