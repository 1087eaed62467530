"""National identifiers: one row each, region by region."""
