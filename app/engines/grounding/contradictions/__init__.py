"""Find statements that follow a sentence of the sources and turn its meaning."""
