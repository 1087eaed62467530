"""Embedded content moderation: linear and small neural classifiers, and the matching of callers' own terms."""
