"""The published checks of identifiers."""
