"""Redaction of personal data, and what only it needs."""
