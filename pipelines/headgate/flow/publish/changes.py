"""The commits of a table's log after a version that must be published: their new rows, and the
results that they have removed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from headgate.lake.tables.errors import LogGapError
from headgate.lake.tables.history import with_footers
from headgate.lake.tables.live_files import live_files
from headgate.lake.tables.log import Commit, list_log, read_commit
from headgate.lake.tables.payloads.gold import GONE, GoldPayload
from headgate.lake.tables.table import Table


def changes(table: Table, after: int, upto: int) -> Iterator[Commit]:
    """The commits of versions ``(after, upto]`` that may have new rows, or may have removed results
    of gold, oldest first. ``files`` of a commit are those with new rows.

    Maintenance keeps the commits that a declared publication has not sent. For a publication that
    is declared later, only the live files may be left. They are then returned as one commit, the
    table's newest. If a reset has replaced the table, older rows with other columns than the table
    has now are left out. Raises LogGapError if an entry is missing for another reason.
    """
    shape: str | None = table.state.shape
    version = after
    while (version := version + 1) <= upto:
        try:
            commit = read_commit(table.storage, version)
        except LogGapError:
            if not list_log(table.storage).is_trimmed(version):
                raise
            yield _what_is_live(table)
            return
        if commit is not None and shape not in (None, commit.state.shape):
            if (reset := _replaced_by(table, version, upto)) is not None:
                version = reset - 1
                continue
            shape = None  # columns were added: the table's type can read older files
        if commit is None or not is_news(commit):
            continue
        if any(not table.storage.exists(file.path) for file in commit.news):
            yield _what_is_live(table)
            return
        yield replace(commit, files=commit.news)


def _replaced_by(table: Table, replaced: int, upto: int) -> int | None:
    """The version of the first reset up to ``upto`` that removed the rows of version ``replaced``.
    A reset to a later version has kept them."""
    for version in range(replaced + 1, upto + 1):
        commit = read_commit(table.storage, version)
        if commit is None or commit.state.kind != "reset":
            continue
        if commit.state.origin is None or commit.state.origin < replaced:
            return version
    return None


def is_news(commit: Commit) -> bool:
    """Whether a commit has something to send."""
    return has_rows(commit) or may_remove_results(commit)


def may_remove_results(commit: Commit) -> bool:
    """Whether results of gold may be gone after a commit: a correction has removed them, or an open
    one has another begin, or is a part of another. A publication to a log then compares the keys of
    the removed files with those of the added ones."""
    state, payload = commit.state, commit.state.payload
    if not isinstance(payload, GoldPayload) or not commit.removed:
        return False
    if state.kind == "operation":
        return str(state.operation) not in payload.drains  # a drain removes no result
    return state.kind == "data" and bool(state.batch.get(GONE))


def has_rows(commit: Commit) -> bool:
    """Whether a commit has rows to send. A reset to an earlier version has no new rows. A reset to
    a rebuild has all rows of the rebuild. Files that a replay of late pairs has only moved have
    none."""
    state = commit.state
    is_new = state.kind in ("data", "operation") or (state.kind == "reset" and state.origin is None)
    return is_new and bool(commit.news)


def _what_is_live(table: Table) -> Commit:
    state, version = table.refresh(), table.version
    files = with_footers(table, version, live_files(table.handle))
    return Commit(version, replace(state, kind="data"), files)
