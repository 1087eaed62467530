"""The middleware that redacts personal data, and its helpers."""
