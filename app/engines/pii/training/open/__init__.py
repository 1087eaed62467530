"""Read the open sets in many languages that the fast tagger also learns from."""
