"""Searching one text: findings, borders between texts, explanations and scores."""
