"""Which rights a change of a policy widens."""
