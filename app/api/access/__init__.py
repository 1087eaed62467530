"""Keys, tenants, policies and identities over REST."""
