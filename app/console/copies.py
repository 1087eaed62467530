"""What somebody tried, as a call from a program: the same request, without the key, which stays with its holder."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

_ANTHROPIC: Final = frozenset({"system", "anthropic_version", "stop_sequences"})
_PATHS: Final = {"messages": "/openai/v1/chat/completions", "input": "/openai/v1/responses"}


class CopiedCall(NamedTuple):
    """A call in one language."""

    language: str
    code: str


def middleware_calls(
    base: str, items: Sequence[Any], arguments: Mapping[str, Any], pipeline: str | None = None
) -> list[CopiedCall]:
    """Return the call of `pii_redaction`, or the dry run of a pipeline, over items of a context."""
    if pipeline is not None:
        body = {"arguments": dict(arguments), "context": list(items)}
        return _calls(f"{base}/api/v1/pipelines/{pipeline}/dry-run", body, "content")
    url = f"{base}/api/v1/middleware/pii_redaction/invoke"
    body = {"arguments": dict(arguments), "context": list(items)}
    python = (
        "import os\nfrom sluice_client import Sluice\n\n"
        f'with Sluice("{base}", os.environ["SLUICE_API_KEY"]) as sluice:\n'
        f'    print(sluice.invoke("pii_redaction", {_python(list(items))}, {_python(dict(arguments))}).content)'
    )
    curl, _, typescript = _calls(url, body, "content")
    return [curl, CopiedCall("Python", python), typescript]


def gateway_calls(base: str, request: Mapping[str, Any]) -> list[CopiedCall]:
    """Return a pasted request to a model as one through the gateway, in the API of its shape; [] for another shape."""
    if isinstance(request.get("messages"), list) and _ANTHROPIC & request.keys():
        return _calls(f"{base}/anthropic/v1/messages", request, None)
    path = next((path for name, path in _PATHS.items() if isinstance(request.get(name), list)), None)
    return _calls(f"{base}{path}", request, None) if path is not None else []


def _calls(url: str, body: Mapping[str, Any], member: str | None) -> list[CopiedCall]:
    written = json.dumps(body, ensure_ascii=False)
    quoted = written.replace("'", "'\\''")
    curl = (
        f"curl -s {url} \\\n"
        '  -H "Authorization: Bearer $SLUICE_API_KEY" -H "Content-Type: application/json" \\\n'
        f"  -d '{quoted}'"
    )
    taken = f'["{member}"]' if member else ""
    python = (
        "import os\nimport httpx\n\n"
        f'answer = httpx.post("{url}", json={_python(body)}, timeout=60,\n'
        '                    headers={"Authorization": f"Bearer {os.environ[\'SLUICE_API_KEY\']}"})\n'
        f"print(answer.json(){taken})"
    )
    typescript = (
        f'const answer = await fetch("{url}", {{\n'
        '  method: "POST",\n'
        "  headers: { authorization: `Bearer ${process.env.SLUICE_API_KEY}`, "
        '"content-type": "application/json" },\n'
        f"  body: JSON.stringify({written}),\n}});\n"
        f"console.log({f'(await answer.json()).{member}' if member else 'await answer.json()'});"
    )
    return [CopiedCall("curl", curl), CopiedCall("Python", python), CopiedCall("TypeScript", typescript)]


def _python(value: Any) -> str:
    """Return JSON as Python writes it: True, False and None."""
    return repr(value)
