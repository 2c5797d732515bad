"""The exit codes of ``headgate`` and their meanings, shown by ``headgate --help``."""

from __future__ import annotations

OK = 0
FAILED = 1
USAGE = 2
SOURCE = 3
TAKEN_OVER = 4
LOG_GAP = 5
LEASE_HELD = 6
NOT_ALIVE = 7
MACHINE = 8
PAUSED = 9
HELD = 10
DIFFERS = 11
UNEXPECTED = 70
INTERRUPTED = 130

MEANINGS = {
    OK: "done",
    FAILED: "the ledger does not balance, or a requested item does not exist",
    USAGE: "the command line or the declaration is wrong",
    SOURCE: "the source changed, cannot be read, or breaks a `stop` rule: a person must decide",
    TAKEN_OVER: "another driver has taken over; nothing is lost",
    LOG_GAP: "a table, its log or a savepoint is damaged: headgate repair PIPELINE",
    LEASE_HELD: "another process runs this pipeline, or a broker here; or a reset is not finished",
    NOT_ALIVE: "a job died, stopped responding, or did not start or stop in time",
    MACHINE: "this machine lacks something, or has lost a file of a commit: headgate doctor",
    PAUSED: "the pipeline is paused: `run --once` and `load` cannot end: headgate resume PIPELINE",
    HELD: "a rule holds a gold table back: headgate gate status PIPELINE",
    DIFFERS: "rows that were computed again differ from gold, or from what was expected",
    UNEXPECTED: "an internal error of Headgate; the message names the log",
    INTERRUPTED: "interrupted twice, or stopped before it was done: nothing is lost, run again",
}


def epilog() -> str:
    lines = [f"{code:>4}  {meaning}" for code, meaning in MEANINGS.items()]
    return "\b\nExit codes:\n" + "\n".join(lines)
