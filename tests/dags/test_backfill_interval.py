"""How the tasks of a scheduled backfill react to the verb's exit code and to earlier attempts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import (
    AirflowException,
    AirflowFailException,
)

from headgate.airflow import GoldFinalSensor
from headgate.airflow.operators import backfill
from headgate.airflow.operators.backfill import (
    BackfillInterval,
    ReplayInterval,
)
from headgate.airflow.operators.verb_operator import run_verb
from headgate.airflow.questions import of_publication
from headgate.airflow.run_conf import FROM, TO
from headgate.commands import Place
from headgate.declaration.load import load
from headgate.history.backfill.report import BackfillReport, TableReport, write_report
from headgate.lake.tables.row_changes import RowChange, RowChanges
from tests.support.task_instance import TaskInstance
from tests.unit.history.backfill.test_open_requests import asked, carried_out, taken_in
from tests.unit.insight.ledger.conftest import DECLARATION, Lake

DAY = datetime(2026, 5, 4, tzinfo=UTC)
NEXT = DAY + timedelta(days=1)
EMPTY = TableReport("per_minute", 1, 0, 0, 0, 0, 0, 0, "0-00", "0-00")
DIFFERS = replace(EMPTY, changed=1, windows=1, live="1-00", backfilled="1-ff")

RUN: Any = {"run_id": "1", "ti": TaskInstance()}
Verb = Callable[..., list[tuple[str, ...]]]


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    file = tmp_path / "tiny.yml"
    file.write_text(DECLARATION)
    return Lake(tmp_path / "lake", load(file))


@pytest.fixture
def hopping(tmp_path: Path) -> Lake:
    file = tmp_path / "tiny.yml"
    window = "{hopping: {size: 6 hours, every: 1 hour}}"
    file.write_text(DECLARATION.replace("{tumbling: 1 minute}", window))
    return Lake(tmp_path / "lake", load(file))


def about(lake: Lake, **more: Any) -> dict[str, Any]:
    root = str(Path(lake.layout.storage.root).parent)
    times = {"begin": DAY.isoformat(), "end": NEXT.isoformat()}
    return {"file": str(lake.pipeline.file), "name": "tiny", "root": root, **times, **more}


def task(lake: Lake, then: Any = "verify", **more: Any) -> BackfillInterval:
    more = {"declaration": "", **more}
    return BackfillInterval(task_id="compute", then=then, **about(lake, **more))


@pytest.fixture
def verb(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> Verb:
    """Sets the exit code and the report of the verb. Returns the list of its later calls."""

    def set_end(code: int, table: TableReport | None = None, digest: str = "digest") -> Any:
        calls = []

        def run(words: tuple[str, ...], *_: Any) -> tuple[int, str]:
            calls.append(words)
            if table is not None:
                at, file = datetime.now(UTC), "tiny.yml"
                about = ("b1", "tiny", at, DAY, NEXT, digest, (table,))
                report = BackfillReport(*about, by_end=True, file=file)
                write_report(lake.layout, report)
            return code, ""

        monkeypatch.setattr(backfill, "run_verb", run)
        return calls

    return set_end


YES = {"chosen_options": ["Approve"]}


def answered(questions: Any, answers: Mapping[int, Any]) -> Any:
    """The context of a task after a person has answered, by the number of the question."""
    return {**RUN, "ti": TaskInstance(compute=questions, approve=answers)}


def test_a_quiet_day_is_no_failure(lake: Lake, verb: Verb) -> None:
    verb(1, EMPTY)
    found = {"declaration": "digest", "backfilled": {"per_minute": "0-00"}}
    assert task(lake).execute(RUN) == {"id": "b1", "differing": [], "published": [], **found}


@pytest.mark.parametrize("then", ["verify", "show", "publish"])
@pytest.mark.parametrize(
    ("code", "is_final"),
    [(1, False), (6, False), (7, False), (-9, False), (2, True), (3, True), (5, True), (11, True)],
)
def test_only_what_needs_a_person_is_not_tried_again(
    lake: Lake, verb: Verb, then: str, code: int, is_final: bool
) -> None:
    verb(code)
    with pytest.raises(AirflowException) as caught:
        task(lake, then).execute(RUN)
    assert isinstance(caught.value, AirflowFailException) == is_final
    if code != 11:
        replay = ReplayInterval(task_id="replay", tables=["per_minute"], **about(lake))
        with pytest.raises(AirflowException, match=r"gold\.per_minute: ") as caught:
            replay.execute(RUN)
        assert isinstance(caught.value, AirflowFailException) == is_final


def test_windows_that_began_before_the_interval_are_compared(
    hopping: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def run(words: list[str], *_: Any) -> tuple[int, str]:
        calls.append(words)
        at = datetime.now(UTC)
        about, found = (at, DAY, NEXT, "digest"), replace(EMPTY, equal=1, windows=1)
        # A person may compare the same times meanwhile, without the windows that began before.
        for id_, by_end in (("b2", True), ("b3", False)):
            report = BackfillReport(id_, "tiny", *about, (found,), by_end=by_end)
            write_report(hopping.layout, report)
        return 0, ""

    monkeypatch.setattr(backfill, "run_verb", run)
    assert task(hopping).execute(RUN)["id"] == "b2"
    (words,) = calls
    at = words.index("--from")
    assert words[at : at + 4] == ["--from", DAY.isoformat(), "--to", NEXT.isoformat()]
    assert "--by-end" in words


def test_what_an_earlier_attempt_has_asked_for_is_not_asked_for_again(
    lake: Lake, verb: Verb, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = verb(0, EMPTY)
    replay = ReplayInterval(task_id="replay", tables=["per_minute"], **about(lake))
    monkeypatch.setattr(backfill, "PATIENCE", 0.0)
    asked(lake)
    for step in (lambda _: None, taken_in):
        step(lake)
        for each in (task(lake, "publish"), replay):
            with pytest.raises(AirflowException, match="gate status") as caught:
                each.execute(RUN)
            assert not isinstance(caught.value, AirflowFailException)
            assert "⟦" not in str(caught.value)
    assert calls == []
    carried_out(lake)
    task(lake, "publish").execute(RUN)
    replay.execute(RUN)
    assert len(calls) == 2


def test_only_what_was_approved_is_published(lake: Lake, verb: Verb) -> None:
    verb(0, DIFFERS)
    shown = answered(task(lake, "show").execute(RUN), {0: YES})
    publish = task(lake, "publish", asks="compute", approval="approve")
    calls = verb(0, DIFFERS)
    publish.execute(shown)
    (words,) = calls
    assert words[words.index("--expect") + 1] == "gold.per_minute=1-ff"
    verb(11, replace(DIFFERS, backfilled="9-00"), "another")
    with pytest.raises(AirflowFailException, match="clear the task compute") as caught:
        publish.execute(shown)
    assert "Changed since: gold.per_minute, the declaration." in str(caught.value)
    calls = verb(0, DIFFERS)
    (question,) = shown["ti"].returned["compute"]
    for questions, answers in (
        (None, {}),
        ([None], {0: YES}),
        ([question], {}),
        ([None, question], {0: YES}),  # an earlier question, about other rows
    ):
        with pytest.raises(AirflowFailException, match="clear the task compute"):
            publish.execute(answered(questions, answers))
    assert calls == []


def test_each_attempt_asks_a_question_of_its_own(lake: Lake, verb: Verb) -> None:
    verb(0, DIFFERS)
    ti = TaskInstance()
    ti.try_number = 3
    again: Any = {**RUN, "ti": ti}
    *earlier, question = task(lake, "show").execute(again)
    assert earlier == [None, None]
    assert "computed by tiny.yml, the pipeline's own declaration" in question["subject"]
    assert ti.pushed == {"computed_by": "tiny.yml, the pipeline's own declaration"}
    verb(0, replace(EMPTY, equal=1, windows=1))
    assert task(lake, "show").execute(again) == [None] * 3


def test_the_question_shows_the_rows_and_names_another_declaration() -> None:
    hostile = "<img src=x onerror=1>|`x`"
    key = {"at": "2026-05-04 12:00:00", "site": hostile}
    rows = RowChanges(
        *(("at",), ("site",), ("total", "name")),
        rows=(
            RowChange({**key, "total": "1", "name": None}, {**key, "total": "2", "name": None}),
            RowChange(None, {**key, "total": "7", "name": "a\nb"}),
        ),
        total=30,
    )
    table = replace(DIFFERS, changed=29, new=1, rows=rows)
    about = ("b1", "tiny", DAY, DAY, NEXT, "digest", (table,))
    report = BackfillReport(*about, file="other.txt", is_own=False)
    text = of_publication(report, "one", "two", Path("other.txt"), Place("headgate", "tiny.yml"))
    assert "Computed by **another declaration**, `other.txt`, in the backfill `b1`." in text
    site = "`` <img src=x onerror=1>\\|`x` ``"
    at = "2026-05-04 12:00:00"
    assert text.splitlines()[4:9] == [
        "| Window | `site` | Row | Column | Readers see | Computed |",
        "| --- | --- | --- | --- | --- | --- |",
        f"| {at} | {site} | changed | `total` | 1 | 2 |",
        f"| {at} | {site} | new | *all* | *no row* | `total` 7, `name` `a\\nb` |",
        "",
    ]
    assert "the first 2 of 30 rows; a smaller range shows others of them: `headgate" in text


def test_rows_that_gold_has_already_are_no_failure_if_others_were_approved(
    lake: Lake, verb: Verb
) -> None:
    """An earlier attempt has published, and late rows were replayed since."""
    verb(0, DIFFERS)
    shown = answered(task(lake, "show").execute(RUN), {0: YES})
    verb(11, replace(EMPTY, equal=1, windows=1, live="9-00", backfilled="9-00"))
    found = task(lake, "publish", asks="compute", approval="approve").execute(shown)
    assert (found["differing"], found["published"]) == ([], [])


def test_another_declaration_is_a_file_beside_the_pipelines_own(lake: Lake, verb: Verb) -> None:
    calls = verb(0, EMPTY)
    beside = lake.pipeline.file.with_name("other.txt")
    elsewhere = lake.pipeline.file.parent / "elsewhere"
    elsewhere.mkdir()
    for file in (beside, elsewhere / "secret.txt"):
        file.write_text("token: secret\n")
    for given in (str(beside), "elsewhere/secret.txt", "../x/other.txt", "..", "gone.txt"):
        with pytest.raises(AirflowFailException, match="not the name of a file beside"):
            task(lake, declaration=given).execute(RUN)
    assert calls == []
    task(lake, declaration="other.txt").execute(RUN)
    assert str(beside) in calls[0]


def test_a_run_without_an_interval_says_what_to_do(lake: Lake, verb: Verb) -> None:
    calls = verb(0, EMPTY)
    of = about(lake, begin=FROM, end=TO)
    place = {"file": of["file"], "root": of["root"]}
    for each in (
        BackfillInterval(task_id="compute", then="show", **of),
        ReplayInterval(task_id="replay", tables=["per_minute"], **of),
        GoldFinalSensor(task_id="final", table="per_minute", up_to=TO, **place),
    ):
        none: Any = {"data_interval_start": None, "data_interval_end": None, "params": {}}
        each.render_template_fields(none)
        with pytest.raises(AirflowFailException, match="airflow backfill create"):
            each.execute(RUN)
    assert calls == []


def test_an_interval_is_rendered(lake: Lake) -> None:
    each = task(lake, begin=FROM, end=TO)
    each.render_template_fields(
        {"data_interval_start": DAY, "data_interval_end": NEXT}  # type: ignore[typeddict-item]
    )
    assert (each.begin, each.end) == (DAY.isoformat(), NEXT.isoformat())


@pytest.mark.slow
def test_a_verb_tells_the_log_and_its_last_lines_what_it_says() -> None:
    lines: list[str] = []
    code, last = run_verb(["nothing-of-this-name"], lines.append)
    assert code == 2
    assert "nothing-of-this-name" in last
    assert lines[-1] == last.splitlines()[-1]
