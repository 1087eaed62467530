"""What is set on a connection to PostgreSQL below SQL."""

import socket
import sys
from types import SimpleNamespace
from typing import Any

from app.store.dialects import TCP_USER_TIMEOUT_MS, limit_silence


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
