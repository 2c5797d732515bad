"""The contract of every payload; a payload of another package needs no change here."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from headgate.declaration.kinds import KINDS
from headgate.lake.storage.files import Storage
from headgate.lake.storage.format import FormatError
from headgate.lake.tables.checksum import checksum_of
from headgate.lake.tables.errors import LogGapError
from headgate.lake.tables.load import Load
from headgate.lake.tables.log import CHECKSUM_KEY, STATE_KEY, entry_path, read_commit
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.payloads.gold import GoldPayload
from headgate.lake.tables.payloads.inputs import InputsPayload
from headgate.lake.tables.payloads.none import NoPayload
from headgate.lake.tables.payloads.publication import PublicationPayload
from headgate.lake.tables.payloads.rejected import RejectedPayload
from headgate.lake.tables.payloads.silver import SilverPayload
from headgate.lake.tables.state import PAYLOADS, Payload, State
from headgate.lake.tables.table import Table
from tests.support.toys import plugged_in
from tests.unit.lake.tables.conftest import Open

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
FULL: dict[str, Payload] = {
    "bronze": BronzePayload(
        offsets={"0": 7},
        clocks={"0": 5},
        watermark=5,
        topics=("bids@a",),
        gaps=({"topic": "bids", "first": 1, "end": None},),
        loads=(Load("b", 1, 4, {"sequence": 2}, 9),),
        arrived=8,
        arrival_clocks={"0": 9},
        arrival_watermark=9,
    ),
    "gold": GoldPayload(
        watermark=5,
        closed_through=9,
        gate={"suite": "a", "at": 3, "broken": []},
        drains={"1": 9},
        open=4,
        backfills={"2": [5, 8]},
        left_out={"2": {"operation": 3, "first": 5, "end": 9}},
        longest=60,
        inputs={"orders": 3},
    ),
    "inputs": InputsPayload({"orders": 3}, watermark=5, arrival_watermark=9, holds="orders"),
    "none": NoPayload(),
    "publication": PublicationPayload(version=4, event="00042-000000007"),
    "rejected": RejectedPayload(suite={"name": "clean", "rules": []}),
    "silver": SilverPayload(watermark=5, suite="a", arrival_watermark=9),
}
"""One of each kind, with a value in every field."""

TOY = """
from dataclasses import dataclass
from typing import ClassVar
from headgate.lake.tables.payloads.gold import GoldPayload


@dataclass(frozen=True)
class SessionsPayload(GoldPayload):
    kind: ClassVar[str] = "sessions"

    merged: int = 0


MEMBER = SessionsPayload()
"""


def written(state: State) -> State:
    """The state as another process reads it from a commit."""
    return State.decode(json.loads(json.dumps(state.encode())))


def plain(payload: Payload) -> Any:
    return json.loads(json.dumps(payload.encode()))


def test_every_member_is_here() -> None:
    assert set(PAYLOADS.names()) == FULL.keys()
    assert {kind.payload for kind in KINDS} == FULL.keys()


@pytest.mark.parametrize("name", PAYLOADS.names())
def test_a_commit_says_all_of_it(name: str) -> None:
    full, empty = FULL[name], PAYLOADS[name]
    assert (full.kind, type(empty)) == (name, type(full))
    assert all(getattr(full, f.name) != getattr(empty, f.name) for f in fields(full))
    for payload in (full, empty):
        state = written(State(payload, n=3, total={"read": 2}))
        assert (type(state.payload), plain(state.payload)) == (type(full), plain(payload))
        assert (state.n, state.total) == (3, {"read": 2})
    assert full.emptied() == empty


@pytest.mark.parametrize("name", PAYLOADS.names())
def test_a_commit_without_data_repeats_it(name: str) -> None:
    carried = FULL[name].carried()
    for state in (State(FULL[name]).held("fence", 2), State(FULL[name]).advanced_to(1, NOON)):
        assert state.payload == carried
    assert State(PAYLOADS[name]).advanced_to(1, NOON, FULL[name]).payload == carried
    if name != "bronze":
        assert carried == FULL[name]


def test_what_describes_one_commit_is_not_carried_on() -> None:
    carried = BronzePayload.of(State(FULL["bronze"]).held("fence", 2))
    assert carried.arrived is None
    assert replace(carried, arrived=8) == FULL["bronze"]


def test_the_payload_of_another_kind_is_not_taken_for_it() -> None:
    with pytest.raises(TypeError, match="expected the payload of gold, not of silver"):
        GoldPayload.of(State(SilverPayload()))


@pytest.mark.parametrize(
    ("harm", "says"),
    [
        (lambda said: said["payload"].update(kind="unheard"), "unknown kind of payload: unheard"),
        (lambda said: said["payload"].update(kind=7), "it is intact"),
        (lambda said: said["payload"].pop("kind"), "kind"),
        (lambda said: said["payload"].update(offsets={}), "unexpected keyword argument 'offsets'"),
        (lambda said: said.pop("payload"), "payload"),
    ],
)
def test_an_intact_payload_that_is_unknown_is_no_damage(
    open_table: Open, harm: Callable[[Any], Any], says: str
) -> None:
    table = open_table()
    lines = table.storage.read(entry_path(0)).splitlines()
    actions = [json.loads(line) for line in lines]
    (info,) = (action["commitInfo"] for action in actions if "commitInfo" in action)
    harm(info[STATE_KEY])
    info[CHECKSUM_KEY] = checksum_of(info[STATE_KEY], (), ())
    table.storage.write(entry_path(0), b"\n".join(json.dumps(a).encode() for a in actions))
    with pytest.raises(FormatError, match=says) as refused:
        read_commit(table.storage, 0)
    assert "it is intact" in refused.value.message


def test_a_log_of_another_kind_of_table_is_damage(open_table: Open, tmp_path: Path) -> None:
    """For example, a person has moved a folder."""
    open_table()
    (tmp_path / "gold").rename(tmp_path / "silver")
    with pytest.raises(LogGapError, match="another kind of table"):
        Table(Storage(str(tmp_path)), "silver/t", pipeline="p").refresh()


@pytest.fixture
def toy(tmp_path: Path) -> Iterator[None]:
    entries = ("sessions = toy_payloads:MEMBER",)
    with plugged_in(tmp_path, "toy_payloads", "headgate.payloads", *entries, code=TOY):
        yield


@pytest.mark.usefixtures("toy")
def test_an_operator_of_another_package_adds_to_what_gold_carries() -> None:
    """Readers of gold read their part of it and keep the rest."""
    payload = PAYLOADS["sessions"].decode({"watermark": 5, "merged": 2})
    state = written(State(payload))
    held = GoldPayload.of(state)
    assert held.watermark == 5
    moved = State(replace(held, watermark=7)).encode()
    wanted = {"kind": "sessions", "watermark": 7, "closed_through": None}
    wanted |= {"gate": None, "drains": {}, "open": None, "backfills": {}, "left_out": {}}
    wanted |= {"longest": 0, "inputs": {}}
    assert moved["payload"] == {**wanted, "merged": 2}
