"""Errors of brokers, each with a remedy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from headgate import exit_codes
from headgate.commands import shell_command
from headgate.declaration.names import did_you_mean
from headgate.errors import HeadgateError

HEAP_MB = 512


class BrokerError(HeadgateError, code=exit_codes.NOT_ALIVE):
    """The development broker did not start, or did not stop."""


class FolderError(BrokerError, code=exit_codes.MACHINE):
    """The broker's folder cannot be used."""


class FolderInUseError(BrokerError, code=exit_codes.LEASE_HELD):
    """``pid`` is that of the broker's JVM, or of its guard."""

    def __init__(self, folder: Path, pid: int | None) -> None:
        self.pid = pid
        named = f"process {pid}" if pid else "another process"
        super().__init__(
            f"{folder} is in use: {named} runs a broker on it",
            f"End that one, or choose another --root: {shell_command('kafka down')}",
        )


class PortTakenError(BrokerError):
    def __init__(self, port: int, reason: str = "another process listens there") -> None:
        self.port = port
        super().__init__(
            f"port {port} of 127.0.0.1 cannot be used: {reason}",
            "Choose another port, or let one be chosen: "
            + shell_command("kafka up", "--port", "0"),
        )


class NotEnoughMemoryError(BrokerError, code=exit_codes.MACHINE):
    def __init__(self, output: Sequence[str]) -> None:
        super().__init__(
            f"the broker's JVM did not get its memory (a heap of {HEAP_MB} MB, and about as much "
            f"beside it). Its last output:\n{indented(output)}",
            "End other programs, or give the machine or the container more memory",
        )


class NotUpError(BrokerError):
    def __init__(self, how: str, output: Sequence[str], logs: Path) -> None:
        super().__init__(
            f"the broker {how}. Its last output:\n{indented(output)}", f"Look into its logs: {logs}"
        )


class ClientError(HeadgateError):
    """A broker did not do what a client asked for."""


class UnreachableError(ClientError, code=exit_codes.SOURCE):
    def __init__(self, servers: str, seconds: float, reason: str | None) -> None:
        super().__init__(
            f"no Kafka broker answered at {servers} within {seconds:.0f} s"
            + (f": {reason}" if reason else ""),
            f"Start one here: {shell_command('kafka up')}   (or name one with --servers)",
        )


class UnknownTopicError(ClientError):
    def __init__(self, servers: str, topic: str, known: Iterable[str]) -> None:
        at = "--servers", servers
        super().__init__(
            f"{servers} has no topic {topic}{did_you_mean(topic, known)}",
            f"{shell_command('kafka topics', *at)}, or make it: "
            + shell_command("kafka topics", "--create", topic, *at),
        )


class TopicError(ClientError):
    """A topic could not be created or deleted."""

    def __init__(self, servers: str, reason: str) -> None:
        super().__init__(
            f"{servers} {reason}",
            f"List the topics: {shell_command('kafka topics', '--servers', servers)}",
        )


class NotDeliveredError(ClientError):
    """Some records are not in the topic; ``delivered`` counts those that are, per partition."""

    def __init__(self, topic: str, delivered: dict[int, int], failed: int, reason: str) -> None:
        self.delivered = delivered
        super().__init__(
            f"{topic}: {sum(delivered.values())} records were delivered, then {failed} were not: "
            f"{reason}",
            "The delivered records stay in the topic; correct the cause, then send the others "
            "again",
        )


def indented(lines: Sequence[str]) -> str:
    return "\n".join(f"  {line}" for line in lines) or "  nothing"
