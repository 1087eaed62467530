"""LiteLLM's proxy on loopback, from the environment of its own that the Makefile makes."""

import json
import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2

from tests.benchmarks.speed.processes import free_port

PYTHON = Path(__file__).parents[2] / ".venv-rivals" / "litellm" / "bin" / "python"
MASTER_KEY = "sk-master-of-the-proxy-0123456789"
START_S = 120
SERVE = "from litellm import run_server; run_server()"
QUIET = {
    "DISABLE_ADMIN_UI": "true",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_TELEMETRY": "False",
    "LITELLM_LOG": "ERROR",
    "NO_PROXY": "127.0.0.1",
}


def environment() -> dict[str, str]:
    """Return an environment in which the proxy reaches for nothing outside."""
    kept = {name: value for name, value in os.environ.items() if name in {"PATH", "HOME", "LANG"}}
    return {**kept, **QUIET}


def command(file: Path, port: int) -> list[str]:
    """Return the arguments of Python that serve a configuration."""
    return ["-c", SERVE, "--config", str(file), "--host", "127.0.0.1", "--port", str(port)]


def guardrail(name: str, base: str, key: str, **params: Any) -> dict[str, Any]:
    """Return a guardrail as docs/litellm.md writes it, with other ``params`` where they are named."""
    return {
        "guardrail_name": name,
        "litellm_params": {
            "guardrail": "generic_guardrail_api",
            "mode": ["pre_call", "post_call"],
            "api_base": base,
            "api_key": key,
            "default_on": True,
            "unreachable_fallback": "fail_closed",
            "streaming_transform_mode": "incremental_diff",
            "streaming_sampling_rate": 1,
            **params,
        },
    }


def configuration(file: Path, provider: str, guardrails: Sequence[dict[str, Any]] = ()) -> Path:
    """Write a configuration with one model at ``provider`` (an address that ends in /v1); JSON is YAML."""
    model = {"model": "openai/gpt-5-mini", "api_base": provider, "api_key": "sk-of-the-provider-0123456789"}
    document = {
        "model_list": [{"model_name": "gpt-5-mini", "litellm_params": model}],
        "guardrails": list(guardrails),
        "general_settings": {"master_key": MASTER_KEY},
        "litellm_settings": {"num_retries": 0, "request_timeout": 30},
    }
    file.write_text(json.dumps(document))
    return file


@contextmanager
def litellm_proxy(folder: Path, provider: str, guardrails: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Run the proxy and give its address, without a path."""
    assert PYTHON.exists(), "`make outside` installs LiteLLM"
    port, log = free_port(), folder / "litellm.log"
    file = configuration(folder / "litellm.yaml", provider, guardrails)
    with log.open("wb") as out:
        process = subprocess.Popen(
            [PYTHON, *command(file, port)],
            env=environment(),
            cwd=folder,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    url = f"http://127.0.0.1:{port}"
    try:
        _await(f"{url}/health/liveliness", process, log)
        yield url
    finally:
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _await(url: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    until = time.monotonic() + START_S
    while True:
        try:
            if httpx2.get(url, trust_env=False, timeout=5).status_code == 200:
                return
        except httpx2.TransportError:
            pass
        assert process.poll() is None and time.monotonic() < until, log.read_text()[-4000:]
        time.sleep(0.2)
