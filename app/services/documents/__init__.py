"""Collections of documents: ingestion, indexes, retrieval."""
