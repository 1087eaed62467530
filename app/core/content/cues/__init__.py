"""Words of many languages that say what a value is, each with the English words that detection knows."""
