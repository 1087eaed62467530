"""Detection in worker processes: the pool, its workers and what they remember."""
