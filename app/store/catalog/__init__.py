"""Queries on groups, concerns and descriptions of tools."""
