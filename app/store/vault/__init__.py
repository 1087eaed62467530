"""Queries on scopes, handles and the keys that seal them."""
