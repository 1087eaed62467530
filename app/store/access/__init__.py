"""Queries on keys, tenants, policies and sessions."""
