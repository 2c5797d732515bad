from __future__ import annotations

import json
from pathlib import Path

import pytest

from headgate.errors import HeadgateError
from headgate.machine.jars.lock import LockSet, lock_file, locked, read_lock

ENTRY = {"coordinates": "org.example:thing:1.0", "size": 3, "sha256": "0" * 64}


def write(path: Path, content: object) -> Path:
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def test_the_shipped_lock_pins_delta_and_no_jar_twice() -> None:
    jars = locked()
    assert jars[0].coordinates == "io.delta:delta-spark_4.2_2.13:4.4.0"
    assert len({jar.file_name for jar in jars}) == len(jars)
    assert lock_file().parts[-2:] == ("infra", "jars.lock")


def test_spark_gets_its_kafka_connector_with_the_client_it_was_built_for() -> None:
    artifacts = {jar.artifact: jar.revision for jar in locked()}
    assert artifacts["spark-sql-kafka-0-10_2.13"] == "4.2.0"
    assert artifacts["spark-token-provider-kafka-0-10_2.13"] == "4.2.0"
    assert artifacts["kafka-clients"] == "3.9.2"
    assert len(artifacts) == len(locked()) == 11


def test_the_broker_has_a_lock_of_its_own_with_what_logs_for_it() -> None:
    artifacts = {jar.artifact for jar in locked(LockSet.KAFKA)}
    assert {"kafka_2.13", "kafka-server", "log4j-core", "log4j-slf4j-impl"} <= artifacts
    assert lock_file(LockSet.KAFKA).parts[-2:] == ("infra", "kafka.lock")


def test_no_file_of_the_cache_is_pinned_in_two_ways() -> None:
    every = {jar for lock in LockSet for jar in locked(lock)}
    assert len({jar.file_name for jar in every}) == len(every)


def test_coordinates_name_the_file(tmp_path: Path) -> None:
    (jar,) = read_lock(write(tmp_path / "jars.lock", [ENTRY]))
    assert (jar.organisation, jar.artifact, jar.revision) == ("org.example", "thing", "1.0")
    assert jar.file_name == "thing-1.0.jar"


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"coordinates": "org.example:thing"}, "org.example:thing"),
        ({"sha256": "abc"}, "sha256"),
        ({"size": "3"}, "size"),
    ],
)
def test_a_wrong_entry_is_named(tmp_path: Path, change: dict[str, object], named: str) -> None:
    path = write(tmp_path / "jars.lock", [{**ENTRY, **change}])
    with pytest.raises(HeadgateError, match=named) as raised:
        read_lock(path)
    assert "git checkout" in raised.value.remedy
