"""Which tools help with a request: words, parts of words and meaning, fused."""
