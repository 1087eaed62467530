"""The check of answers, and what only it needs."""
