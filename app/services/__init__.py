"""Use cases: one verb per method, transactions included."""
