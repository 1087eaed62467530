"""What is set on a connection below SQL, and how what is stored is read."""

import json
import socket
import sys
from dataclasses import fields
from types import SimpleNamespace
from typing import Any

import pytest

from app.core.audit import AuditEvent
from app.store.dialects import TCP_USER_TIMEOUT_MS, _document_in, limit_silence
from app.store.tables import audit_event


def driver_of(connection: socket.socket) -> Any:
    places = {"socket": connection}
    return SimpleNamespace(_transport=SimpleNamespace(get_extra_info=places.get))


def test_a_silent_peer_is_given_up_soon_over_tcp_and_a_unix_socket_is_left_alone() -> None:
    for family in (socket.AF_INET, socket.AF_INET6):
        with socket.socket(family) as connection:
            limit_silence(driver_of(connection))
            if sys.platform == "linux":  # elsewhere the kernel has no such option
                option = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
                assert option == TCP_USER_TIMEOUT_MS > 0
    with socket.socket(socket.AF_UNIX) as local:
        limit_silence(driver_of(local))
    limit_silence(SimpleNamespace())


@pytest.mark.parametrize("stored", ['{"a": [1, "é"]}', ' {"a": [1, "é"]}\n', "null", '"x"', "[]", "1.5"])
def test_a_stored_document_is_read_as_json_whatever_stands_around_it(stored: str) -> None:
    assert _document_in(stored) == json.loads(stored)


@pytest.mark.parametrize("stored", ["", "{", '{"a": 1} x', "nothing"])
def test_what_is_no_document_is_not_read_in_part(stored: str) -> None:
    with pytest.raises(json.JSONDecodeError):
        _document_in(stored)


def test_the_record_has_the_members_of_an_event_first_and_in_their_order() -> None:
    members = [member.name for member in fields(AuditEvent)]
    columns = [column.name for column in audit_event.columns]
    evidence = ["writer", "writer_seq", "leaf", "mac"]
    assert columns[: len(members) + len(evidence)] == [*members, *evidence]
