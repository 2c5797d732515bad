"""Different ids have different hashes, also ids with a structure that weak hashes do not tell
apart."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Iterator
from itertools import product

import pyarrow as pa
import pytest

from headgate.flow.bronze.dedup_index import id_hashes


def object_ids(count: int) -> Iterator[str]:
    """Ids like those that MongoDB creates on one host: a time, the host, and a counter."""
    for number in range(count):
        yield f"{0x65600270 + number // 7:08x}5f1e2d3c4b{0x1A3C10 + number:06x}"


def pairs(*numbers: int) -> Iterator[str]:
    return (f"{a:08x}{b:08x}" for a, b in product(*map(range, numbers)))


def items() -> Iterator[str]:
    return (f"shop-{a:03}:item-{b:02}" for a, b in product(range(400), range(100)))


def table(ids: list[str | None], values: list[bytes | None]) -> pa.Table:
    columns = {"event_id": pa.array(ids, pa.string()), "value": pa.array(values, pa.binary())}
    return pa.table(columns)


@pytest.mark.parametrize("ids", [list(object_ids(50_000)), list(pairs(250, 250)), list(items())])
def test_ids_with_counters_in_them_do_not_collide(ids: list[str]) -> None:
    found = id_hashes(table([*ids], [each.encode() for each in ids]))
    for name in ("hash_a", "hash_b", "content"):
        assert len(found.column(name).unique()) == len(ids)


def test_hashes_are_those_of_md5() -> None:
    found = id_hashes(table(["a", None, "b"], [b"x", None, b"\xff"])).to_pylist()
    digest = hashlib.md5(b"b").digest()
    halves = [int.from_bytes(half, "little", signed=True) for half in (digest[:8], digest[8:])]
    content = int.from_bytes(hashlib.md5(b"\xff").digest()[:8], "little", signed=True)
    assert found[2] == {"hash_a": halves[0], "hash_b": halves[1], "content": content}
    assert found[1] == {"hash_a": None, "hash_b": None, "content": None}


def test_no_rows_have_no_hashes() -> None:
    assert id_hashes(table([], [])).num_rows == 0


@pytest.mark.slow
def test_a_process_may_be_forked_afterwards() -> None:
    """PySpark forks to start its JVM, in a driver's own thread."""
    code = """
import os, threading
import pyarrow as pa
from headgate.flow.bronze.dedup_index import id_hashes

def ask():
    id_hashes(pa.table({"event_id": ["a"], "value": [b"x"]}))

def fork():
    child = os.fork()
    if not child:
        os._exit(0)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

codes = []
ask()
for task in (fork, ask, fork):
    thread = threading.Thread(target=task)
    thread.start()
    thread.join()
print(codes)
"""
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert (ended.stdout, ended.returncode) == ("[0, 0]\n", 0), ended.stderr
