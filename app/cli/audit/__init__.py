"""``sluice audit``."""
