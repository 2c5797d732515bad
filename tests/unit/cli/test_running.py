"""Signals, child processes, streams and the progress line, without Spark."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
import typer
from rich.console import Console

from headgate.cli import driving
from headgate.cli.driving import on_signals
from headgate.cli.ledger import summary
from headgate.cli.lifecycle import per_layer
from headgate.cli.lifecycle.concluding import conclude
from headgate.cli.lifecycle.per_layer import LayerFailedError, together
from headgate.cli.screen import AGAIN, Screen, folded
from headgate.cli.undone import LeftError
from headgate.driver.task import Task
from headgate.insight.ledger import balance
from headgate.lake.control.driver_reports import Backlog
from headgate.lake.storage.layout import Layout
from headgate.supervision.progress_text import progress_line
from tests.support.reported import at_b
from tests.unit.insight.ledger.conftest import Lake

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)


def test_the_first_signal_asks_the_second_ends(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    ended: list[int] = []
    asked: list[str] = []

    def end(code: int) -> None:
        ended.append(code)
        raise InterruptedError

    monkeypatch.setattr(os, "_exit", end)
    before = signal.getsignal(signal.SIGTERM)
    with on_signals(lambda _: asked.append("stop")):
        os.kill(os.getpid(), signal.SIGTERM)
        assert (asked, ended) == (["stop"], [])
        with pytest.raises(InterruptedError):
            os.kill(os.getpid(), signal.SIGINT)
        assert (asked, ended) == (["stop"], [130])
        assert driving.ENDED in capfd.readouterr().err
    assert signal.getsignal(signal.SIGTERM) == before


@pytest.mark.slow
def test_a_first_ctrl_c_is_answered(capsys: pytest.CaptureFixture[str]) -> None:
    class Slow:
        """Ends three seconds after a stop request, like a driver in the middle of a batch."""

        ended = threading.Event()
        recorded = 0

        def run(self) -> None:
            os.kill(os.getpid(), signal.SIGINT)
            self.ended.wait(10)

        def stop(self) -> None:
            threading.Timer(3.0, self.ended.set).start()

        def record_end(self) -> None:
            self.recorded += 1

    slow = Slow()
    driving.drive(slow)  # type: ignore[arg-type]
    assert capsys.readouterr().err == f"{driving.ENDING}\n"
    assert slow.recorded == 1


def python(code: str) -> list[str]:
    return [sys.executable, "-c", f"import sys, time, signal\n{code}"]


def test_processes_that_end_well() -> None:
    assert together({"bronze": python("pass"), "silver": python("pass")})


def test_a_process_that_ended_early_is_no_failure() -> None:
    assert not together({"bronze": python("sys.exit(130)"), "silver": python("pass")})


@pytest.mark.parametrize("json", [False, True])
def test_a_run_that_ended_early_says_so(
    lake: Lake, capsys: pytest.CaptureFixture[str], json: bool
) -> None:
    with pytest.raises(typer.Exit) as ended:
        conclude(lake.pipeline, lake.layout, json, 0.0, 0, LeftError("3 files are unread"))
    assert ended.value.exit_code == 130
    out, err = capsys.readouterr()
    assert err.startswith("not done: 3 files are unread\ngo on: ")
    assert ('"left": "3 files are unread"' if json else "every event that was read is") in out


@pytest.mark.slow
def test_the_first_failure_stops_the_others() -> None:
    began = time.monotonic()
    sleep = "signal.signal(signal.SIGTERM, lambda *_: sys.exit(0)); time.sleep(30)"
    with pytest.raises(LayerFailedError, match="silver job ended with exit code 3") as failed:
        together({"bronze": python(sleep), "silver": python("sys.exit(3)")})
    assert failed.value.exit_code == 3
    assert time.monotonic() - began < 15


@pytest.mark.parametrize(
    ("sources", "code", "ran"),
    [(2, 3, 3), (2, 5, 3), (2, 8, 1), (1, 3, 1)],
)
def test_layers_go_on_without_the_sources_that_are_held(
    monkeypatch: pytest.MonkeyPatch, sources: int, code: int, ran: int
) -> None:
    layers: list[str] = []

    def fails_first(commands: Mapping[str, Sequence[str]]) -> bool:
        layers.extend(commands)
        if len(layers) == 1:
            raise LayerFailedError("bronze", code)
        return True

    monkeypatch.setattr(per_layer, "together", fails_first)
    declared = SimpleNamespace(file="shop.yml", sources=dict.fromkeys(range(sources)))
    task = SimpleNamespace(
        pipeline=declared, root="lake", once=True, take_over=False, drain=False, accept_gap=False
    )
    with pytest.raises(LayerFailedError) as failed:
        per_layer.run_layers(cast(Task, task), ())
    assert (failed.value.exit_code, len(layers)) == (code, ran)


def test_a_signal_is_handed_on_to_the_children(tmp_path: Path) -> None:
    told = tmp_path / "told"
    child = (
        f"def end(*_): open({str(told)!r}, 'w').close(); sys.exit()\n"
        "signal.signal(signal.SIGTERM, end)\n"
        f"import os; os.kill({os.getpid()}, signal.SIGTERM); time.sleep(30)"
    )
    assert not together({"bronze": python(child)})
    assert told.exists()


def test_noise_goes_to_the_log_and_words_to_the_terminal(tmp_path: Path) -> None:
    code = f"""
import os, subprocess, sys, warnings
from pathlib import Path
from headgate.cli.log_file import divert
divert(Path({str(tmp_path)!r}) / "logs" / "spark.log")
print("an answer"); print("a word", file=sys.stderr)
os.write(1, b"native out\\n"); os.write(2, b"native err\\n")
subprocess.run(["sh", "-c", "echo child; echo child error >&2"])
warnings.warn("a warning")
sys.stdout.flush(); os._exit(0)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("an answer\n", "a word\n")
    log = (tmp_path / "logs" / "spark.log").read_text()
    assert all(
        w in log for w in ("native out", "native err", "child\n", "child error", "a warning")
    )


class Watched:
    """A screen that prints lines, with access to its output and its clock."""

    def __init__(self) -> None:
        self._sink, self.time = io.StringIO(), 0.0
        out = Console(file=self._sink, width=200)
        self.screen = Screen(out, live=False, name="gold", clock=lambda: self.time)

    def after(self, seconds: float) -> list[str]:
        """Move the clock by ``seconds``. Returns the lines that are shown since the last call."""
        self.time += seconds
        self.screen.remind()
        lines = self._sink.getvalue().splitlines()
        self._sink.seek(0)
        self._sink.truncate()
        return lines


def test_a_line_about_an_outage_ends_the_stage_that_waits_for_its_end() -> None:
    shown = Watched()
    shown.screen.say("looking for input")
    shown.after(0)
    shown.screen.tell("no answer, for 10 s (1 attempt); the driver keeps trying")
    (line,) = shown.after(10 * AGAIN)
    assert line.endswith("  no answer, for 10 s (1 attempt); the driver keeps trying")


def test_a_stage_is_shown_at_once_and_again_while_it_lasts() -> None:
    shown = Watched()
    shown.screen.say("starting Spark")
    assert shown.after(0) == ["… gold: starting Spark"]
    assert shown.after(AGAIN - 1) == []
    assert shown.after(1) == [f"… gold: starting Spark: {AGAIN:.0f} s"]
    assert shown.after(1) == []
    shown.screen.say("starting Spark")
    assert shown.after(1) == []
    shown.screen.say("opening tables")
    assert shown.after(AGAIN - 1) == ["… gold: opening tables"]


def test_once_there_are_batches_a_stage_is_shown_only_if_it_lasts() -> None:
    from headgate.driver.progress import JobProgress

    shown = Watched()
    layout = Layout.of("/lake", "tiny")
    shown.screen.take(JobProgress("tiny", "gold", 1, NOW, layout, sources=at_b()))
    assert [line.split("  ")[1] for line in shown.after(AGAIN)] == ["gold 0"]
    shown.screen.say("batch 1: reading")
    assert shown.after(AGAIN - 1) == []
    assert shown.after(1) == [f"… gold: batch 1: reading: {AGAIN:.0f} s"]
    shown.screen.say("")
    assert shown.after(AGAIN) == []


def test_a_line_of_progress() -> None:
    from headgate.driver.progress import JobProgress

    progress = JobProgress("tiny", "fused", 1, NOW, Layout.of("/lake", "tiny"))
    progress.rows, progress.seconds = 5000, 2.0
    behind = Backlog("files", 2, 1_500_000)
    progress.sources = at_b(n=3, backlog=behind, watermark=NOW, quarantined=7)
    progress.changed = NOW - timedelta(seconds=4)
    progress.totals = {
        "bronze/orders": {"read": 9000},
        "silver/a": {"quarantined": 7, "rejected": 0},
        "silver/b": {"quarantined": 7},
        "gold/x": {"late": 2},
        "gold/y": {"late": 3},
    }
    assert progress_line(progress, NOW) == (
        "12:00:00  batch 3  read 9,000  2,500 rows/s  backlog 2 files 1.4 MB  "
        "watermark 2026-05-04 12:00:00  late 5  quarantined 7  gold changed 4 s ago"
    )
    progress.rows = 3
    assert "  1.5 rows/s  " in progress_line(progress, NOW)
    progress.seconds = 0.0
    assert "  read 9,000  backlog" in progress_line(progress, NOW), "this run has not read anything"
    progress.totals["silver/a"]["rejected"] = 1200
    progress.totals["silver/b"]["rejected"] = 34
    assert "quarantined 7  rejected 1,234  gold changed" in progress_line(progress, NOW)


@pytest.mark.parametrize("width", [20, 40, 80, 120])
def test_a_narrow_terminal_breaks_between_words(width: int) -> None:
    words = (
        "12:00:00",
        "batch 3",
        "backlog 2 files 1.5 MB",
        "watermark 2026-05-04 12:00:00",
        "late 5",
    )
    lines = folded(words, width).splitlines()
    assert [word for line in lines for word in line.split("  ")] == list(words)
    assert all(len(line) <= width or line in words for line in lines)


def test_the_summary_of_a_run(lake: Lake) -> None:
    account = balance(lake.layout, lake.pipeline)
    assert summary(account, 2, 1.23456) == {
        "pipeline": "tiny",
        "read": 7,
        "duplicate": 1,
        "quarantined": 1,
        "rejected": 0,
        "silver": {"good": 3},
        "filtered": 1,
        "gold": {"per_minute": {"rows": 1, "folded": 2, "late": 1}},
        "balanced": True,
        "batches": 2,
        "seconds": 1.235,
    }
