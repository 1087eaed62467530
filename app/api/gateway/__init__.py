"""Doors in the shape of model providers, and their administration over REST."""
