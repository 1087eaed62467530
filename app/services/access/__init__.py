"""Who may call: keys, tenants, sessions, policies and traffic."""
