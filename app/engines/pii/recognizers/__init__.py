"""Recognizers of identifiers: ours, Presidio's made exact, and those that users add."""
