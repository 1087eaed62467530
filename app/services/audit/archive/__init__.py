"""Closed months of the record as files: written once, with their proofs, and read beside the database."""
