"""Where the service listens: the socket that its processes share, and its URL."""

import errno
import socket

from app.cli.terminal import fail


def listen(host: str, port: int) -> socket.socket:
    """Return a bound socket, or end the command with an explanation of what is wrong with the address."""
    bare = host.strip("[]")
    family = socket.AF_INET6 if ":" in bare else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((bare, port))
    except PermissionError:
        listener.close()
        fail(f"This user may not listen on port {port}: choose one above 1023 with --port.")
    except socket.gaierror:
        listener.close()
        fail(f"{host} is not an address of this machine: set --host or SLUICE_HTTP__HOST.")
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRNOTAVAIL:
            fail(f"{host} is not an address of this machine: set --host or SLUICE_HTTP__HOST.")
        fail(
            f"Port {port} of {host} is taken: stop what listens there, or choose another port with --port "
            "(SLUICE_HTTP__PORT)."
        )
    return listener


def address_of(listener: socket.socket) -> str:
    """Return the URL at which ``listener`` is reached."""
    host, port = listener.getsockname()[:2]
    if host in {"0.0.0.0", "::"}:  # noqa: S104 -- compared, not bound
        host = "127.0.0.1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
