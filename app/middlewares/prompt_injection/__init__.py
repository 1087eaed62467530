"""The defence against orders in texts, and what only it needs."""
