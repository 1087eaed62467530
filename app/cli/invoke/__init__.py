"""Commands that run middlewares and pipelines, or try detection."""
