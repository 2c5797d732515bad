"""``headgate publication``: lists, dead letters, and a reset that a sink does not support."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from headgate.declaration.load import load
from headgate.flow.publish.sinks.letters import DeadLetters, Letter
from headgate.insight.status.health import HealthContext, violations
from headgate.insight.status.limits import Limits
from headgate.lake.control.ownership import Owner
from tests.support.receiver import Receiver, receiving
from tests.unit.cli.conftest import Ask, last_object
from tests.unit.insight.ledger.conftest import Lake
from tests.unit.supervision.conftest import lease, report

Of = tuple[str, str, str]
NOW = datetime(2026, 3, 1, tzinfo=UTC)


def publish(lake: Lake, receiver: Receiver) -> DeadLetters:
    """Declare a publication of the lake, of which the receiver has refused two rows."""
    sink = f"webhook: {{url: '{receiver.url}'}}"
    with Path(lake.pipeline.file).open("a") as file:
        file.write(f"publish:\n  finals: {{from: gold.per_minute, {sink}}}\n")
    letters = DeadLetters(lake.layout.storage, "finals")
    for number in (1, 2):
        headers = {"headgate-table": "gold.per_minute"}
        letters.keep(Letter(f"{number}abc", b"%d" % number, headers, "answers 500", 8, NOW))
    return letters


def test_dead_letters_are_shown_sent_and_discarded(ask: Ask, empty_lake: Lake, of_lake: Of) -> None:
    pipeline, *root = of_lake
    with receiving() as receiver:
        letters = publish(empty_lake, receiver)
        code, out, _ = ask("publication", "letters", pipeline, "finals", *root)
        assert code == 0
        assert "gold.per_minute" in out
        assert out.count("answers 500") == 2
        receiver.answer = lambda request: 500 if request.id == "2abc" else 200
        code, out, _ = ask("publication", "resend", pipeline, "finals", *root, "--json")
        assert code == 3
        found = last_object(out)
        assert (found["sent"], found["refused"]) == (1, [{"id": "2abc", "why": "answers 500"}])
        assert [request.body for request in receiver.took] == [b"1"]
        assert [letter.id for letter in letters.all()] == ["2abc"]
        only = ("--id", "9", "--json")
        code, _, err = ask("publication", "discard", pipeline, "finals", *root, *only)
        assert code == 2
        assert "no dead letter '9'" in err
        only = ("--id", "2a", "--json")
        code, out, _ = ask("publication", "discard", pipeline, "finals", *root, *only)
        assert (code, last_object(out)["discarded"]) == (0, 1)
        assert list(letters.all()) == []


def test_a_resend_stops_when_the_sink_is_away(ask: Ask, empty_lake: Lake, of_lake: Of) -> None:
    """Each try may take 15 seconds, and there may be 10,000 letters."""
    pipeline, *root = of_lake
    with receiving() as receiver:
        letters = publish(empty_lake, receiver)
        receiver.answer = lambda request: 503
        code, out, _ = ask("publication", "resend", pipeline, "finals", *root)
        assert code == 3
        assert "0 sent, 0 refused again" in out
        assert "the sink answers 503: 2 not sent" in out
        assert len(receiver.seen) == 1
    assert letters.count == 2


def test_letters_of_an_earlier_sink_can_only_be_discarded(
    ask: Ask, empty_lake: Lake, of_lake: Of
) -> None:
    pipeline, *root = of_lake
    letters = publish(empty_lake, Receiver("http://127.0.0.1:1"))
    file = Path(empty_lake.pipeline.file)
    sink = "kafka: {servers: '127.0.0.1:1', topic: out}"
    file.write_text(file.read_text().replace("webhook: {url: 'http://127.0.0.1:1'}", sink))
    code, _, err = ask("publication", "resend", pipeline, "finals", *root)
    assert code == 2
    assert "kafka does not take them" in err
    assert "headgate publication discard" in err
    assert letters.count == 2


def test_a_damaged_letter_leaves_the_others_alone(ask: Ask, empty_lake: Lake, of_lake: Of) -> None:
    pipeline, *root = of_lake
    with receiving() as receiver:
        letters = publish(empty_lake, receiver)
        empty_lake.layout.storage.write("_headgate/dead_letters/finals/1abc.json", b"")

        def said(verb: str, *options: str) -> tuple[int, str]:
            code, _, err = ask("publication", verb, pipeline, "finals", *root, *options)
            return code, err

        code, err = said("letters")
        assert code == 5
        assert "1abc" in err
        assert said("resend", "--id", "2") == (0, "")
        assert [request.body for request in receiver.took] == [b"2"]
        assert said("discard", "--id", "1") == (0, "")
        assert letters.ids() == []


def test_publications_are_listed(ask: Ask, lake: Lake, of_lake: Of) -> None:
    pipeline, *root = of_lake
    publish(lake, Receiver("http://127.0.0.1:1"))
    code, out, _ = ask("publication", "list", pipeline, *root, "--json")
    assert code == 0
    (found,) = last_object(out)["publications"]
    assert (found["name"], found["sink"]) == ("finals", "webhook")
    assert found["waiting"] > 0
    assert found["dead_letters"] == 2


def test_status_and_health_tell_of_dead_letters(ask: Ask, lake: Lake, of_lake: Of) -> None:
    pipeline, *root = of_lake
    letters = publish(lake, Receiver("http://127.0.0.1:1"))
    lease(lake.layout, Owner.here(), renewed=datetime.now(UTC))
    report(lake.layout, "fused", epoch=1, n=3, samples=[])
    code, out, _ = ask("status", pipeline, *root)
    assert code == 0
    assert "dead letters of finals, rows that its sink refuses: 2" in out
    assert f"publication letters {pipeline} finals" in out
    context = HealthContext(load(Path(lake.pipeline.file)), lake.layout, (), NOW)
    (said,) = violations("publications", context, Limits())
    assert said.startswith("publish finals: dead letters, rows that its sink refuses: 2; ")
    for letter in letters.all():
        letters.remove(letter.id)
    assert "dead letters" not in ask("status", pipeline, *root)[1]
    assert violations("publications", context, Limits()) == ()


def test_what_a_log_has_taken_cannot_be_reset(ask: Ask, empty_lake: Lake, of_lake: Of) -> None:
    pipeline, *root = of_lake
    publish(empty_lake, Receiver("http://127.0.0.1:1"))
    code, _, err = ask("publication", "reset", pipeline, "finals", *root)
    assert code == 2
    assert "what webhook has taken cannot be taken back" in err
    code, _, err = ask("publication", "reset", pipeline, "others", *root)
    assert code == 2
    assert "no publication 'others'" in err
    assert "there are: " in err
