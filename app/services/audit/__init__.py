"""The audit record and how it leaves the service."""
