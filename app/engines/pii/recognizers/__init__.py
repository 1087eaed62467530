"""Recognizers of identifiers: ours, Presidio's with exact matching, and those that users add."""
