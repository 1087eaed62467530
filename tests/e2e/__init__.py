"""A running service, used from outside."""
