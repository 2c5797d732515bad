from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from headgate.machine.process_tree.ports import free_port, refusal
from headgate.setup.standalone.settings import AskedWrongError, web_port


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def test_a_port_that_somebody_listens_on_is_refused(taken: int) -> None:
    assert refusal(taken) == "another process listens there"
    with pytest.raises(AskedWrongError, match=f"port {taken} ") as raised:
        web_port(taken, "headgate up --port 0")
    assert raised.value.remedy == "take another one: headgate up --port 0"


def test_a_port_of_which_only_an_old_connection_is_left_is_free() -> None:
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as a broker does
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):
            listener.accept()[0].close()  # this side then waits in TIME_WAIT
    assert refusal(port) is None


def test_a_port_without_rights_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(socket.socket, "bind", refuse)
    assert refusal(80) == "this user may not listen there"


def test_a_chosen_port_is_none_that_clients_are_lent() -> None:
    assert 20_000 <= free_port() < 32_000
