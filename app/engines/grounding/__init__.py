"""Judging what a model answered: whether statements follow from their evidence, and what can be checked by rule."""
