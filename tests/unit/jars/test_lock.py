from __future__ import annotations

import json
from pathlib import Path

import pytest

from headgate.jars.lock import lock_file, locked, read_lock
from headgate.spec.errors import HeadgateError

ENTRY = {"coordinates": "org.example:thing:1.0", "size": 3, "sha256": "0" * 64}


def write(path: Path, content: object) -> Path:
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def test_the_shipped_lock_pins_delta_and_no_jar_twice() -> None:
    jars = locked()
    assert jars[0].coordinates == "io.delta:delta-spark_4.2_2.13:4.4.0"
    assert len({jar.file_name for jar in jars}) == len(jars)
    assert lock_file().parts[-2:] == ("infra", "jars.lock")


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
