"""Addresses of services: which of them a key or a token may be sent to."""

from typing import Final
from urllib.parse import urlsplit

THIS_MACHINE: Final = frozenset({"127.0.0.1", "localhost", "::1"})


def is_open_on_the_way(url: str) -> bool:
    """Return whether others could read what is sent to ``url``: it is no https, and leaves this machine.

    What is no address is open, too: nothing is to be sent there.
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return True
    return parts.scheme != "https" and (parts.scheme != "http" or parts.hostname not in THIS_MACHINE)


def fault_of(url: str) -> str | None:
    """Return what is wrong with the address of a service and how to mend it, None: it may be used."""
    try:
        parts = urlsplit(url)
        fits = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        return "--url is no address: write it like https://sluice.example.com."
    if not fits or parts.query or parts.fragment or not url.isprintable() or " " in url:
        return "--url must be like https://sluice.example.com."
    if "@" in parts.netloc:
        return "--url must hold no name and no password: give the key in SLUICE_API_KEY."
    if is_open_on_the_way(url):
        return "The key could be read on the way: --url needs https:// but for this machine."
    return None
