from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from headgate.lake.tables.payloads.bronze import PACK, Operation, Packed

SIZES = (0, 1, PACK - 1, PACK, PACK + 1, 3 * PACK + 5)


def asked(count: int) -> tuple[Operation, ...]:
    return tuple(
        Operation(n, "late_replay", 10 * n, {"table": "péage", "keys": {"id": str(n)}}, n)
        for n in range(1, count + 1)
    )


def written(operations: Sequence[Operation]) -> list[Any]:
    """The list as a commit has it."""
    content: list[Any] = json.loads(json.dumps(Packed.of(operations).encode()))
    return content


@pytest.mark.parametrize("count", SIZES)
def test_all_entries_are_read_again(count: int) -> None:
    found = Packed.decode(Operation, written(asked(count)))
    assert found == asked(count)
    assert found.encode() == written(asked(count)), "a later commit repeats the same texts"
    assert Packed.of((*found, asked(count + 1)[-1])) == asked(count + 1)


def test_a_commit_stays_small() -> None:
    content = written(asked(100 * PACK))
    assert [type(each) for each in content] == [str] * 100
    assert len(json.dumps(content)) < len(json.dumps([vars(o) for o in asked(100 * PACK)])) / 5
    assert written(asked(100 * PACK + 1))[-1] == vars(asked(100 * PACK + 1)[-1])


def test_packs_of_another_size_are_read() -> None:
    content = [*written(asked(2 * PACK))[:1], vars(asked(PACK + 1)[-1])]
    found = Packed.decode(Operation, content)
    assert (found, found.encode()) == (asked(PACK + 1), content)


@pytest.mark.parametrize(
    "content", [["?"], ["AAAA"], [7], [{"number": 1}], [*written(asked(PACK)), "?"]]
)
def test_what_is_not_a_packed_list_is_refused(content: list[Any]) -> None:
    with pytest.raises((TypeError, ValueError)):
        Packed.decode(Operation, content)
