"""Replacing findings by handles so that it can be undone, and what a pipeline or a tool call adds to that."""
