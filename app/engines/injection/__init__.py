"""Texts that give orders to the model against its host: normalised views, rules, and a small classifier."""
