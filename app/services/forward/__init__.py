"""One request to a server behind this one and back."""
