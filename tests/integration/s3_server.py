"""A server of S3 on loopback, in a thread of the tests: moto, with one bucket."""

from collections.abc import Iterator
from contextlib import contextmanager

import httpx2
from moto.server import ThreadedMotoServer

BUCKET = "marks"
SECRET = "n0t-a-real-s3cret"


@contextmanager
def serving_s3() -> Iterator[dict[str, str]]:
    """Run the server and return the environment with which a client finds it."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        url = f"http://{host}:{port}"
        httpx2.put(f"{url}/{BUCKET}", trust_env=False).raise_for_status()
        yield {
            "AWS_ENDPOINT_URL": url,
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "mark-keeper",
            "AWS_SECRET_ACCESS_KEY": SECRET,
        }
    finally:
        server.stop()
