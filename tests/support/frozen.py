"""What a driver must not do that was frozen while another one took its tables over."""

from __future__ import annotations

from pathlib import Path

from deltalake import DeltaTable

from tests.support.drivers import Running


def versions(root: Path) -> dict[str, int]:
    """The newest version of every table, the files log included."""
    logs = root.rglob("_delta_log")
    return {str(log.parent): DeltaTable(str(log.parent)).version() for log in logs}


def require_shut_out(frozen: Running, root: Path) -> None:
    """Let a frozen driver go on. It must end without a commit to any table, and say that it was
    refused."""
    before = versions(root)
    frozen.resume()
    ended = frozen.end()
    assert ended.code == 4, ended.output
    assert ended.last_line in {"FencedError", "CommitRefusedError"}
    assert versions(root) == before


def require_rising_epochs(root: Path) -> None:
    """No table may have a commit of a driver after one of a later driver."""
    for table in versions(root):
        epochs = [commit["headgate"]["epoch"] for commit in reversed(DeltaTable(table).history())]
        assert epochs == sorted(epochs), table
