"""The middleware that detects prompt injection, and its helpers."""
