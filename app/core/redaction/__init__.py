"""Replace findings by handles so that they can be restored, also across pipelines and tool calls."""
