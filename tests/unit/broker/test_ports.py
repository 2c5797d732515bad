from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from headgate.broker import ports
from headgate.broker.errors import PortTakenError


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def test_a_port_that_somebody_listens_on_is_refused(taken: int) -> None:
    with pytest.raises(PortTakenError, match=f"port {taken} ") as raised:
        ports.require_free(taken)
    assert raised.value.port == taken
    assert "--port 0" in raised.value.remedy


def test_a_port_of_which_only_an_old_connection_is_left_is_free() -> None:
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as a broker's is
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):
            listener.accept()[0].close()  # this side then waits in TIME_WAIT
    ports.require_free(port)


def test_a_port_without_rights_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "refusal", lambda _: PermissionError(13, "Permission denied"))
    with pytest.raises(PortTakenError, match="may not listen"):
        ports.require_free(80)


def test_a_chosen_port_is_none_that_clients_are_lent() -> None:
    assert 20_000 <= ports.free_port() < 32_000
