"""Sluice: context middleware for MCP."""

__version__ = "0.2.0"
