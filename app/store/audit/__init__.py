"""Queries on the audit record, and the task that writes it."""
