"""Hand a command over to a warm process that forks a server for it; end as that server ends, and it with this.

Runs as ``python -I -S launch.py NAME ARGUMENTS...``: it may import little, since each test of a command starts it.
"""

import json
import os
import socket
import sys
from pathlib import Path


def main() -> None:
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(f"\0{sys.argv[1]}")
    order = {"arguments": sys.argv[2:], "environment": dict(os.environ), "folder": str(Path.cwd())}
    socket.send_fds(connection, [json.dumps(order).encode() + b"\n"], [0, 1, 2])
    # The server alone holds the pipes now, and its end is seen by whoever reads them.
    for descriptor in (0, 1, 2):
        os.close(descriptor)
    status = connection.recv(16)
    os._exit(int(status) if status else 1)


if __name__ == "__main__":
    main()
