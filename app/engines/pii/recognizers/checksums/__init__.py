"""The published check algorithms of identifiers."""
