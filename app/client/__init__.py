"""The Python client for host applications."""
