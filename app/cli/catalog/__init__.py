"""Commands for concerns and groups."""
