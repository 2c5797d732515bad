"""How the folders of a run are checked before Spark starts."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from headgate.driver.refusing import require_input, require_unchanged
from headgate.flow.sources.errors import FileChangedError, SourceUnreachableError
from headgate.flow.sources.files.declared import FilesSource
from headgate.flow.sources.files.landing import LandingError, require_landing
from headgate.flow.sources.files.log import FilesLog
from headgate.lake.storage.files import Stat
from tests.support.declared import files_of
from tests.unit.cli.conftest import Ask
from tests.unit.insight.ledger.conftest import Lake

OfLake = tuple[str, str, str]


@pytest.fixture
def no_rights(monkeypatch: pytest.MonkeyPatch) -> None:
    """Access to every folder is refused, even if root runs the tests."""
    monkeypatch.setattr("headgate.flow.sources.files.landing.os.access", lambda *_: False)


class _NothingIsThere(BaseHTTPRequestHandler):
    def do_HEAD(self) -> None:
        self.send_response(404)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_HEAD  # noqa: N815

    def log_message(self, *_: object) -> None:
        """Logs nothing."""


@pytest.fixture
def no_buckets(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An object store that has no bucket."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _NothingIsThere) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setenv("AWS_REGION", "us-east-1")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        yield
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("verb", ["start", "restart", "run", "doctor"])
def test_whatever_starts_a_pipeline_wants_its_landing_folder(
    ask: Ask, empty_lake: Lake, of_lake: OfLake, verb: str
) -> None:
    landing = Path(files_of(empty_lake.pipeline).path)
    empty_lake.layout.storage.remove("_headgate/files/events")  # no driver has begun
    code, out, err = ask(verb, *of_lake)
    assert code == 3
    said = "".join((err, out))
    assert f"there is no landing folder {landing}" in said
    assert f"mkdir -p {landing}" in said


def test_a_landing_folder_that_was_there_is_waited_for(empty_lake: Lake) -> None:
    """As brokers that do not answer. A run that is to end does not wait."""
    landing = Path(files_of(empty_lake.pipeline).path)
    (remark,) = require_input(empty_lake.pipeline, empty_lake.layout)
    assert f"there is no landing folder {landing}: put it back" in remark
    with pytest.raises(SourceUnreachableError, match="there is no landing folder"):
        require_input(empty_lake.pipeline, empty_lake.layout, once=True)
    landing.mkdir(parents=True)
    assert require_input(empty_lake.pipeline, empty_lake.layout) == ()


def test_a_missing_landing_folder_is_named_in_full(tmp_path: Path) -> None:
    folder = tmp_path / "not yet here"
    with pytest.raises(LandingError, match=f"no landing folder {folder}\n") as refused:
        require_landing(FilesSource(str(folder), "json"), tmp_path / "shop.yml")
    assert f"mkdir -p '{folder}'" in str(refused.value.remedy)


def test_an_object_store_that_cannot_be_reached_is_named(tmp_path: Path) -> None:
    with pytest.raises(LandingError, match="gopher://bucket/orders cannot be reached: "):
        require_landing(FilesSource("gopher://bucket/orders", "json"), tmp_path / "shop.yml")


def test_a_missing_bucket_is_no_empty_folder(tmp_path: Path, no_buckets: None) -> None:
    source = FilesSource("s3://bucket/orders", "json")
    with pytest.raises(LandingError, match="no bucket for the landing folder s3://bucket/orders"):
        require_landing(source, tmp_path / "shop.yml")


@pytest.mark.parametrize("verb", ["plan", "run", "start", "restart", "upgrade"])
@pytest.mark.parametrize("place", [".", "tiny/bronze", "..", "link"])
def test_tables_are_not_written_where_files_are_read(
    ask: Ask, empty_lake: Lake, of_lake: OfLake, verb: str, place: str
) -> None:
    landing, root = Path(files_of(empty_lake.pipeline).path), Path(of_lake[2])
    landing.parent.mkdir(parents=True, exist_ok=True)
    (landing.parent / "link").symlink_to(root)
    landing.symlink_to(landing.parent / "link" if place == "link" else root / place)
    code, _, err = ask(verb, *of_lake)
    assert code == 3
    assert f"files {landing} and the root of the tables {root} overlap" in err


@pytest.mark.parametrize("verb", ["run", "start"])
def test_a_landing_folder_that_is_a_file_is_3(
    ask: Ask, empty_lake: Lake, of_lake: OfLake, verb: str
) -> None:
    landing = Path(files_of(empty_lake.pipeline).path)
    landing.parent.mkdir(parents=True, exist_ok=True)
    landing.write_text("")
    code, _, err = ask(verb, *of_lake)
    assert code == 3
    assert f"{landing} is a file" in err


def test_a_landing_folder_that_may_not_be_listed(empty_lake: Lake, no_rights: None) -> None:
    Path(files_of(empty_lake.pipeline).path).mkdir(parents=True)
    with pytest.raises(Exception, match="may not be listed"):
        require_input(empty_lake.pipeline, empty_lake.layout)


@pytest.mark.parametrize("verb", ["run", "start"])
def test_a_root_that_cannot_be_made_is_8(ask: Ask, of_lake: OfLake, verb: str) -> None:
    Path("a_file").write_text("")
    code, _, err = ask(verb, of_lake[0], "--root", "a_file")
    assert code == 8
    assert "cannot be made: Not a directory" in err
    assert "headgate doctor --root" in err


def test_a_root_that_may_not_be_written_is_8(ask: Ask, of_lake: OfLake, no_rights: None) -> None:
    code, _, err = ask("run", *of_lake)
    assert code == 8
    assert "may not be written" in err


@pytest.mark.parametrize(("name", "part"), [("a%41", "%41"), (r"a\b", "\\")])
def test_a_root_whose_name_delta_takes_for_another_is_2(
    ask: Ask, of_lake: OfLake, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, part: str
) -> None:
    for verb in ("plan", "run", "start", "ledger"):
        code, _, err = ask(verb, of_lake[0], "--root", name)
        assert code == 2
        assert f"Delta cannot keep tables in a folder with {part} in its path" in err
    assert ask("demo", "--root", name)[0] == 2
    (tmp_path / name).mkdir()
    monkeypatch.chdir(name)
    code, _, err = ask("doctor")
    assert code == 2
    assert "--root FOLDER" in err


@pytest.mark.parametrize("is_there", [True, False])
def test_a_disk_that_is_not_mounted_yet_keeps_no_driver_from_starting(
    lake: Lake, is_there: bool
) -> None:
    """As after a reboot: files are recorded and not read, and the mount point is empty or gone."""
    landing = Path(files_of(lake.pipeline).path)
    log = FilesLog.of(lake.layout.storage, "tiny", "events")
    log.table.fence(9)
    log.load()
    log.record([Stat("new.json", 3, datetime(2026, 5, 4, tzinfo=UTC))], datetime.now(UTC))
    if is_there:
        landing.mkdir(parents=True, exist_ok=True)
    require_unchanged(lake.pipeline, lake.layout)
    with pytest.raises(SourceUnreachableError, match="recorded and not read"):
        require_unchanged(lake.pipeline, lake.layout, once=True)
    landing.mkdir(parents=True, exist_ok=True)
    (landing / "other.json").write_text("{}")
    with pytest.raises(FileChangedError, match="vanished"):
        require_unchanged(lake.pipeline, lake.layout)
