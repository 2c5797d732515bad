"""Conclusions from the names of a log's files."""

from __future__ import annotations

import pytest

from headgate.lake.tables.log import LogFolder

Versions = tuple[int, ...]


@pytest.mark.parametrize(
    ("entries", "checkpoints", "is_whole", "readable_from", "trimmed"),
    [
        ((), (), False, 0, ()),
        ((0, 1, 2), (), True, 0, ()),
        ((0, 1, 2), (1,), True, 0, ()),
        ((0, 1, 3), (), False, 0, ()),
        ((0, 2, 3), (2,), True, 0, ()),
        ((2, 3), (), False, 2, ()),
        ((2, 3), (2,), True, 2, (0, 1)),
        ((3, 4, 5), (1, 4), True, 4, (0, 1, 2)),
        ((3, 4, 5), (3, 5), True, 3, (0, 1, 2)),
        ((4, 5), (2,), False, 4, ()),
    ],
)
def test_a_log_is_whole_trimmed_or_has_lost_entries(
    entries: Versions,
    checkpoints: Versions,
    is_whole: bool,
    readable_from: int,
    trimmed: Versions,
) -> None:
    log = LogFolder(entries, checkpoints, ())
    assert log.is_whole is is_whole
    assert log.readable_from == readable_from
    assert tuple(filter(log.is_trimmed, range(7))) == trimmed
