"""Commands for keys, tenants, policies and signing in."""
