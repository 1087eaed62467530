"""One module for each API of a provider: a table of its requests, and what its answers and events hold."""
