"""National identifiers: tables by region, with one row for each identifier."""
