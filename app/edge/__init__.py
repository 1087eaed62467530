"""The first room of every HTTP request: limits, metrics, logs, traces, health and the answer to an error."""
