"""Sluice: context middleware for MCP."""

__version__ = "0.1.0"
