"""Reverse proxies in front of a service: with what docs/operations.md says, as they come, and with buffers forced."""

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.outside.debian import program

START_S = 20.0

NGINX = """\
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{}}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass http://127.0.0.1:{behind};
      SETTINGS
    }}
  }}
}}
"""
RECOMMENDED = """\
      client_max_body_size 100m;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host $http_host;
      proxy_set_header X-Forwarded-For $http_x_forwarded_for,$remote_addr;
      proxy_request_buffering off;
      proxy_read_timeout 1h;
"""
"""Beside what docs/operations.md says, a header that tells a lie about where the client is."""
PACKING = "gzip on; gzip_types *; gzip_proxied any;"
"""A usual setting; what is packed waits in a buffer unless the service says that nothing is to wait."""
KEEPING = "proxy_ignore_headers X-Accel-Buffering;"
HAPROXY = """\
defaults
  mode http
  timeout connect 5s
  timeout client 1h
  timeout server 1h
  option forwardfor
frontend clients
  bind 127.0.0.1:{port}
  default_backend sluice
backend sluice
  server one 127.0.0.1:{behind}
"""
_NGINX = ("-p", "{folder}", "-e", "{folder}/error.log", "-c", "{file}")
PROXIES = {
    "nginx": ("nginx", NGINX.replace("SETTINGS", RECOMMENDED.strip()), _NGINX),
    "nginx as it comes": ("nginx", NGINX.replace("SETTINGS", ""), _NGINX),
    "nginx that packs": ("nginx", NGINX.replace("SETTINGS", PACKING), _NGINX),
    "nginx that keeps": ("nginx", NGINX.replace("SETTINGS", f"{PACKING} {KEEPING}"), _NGINX),
    "haproxy": ("haproxy", HAPROXY, ("-db", "-f", "{file}")),
}
"""Each with its program, its configuration and its arguments."""


@contextmanager
def proxied(name: str, behind: int, folder: Path) -> Iterator[str]:
    """Run a proxy in front of a local port and give its address."""
    port = _free_port()
    started, text, arguments = PROXIES[name]
    file = folder / f"{started}.conf"
    file.write_text(text.format(folder=folder, port=port, behind=behind))
    command = [program(started) or started, *(part.format(folder=folder, file=file) for part in arguments)]
    log = folder / f"{started}.log"
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
    try:
        awaited(port, process, log)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(timeout=20)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def awaited(port: int, process: "subprocess.Popen[bytes]", log: Path) -> None:
    """Wait until a process answers at a port; what it wrote to ``log`` says why it does not."""
    until = time.monotonic() + START_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            assert process.poll() is None and time.monotonic() < until, log.read_text()
            time.sleep(0.05)
