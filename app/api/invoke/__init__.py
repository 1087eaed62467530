"""Middlewares and pipelines over REST."""
