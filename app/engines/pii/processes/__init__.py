"""Detection in worker processes: the pool, its workers, and the cache of their findings."""
