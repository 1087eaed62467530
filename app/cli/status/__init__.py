"""``sluice status``."""
