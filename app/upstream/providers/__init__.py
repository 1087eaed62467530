"""Requests to model providers: one client, pooled connections, bytes as they come."""
