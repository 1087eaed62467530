"""Contracts of middlewares, engines and plug-ins, and the definitions of pipelines and policies."""
