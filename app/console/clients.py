"""What to paste so that a client talks to this service: one address changes, and the key is one of Sluice."""

from collections.abc import Sequence
from typing import NamedTuple


class ClientSetup(NamedTuple):
    """A kind of client: the address that it is given, and lines to paste."""

    name: str
    address: str
    code: str


def setups(base: str) -> Sequence[ClientSetup]:
    """Return the kinds of clients, for the service at ``base``."""
    openai = (
        "import os\nfrom openai import OpenAI\n\n"
        f'client = OpenAI(base_url="{base}/openai/v1", api_key=os.environ["SLUICE_API_KEY"])'
    )
    anthropic = (
        "import os\nfrom anthropic import Anthropic\n\n"
        f'client = Anthropic(base_url="{base}/anthropic", api_key=os.environ["SLUICE_API_KEY"])'
    )
    mcp = (
        '{\n  "mcpServers": {\n    "sluice": {\n      "type": "http",\n'
        f'      "url": "{base}/mcp",\n'
        '      "headers": { "Authorization": "Bearer ${SLUICE_API_KEY}" }\n    }\n  }\n}'
    )
    rest = (
        f"curl -s {base}/api/v1/middleware/pii_redaction/invoke \\\n"
        '  -H "Authorization: Bearer $SLUICE_API_KEY" -H "Content-Type: application/json" \\\n'
        '  -d \'{"context": [{"type": "text", "text": "I am Jane Smith."}]}\''
    )
    return (
        ClientSetup("OpenAI", f"{base}/openai/v1", openai),
        ClientSetup("Anthropic", f"{base}/anthropic", anthropic),
        ClientSetup("MCP", f"{base}/mcp", mcp),
        ClientSetup("REST", f"{base}/api/v1", rest),
    )
