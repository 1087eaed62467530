"""Nouns, rules, errors and contracts; no framework."""
