"""One broker for all tests of this package. It also has listeners that ask for a password, one
without and one with TLS."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.key_store import KeyStore, make_key
from tests.support.own_broker import BrokerWithLogin, start_with_login
from tests.support.shell import Shell
from tests.support.watched import CANARY


@pytest.fixture(scope="package")
def key(tmp_path_factory: pytest.TempPathFactory) -> KeyStore:
    return make_key(tmp_path_factory.mktemp("key"))


@pytest.fixture(scope="package")
def kafka(tmp_path_factory: pytest.TempPathFactory, key: KeyStore) -> Iterator[BrokerWithLogin]:
    with start_with_login(tmp_path_factory.mktemp("kafka"), {"ann": CANARY}, key) as broker:
        yield broker


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADGATE_DRIVER_MEMORY", "1g")
    monkeypatch.setenv("PASSWORD", CANARY)
    monkeypatch.delenv("HEADGATE_ROOT", raising=False)


@pytest.fixture(scope="package")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEADGATE_DRIVER_MEMORY", "1g")
        patch.setenv("PASSWORD", CANARY)
        started = Shell(tmp_path_factory.mktemp("shell"))
    yield started
    started.end()
