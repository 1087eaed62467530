"""Finding credentials: a keyword gate, then the rules that it triggers."""
