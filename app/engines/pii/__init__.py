"""The Presidio-based detector of personal data."""
