"""Whatever the steps are, a table with several inputs has the same rows; and what each rule is for.

The steps, the batches, the idle sources, the late rows and the corrections come from Hypothesis.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

from tests.property.inputs.definitions import DEFINITIONS, LEFT, RIGHT
from tests.property.inputs.logs import Arrived, Logs, SourceLog
from tests.property.inputs.tables import Rule, Table
from tests.support.rounds import IN_FULL

EXAMPLES = 2_000 if IN_FULL else 60
SOURCES = (LEFT, RIGHT)
Draw = Callable[[st.SearchStrategy[int]], int]


@st.composite
def histories(draw: st.DrawFn) -> Logs:
    """Two sources, one of them with two partitions. Times rise on the whole, so that some rows are
    late and most are not."""
    logs = Logs({LEFT: SourceLog(LEFT, draw(st.integers(1, 2))), RIGHT: SourceLog(RIGHT)})
    for turn in range(draw(st.integers(1, 8))):
        match draw(st.sampled_from(["batch"] * 6 + ["idle", "replay", "drain"])):
            case "batch":
                source = draw(st.sampled_from(SOURCES))
                last = logs.sources[source].partitions - 1
                arrived = st.builds(
                    *(Arrived, st.integers(0, last)),
                    st.integers(max(0, 3 * turn - 6), 3 * turn + 4),
                    st.sampled_from("kl"),
                )
                logs = logs.arrives(source, draw(st.lists(arrived, min_size=1, max_size=3)))
            case "idle":
                logs = logs.decides(idle=logs.idle | {draw(st.sampled_from(SOURCES))})
            case "replay":
                logs = logs.decides(replays=True)
            case "drain":
                logs = logs.decides(drains=True)
    return logs


def walk(table: Table, logs: Logs, draw: Draw) -> Iterator[Table]:
    """The table after each of some steps, up to the end."""
    while table.position != logs.position or table.decisions < len(logs.decisions):
        stop, at = table.stop(logs), table.position
        upto = {s: draw(st.integers(at.get(s, 0), stop[s])) for s in SOURCES}
        table = table.step(logs, stop if upto == at else upto)
        assert_is_defined(table)
        yield table


def contents(table: Table, logs: Logs, draw: Draw) -> Mapping[int, object]:
    """The content of the table after each decision and at the end, when it reads in some steps."""
    return {len(logs.decisions): table.content} | {
        each.decisions: each.content
        for each in walk(table, logs, draw)
        if each.is_at_decision(logs)
    }


def assert_is_defined(table: Table) -> None:
    """The table has what its definition gives for the included rows, below the output watermark."""
    defined = table.definition.results(table.included)
    below = {i: r for i, r in defined.items() if table.floor is not None and r[0] < table.floor}
    assert table.rows == below


def is_violated(table: Table, logs: Logs, draw: Draw) -> bool:
    """Whether two ways through the same history end differently, or not as defined."""
    try:
        return contents(table, logs, draw) != contents(table, logs, draw)
    except AssertionError:
        return True


@pytest.mark.parametrize("name", DEFINITIONS)
def test_any_steps_give_the_same_rows(name: str) -> None:
    @settings(max_examples=EXAMPLES)
    @given(histories(), st.integers(0, 3), st.data())
    def proved(logs: Logs, lateness: int, data: st.DataObject) -> None:
        table = Table(DEFINITIONS[name], lateness, SOURCES)
        assert contents(table, logs, data.draw) == contents(table, logs, data.draw)

    proved()


@pytest.mark.parametrize("name", DEFINITIONS)
def test_a_correction_gives_what_the_row_would_have_given_in_time(name: str) -> None:
    """A replay of all late rows at the end gives the definition over all rows, and changes no
    result but those that are affected."""
    definition = DEFINITIONS[name]

    @settings(max_examples=EXAMPLES)
    @given(histories(), st.integers(0, 3), st.data())
    def proved(logs: Logs, lateness: int, data: st.DataObject) -> None:
        table = Table(definition, lateness, SOURCES)
        before = [table, *walk(table, logs, data.draw)][-1]
        after = before.step(logs.decides(replays=True), logs.position)
        rows = {row.id: row for row in after.read}
        everything = definition.results(after.read)
        assert after.rows == {
            i: r for i, r in everything.items() if after.floor is not None and r[0] < after.floor
        }
        changed = {
            i for i in {*before.rows, *after.rows} if before.rows.get(i) != after.rows.get(i)
        }
        for result in changed:
            assert any(definition.affected(rows[i], result, rows) for i in before.late), result

    proved()


NEEDED: Mapping[Rule, str] = {
    Rule.STEP_ENDS: "union",
    Rule.BELOW_OUTPUT: "union",
    Rule.BEHIND_CLOCK: "union",
    Rule.NEVER_FALLS: "union",
    Rule.WAITS: "join",
    Rule.REPLAYED_LATER: "join",
}


@pytest.mark.parametrize("rule", Rule)
def test_every_rule_is_needed(rule: Rule) -> None:
    """Without it, two ways through one history end differently, or not as defined."""
    definition = DEFINITIONS[NEEDED[rule]]

    @st.composite
    def violated(draw: st.DrawFn) -> bool:
        logs = draw(histories())
        table = Table(definition, draw(st.integers(0, 3)), SOURCES, frozenset([rule]))
        return is_violated(table, logs, draw)

    try:
        find(violated(), bool, settings=settings(max_examples=20_000, phases=[Phase.generate]))
    except NoSuchExample:
        pytest.fail(f"no history needs this: {rule.value}")
