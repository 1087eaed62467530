"""Reverse proxies in front of a service, each with the settings that streams need."""

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
    client_max_body_size 100m;
    location / {{
      proxy_pass http://127.0.0.1:{behind};
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host $http_host;
      proxy_set_header X-Forwarded-For $http_x_forwarded_for,$remote_addr;
      proxy_buffering off;
      proxy_request_buffering off;
      proxy_read_timeout 1h;
    }}
  }}
}}
"""
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
PROXIES = {
    "nginx": (NGINX, ("-p", "{folder}", "-e", "{folder}/error.log", "-c", "{file}")),
    "haproxy": (HAPROXY, ("-db", "-f", "{file}")),
}


@contextmanager
def proxied(name: str, behind: int, folder: Path) -> Iterator[str]:
    """Run a proxy in front of a local port and give its address."""
    port = _free_port()
    text, arguments = PROXIES[name]
    file = folder / f"{name}.conf"
    file.write_text(text.format(folder=folder, port=port, behind=behind))
    command = [program(name) or name, *(part.format(folder=folder, file=file) for part in arguments)]
    log = folder / f"{name}.log"
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
    try:
        _await(port, process, log)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(timeout=20)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _await(port: int, process: "subprocess.Popen[bytes]", log: Path) -> None:
    until = time.monotonic() + START_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            assert process.poll() is None and time.monotonic() < until, log.read_text()
            time.sleep(0.05)
