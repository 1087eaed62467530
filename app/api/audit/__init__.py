"""The record over REST."""
